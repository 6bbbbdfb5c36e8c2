//! THE table: every operation with its method, path, access rule and handler. The router, the OpenAPI document and the
//! reference "who may call what" all come from it.

use std::future::{Future, ready};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;
use http::{Method, Response};
use pilot_core::role::Role;

use crate::access::{Access, Caller};
use crate::api::{actors, credentials, events, evidence, health, items, log, session, transitions, workflows};
use crate::app::App;
use crate::body::Body;
use crate::budget::Share;
use crate::console;
use crate::identity::oauth::resource;
use crate::openapi;
use crate::problem::{Code, Problem};
use crate::upload::Upload;

mod docs;

pub type Answer = Result<Response<Body>, Problem>;
pub type Pending = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A request that has passed every check up to its own content.
pub struct Call {
    pub app: Arc<App>,
    pub caller: Caller,
    /// Where the request comes from, as far as that is known.
    pub address: Option<IpAddr>,
    pub head: Parts,
    /// For operations that read one, until it was read.
    pub upload: Option<Upload>,
    /// What stands in the place of the path's variable part.
    pub parameter: Option<String>,
    /// How large a body of this operation may be.
    pub body_bytes_max: usize,
    /// What the call holds of the budget of bytes, until it is answered.
    pub share: Option<Share>,
}

/// A guarded handler receives a caller, and only a guarded route can give it one.
pub enum Handler {
    Open(fn(&App) -> Answer),
    /// A file of the console, chosen by path and by what the reader already has.
    File(fn(&App, &Parts, Option<&str>) -> Answer),
    Guarded(Access, Guarded),
}

#[derive(Clone, Copy)]
pub enum Guarded {
    /// Answers at once: everything it needs is in memory.
    AtOnce(fn(&App, &Caller, Option<&str>) -> Answer),
    /// Reads a body or asks the store.
    InTime(fn(Call) -> Pending),
}

pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// The operation id: the handler's name, the client's call and the anchor in the documentation.
    pub operation: &'static str,
    pub handler: Handler,
    pub docs: Docs,
}

/// What the OpenAPI document says of an operation besides the table's own columns. Schemas are named as in
/// `openapi/schemas.json`.
pub struct Docs {
    pub summary: &'static str,
    pub success: Success,
    /// The same answer in other media types, for those who ask for one of them.
    pub also: &'static [(&'static str, &'static str)],
    /// Headers of the answer, besides those every answer has.
    pub answer_headers: &'static [&'static str],
    pub request: Option<RequestBody>,
    pub query: &'static [Parameter],
    pub headers: &'static [&'static str],
    pub problems: &'static [Code],
}

/// Status, description, media type and schema of the answer.
#[derive(Clone, Copy)]
pub struct Success(pub u16, pub &'static str, pub &'static str, pub Option<&'static str>);

/// Media types and schema of a request body, whether there must be one, and how large it may be.
#[derive(Clone, Copy)]
pub struct RequestBody(pub &'static [&'static str], pub &'static str, pub Needed, pub usize);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    Always,
    Optional,
}

/// Name, schema and description of a query parameter.
#[derive(Clone, Copy)]
pub struct Parameter(pub &'static str, pub &'static str, pub &'static str);

const JSON: &str = "application/json";
const ANY: Access = Access::AnyRole;

/// A handler that borrows its call: passed on by value, a call would be carried once by every future it passes through.
macro_rules! in_time {
    ($handler:path) => {
        |mut call| {
            Box::pin(async move {
                let mut answer = $handler(&mut call).await;
                if let (Ok(response), Some(share)) = (&mut answer, call.share.take()) {
                    let body = std::mem::replace(response.body_mut(), Body::empty());
                    *response.body_mut() = body.holding(share);
                }
                if let Some(upload) = call.upload.filter(|upload| !upload.is_at_end()) {
                    // Apart, so that the many requests whose body was read have no room for it.
                    Box::pin(upload.end(&mut answer)).await;
                }
                answer
            })
        }
    };
}

// One line a route: a table is read by its columns.
#[rustfmt::skip]
pub fn table() -> Vec<Route> {
    let get = Method::GET;
    let post = Method::POST;
    vec![
        at_once("/v1/session", "get_session", ANY, session::get_session, docs::SESSION),
        at_once("/v1/workflows", "list_workflows", ANY, workflows::list_workflows, docs::WORKFLOWS),
        guarded(&get, "/v1/workflows/{name}", "get_workflow", ANY, |call| Box::pin(ready(workflows::get_workflow(&call))), docs::WORKFLOW),
        guarded(&get, "/v1/workflows/{name}/diagram", "get_workflow_diagram", ANY, |call| Box::pin(ready(workflows::get_workflow_diagram(&call))), docs::DIAGRAM),
        guarded(&post, "/v1/items", "create_item", Access::Roles(&[Role::Initiator]), in_time!(items::create_item), docs::CREATE),
        guarded(&get, "/v1/items", "list_items", ANY, in_time!(items::list_items), docs::ITEMS),
        guarded(&get, "/v1/items/{id}", "get_item", ANY, in_time!(items::get_item), docs::ITEM),
        guarded(&Method::PATCH, "/v1/items/{id}", "edit_item", Access::Roles(&[Role::Initiator]), in_time!(items::edit_item), docs::EDIT),
        guarded(&post, "/v1/items/{id}/transitions", "take_action", ANY, in_time!(transitions::take_action), docs::ACT),
        guarded(&get, "/v1/items/{id}/transitions", "list_transitions", ANY, in_time!(transitions::list_transitions), docs::TRANSITIONS),
        guarded(&get, "/v1/items/{id}/history", "list_history", ANY, in_time!(transitions::list_history), docs::HISTORY),
        guarded(&post, "/v1/items/{id}/comments", "add_comment", ANY, in_time!(transitions::add_comment), docs::COMMENT),
        guarded(&get, "/v1/items/{id}/proof", "get_item_proof", ANY, in_time!(log::get_item_proof), docs::PROOF),
        guarded(&get, "/v1/events", "list_events", ANY, in_time!(events::list_events), docs::EVENTS),
        at_once("/v1/actors", "list_actors", Access::Roles(&[Role::SecurityAdmin, Role::Auditor]), actors::list_actors, docs::ACTORS),
        at_once("/v1/credentials", "list_credentials", Access::Roles(&[Role::SecurityAdmin, Role::Auditor]), credentials::list_credentials, docs::CREDENTIALS),
        guarded(&post, "/v1/credentials/{id}/revocation", "revoke_credential", Access::Roles(&[Role::SecurityAdmin]), in_time!(credentials::revoke_credential), docs::REVOCATION),
        guarded(&get, "/v1/log/checkpoint", "get_checkpoint", ANY, in_time!(log::get_checkpoint), docs::CHECKPOINT),
        guarded(&get, "/v1/log/tile/{*tile}", "get_tile", ANY, in_time!(log::get_tile), docs::TILE),
        guarded(&get, "/v1/log/tile/entries/{*tile}", "get_entry_bundle", Access::Roles(&[Role::Auditor]), in_time!(log::get_entry_bundle), docs::ENTRIES),
        guarded(&get, "/v1/evidence", "get_evidence", Access::Roles(&[Role::Auditor]), in_time!(evidence::get_evidence), docs::EVIDENCE),
        open("/openapi.json", "get_openapi", openapi::get_openapi, docs::OPENAPI),
        open("/docs", "get_docs", openapi::get_docs, docs::PAGE),
        open("/docs.css", "get_docs_style", openapi::get_docs_style, docs::STYLE),
        open("/healthz", "get_health", health::get_health, docs::HEALTH),
        open("/readyz", "get_readiness", health::get_readiness, docs::READINESS),
        file("/", "get_console", console::get_console, docs::CONSOLE),
        file("/console/{*screen}", "get_console_screen", console::get_console, docs::SCREEN),
        file("/assets/{*file}", "get_console_asset", console::get_console_asset, docs::ASSET),
        open("/.well-known/oauth-protected-resource", "get_protected_resource", resource::get_protected_resource, docs::RESOURCE),
        open("/console.json", "get_console_settings", console::get_console_settings, docs::SETTINGS),
    ]
}

fn guarded(
    method: &Method,
    path: &'static str,
    operation: &'static str,
    access: Access,
    handler: fn(Call) -> Pending,
    docs: Docs,
) -> Route {
    let handler = Handler::Guarded(access, Guarded::InTime(handler));
    Route { method: method.clone(), path, operation, handler, docs }
}

fn at_once(
    path: &'static str,
    operation: &'static str,
    access: Access,
    handler: fn(&App, &Caller, Option<&str>) -> Answer,
    docs: Docs,
) -> Route {
    let handler = Handler::Guarded(access, Guarded::AtOnce(handler));
    Route { method: Method::GET, path, operation, handler, docs }
}

fn open(path: &'static str, operation: &'static str, handler: fn(&App) -> Answer, docs: Docs) -> Route {
    Route { method: Method::GET, path, operation, handler: Handler::Open(handler), docs }
}

fn file(
    path: &'static str,
    operation: &'static str,
    handler: fn(&App, &Parts, Option<&str>) -> Answer,
    docs: Docs,
) -> Route {
    Route { method: Method::GET, path, operation, handler: Handler::File(handler), docs }
}

/// Finds the route of a request; built once from the table.
pub struct Router {
    routes: Vec<Route>,
    paths: matchit::Router<Vec<usize>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the route table is inconsistent at {0}")]
pub struct FaultyTable(&'static str);

/// The route of a request, its place in the table, and what stands in the path's variable part.
pub struct Found<'r> {
    pub index: usize,
    pub route: &'r Route,
    pub parameter: Option<String>,
}

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

    /// 404 or 405 when there is no route. HEAD goes wherever GET does.
    pub fn find(&self, method: &Method, path: &str) -> Result<Found<'_>, Problem> {
        let not_found = || Problem::new(Code::NotFound, "There is nothing at this path.");
        let matched = self.paths.at(path).map_err(|_| not_found())?;
        let parameter = matched.params.iter().next().map(|(_, value)| value.to_owned());
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let candidates = || matched.value.iter().filter_map(|index| Some((*index, self.routes.get(*index)?)));
        let found = candidates().find(|(_, route)| route.method == wanted);
        found.map(|(index, route)| Found { index, route, parameter }).ok_or_else(|| {
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
