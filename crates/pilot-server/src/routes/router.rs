//! Finds the route of a request.

use http::Method;

use super::route::{AtOnce, Guarded, Handler, Route};
use crate::caller::Access;
use crate::problem::{Code, Problem};

/// Finds the route of a request; built once from the table.
pub struct Router {
    routes: Vec<Route>,
    paths: matchit::Router<Vec<usize>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the route table is inconsistent at {0}")]
pub struct FaultyTable(&'static str);

/// The route of a request, its position in the table, and the value of the path's variable part.
pub struct Found<'r> {
    pub index: usize,
    pub route: &'r Route,
    pub parameter: Option<String>,
}

/// The same of a route whose handler answers without waiting for anything.
pub struct FoundAtOnce {
    pub index: usize,
    pub operation: &'static str,
    pub access: Access,
    pub handler: AtOnce,
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

    /// The route, if its handler answers without waiting for anything.
    pub fn find_at_once(&self, method: &Method, path: &str) -> Option<FoundAtOnce> {
        let matched = self.paths.at(path).ok()?;
        let (index, route) = matched.value.iter().find_map(|index| {
            let route = self.routes.get(*index)?;
            (route.method == *method).then_some((*index, route))
        })?;
        let Handler::Guarded(access, Guarded::AtOnce(handler)) = &route.handler else { return None };
        let parameter = matched.params.iter().next().map(|(_, value)| value.to_owned());
        Some(FoundAtOnce { index, operation: route.operation, access: *access, handler: *handler, parameter })
    }

    /// 404 or 405 if there is no route. HEAD is accepted wherever GET is.
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

/// Under `/v1` nothing is answered before the caller is known, not even that a path does not exist.
pub fn is_under_v1(path: &str) -> bool {
    path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
