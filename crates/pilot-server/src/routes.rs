//! THE table: every operation with its method, path, access rule and handler. The router, the OpenAPI document and the
//! reference "who may call what" all come from it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;
use http::{Method, Response};
use hyper::body::Incoming;

use crate::access::{Access, Caller};
use crate::api::{health, session};
use crate::app::App;
use crate::body::Body;
use crate::console;
use crate::openapi;
use crate::problem::{Code, Problem};

pub type Answer = Result<Response<Body>, Problem>;
pub type Pending = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A request that has passed every check up to its own content.
pub struct Call {
    pub app: Arc<App>,
    pub caller: Caller,
    pub head: Parts,
    pub body: Incoming,
}

/// A guarded handler receives a caller, and only a guarded route can give it one.
pub enum Handler {
    Open(fn(&App) -> Answer),
    Guarded(Access, fn(Call) -> Pending),
}

pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// The operation id: the handler's name, the client's call and the anchor in the documentation.
    pub operation: &'static str,
    pub handler: Handler,
    pub docs: Docs,
}

/// What the OpenAPI document says of an operation besides the table's own columns.
pub struct Docs {
    pub summary: &'static str,
    /// Status, description, media type and the schema's name in `openapi/schemas.json`.
    pub success: (u16, &'static str, &'static str, Option<&'static str>),
    pub problems: &'static [Code],
}

pub fn table() -> Vec<Route> {
    vec![
        guarded(
            Method::GET,
            "/v1/session",
            "get_session",
            Access::AnyRole,
            |call| Box::pin(session::get_session(call)),
            Docs {
                summary: "Who am I: the actor and the role bound to the presented credential",
                success: (200, "The actor and its role", "application/json", Some("Session")),
                problems: &[],
            },
        ),
        open(
            "/openapi.json",
            "get_openapi",
            openapi::get_openapi,
            Docs { summary: "This document", success: (200, "OpenAPI 3.1", "application/json", None), problems: &[] },
        ),
        open(
            "/docs",
            "get_docs",
            openapi::get_docs,
            Docs {
                summary: "The API and its problems, for people; readable without internet",
                success: (200, "A page", "text/html", None),
                problems: &[],
            },
        ),
        open(
            "/docs.css",
            "get_docs_style",
            openapi::get_docs_style,
            Docs {
                summary: "The style of the documentation",
                success: (200, "A style sheet", "text/css", None),
                problems: &[],
            },
        ),
        open(
            "/healthz",
            "get_health",
            health::get_health,
            Docs {
                summary: "Is the process alive",
                success: (200, "It is", "application/json", Some("Health")),
                problems: &[],
            },
        ),
        open(
            "/readyz",
            "get_readiness",
            health::get_readiness,
            Docs {
                summary: "Can the service take requests",
                success: (200, "It can", "application/json", Some("Health")),
                problems: &[Code::Unavailable],
            },
        ),
        open(
            "/",
            "get_console",
            console::get_console,
            Docs { summary: "The operator console", success: (200, "A page", "text/html", None), problems: &[] },
        ),
    ]
}

fn guarded(
    method: Method,
    path: &'static str,
    operation: &'static str,
    access: Access,
    handler: fn(Call) -> Pending,
    docs: Docs,
) -> Route {
    Route { method, path, operation, handler: Handler::Guarded(access, handler), docs }
}

fn open(path: &'static str, operation: &'static str, handler: fn(&App) -> Answer, docs: Docs) -> Route {
    Route { method: Method::GET, path, operation, handler: Handler::Open(handler), docs }
}

/// Finds the route of a request; built once from the table.
pub struct Router {
    routes: Vec<Route>,
    paths: matchit::Router<Vec<usize>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the route table is inconsistent at {0}")]
pub struct FaultyTable(&'static str);

impl Router {
    pub fn new(routes: Vec<Route>) -> Result<Router, FaultyTable> {
        let mut by_path: Vec<(&'static str, Vec<usize>)> = Vec::new();
        for (index, route) in routes.iter().enumerate() {
            let is_guarded = matches!(route.handler, Handler::Guarded(..));
            if is_guarded != is_under_v1(route.path) {
                return Err(FaultyTable(route.path));
            }
            match by_path.iter_mut().find(|(path, _)| *path == route.path) {
                Some((_, indices)) => indices.push(index),
                None => by_path.push((route.path, vec![index])),
            }
        }
        let mut paths = matchit::Router::new();
        for (path, indices) in by_path {
            paths.insert(path, indices).map_err(|_| FaultyTable(path))?;
        }
        Ok(Router { routes, paths })
    }

    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The route's index and the route; 404 or 405 when there is none. HEAD goes wherever GET does.
    pub fn find(&self, method: &Method, path: &str) -> Result<(usize, &Route), Problem> {
        let not_found = || Problem::new(Code::NotFound, "There is nothing at this path.");
        let matched = self.paths.at(path).map_err(|_| not_found())?;
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let candidates = || matched.value.iter().filter_map(|index| Some((*index, self.routes.get(*index)?)));
        candidates().find(|(_, route)| route.method == wanted).ok_or_else(|| {
            let mut allowed: Vec<_> = candidates().map(|(_, route)| route.method.as_str()).collect();
            if allowed.contains(&"GET") {
                allowed.push("HEAD");
            }
            Problem::method_not_allowed(&allowed.join(", "))
        })
    }
}

/// Under `/v1` nothing is answered, not even that a path does not exist, before the caller is known.
pub fn is_under_v1(path: &str) -> bool {
    path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
