//! One row of the route table.

use http::Method;
use http::request::Parts;

use crate::app::App;
use crate::call::{Answer, Call, Pending};
use crate::caller::{Access, Caller};
use crate::problem::Code;

/// A guarded handler takes a caller, and only a guarded route can provide one.
pub enum Handler {
    Open(fn(&App) -> Answer),
    /// A file of the console, selected by path and by what the client already has.
    File(fn(&App, &Parts, Option<&str>) -> Answer),
    Guarded(Access, Guarded),
}

/// Answers immediately: everything it needs is in memory.
pub(crate) type AtOnce = fn(&App, &Caller, Option<&str>) -> Answer;

#[derive(Clone, Copy)]
pub enum Guarded {
    AtOnce(AtOnce),
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

/// What the OpenAPI document says about an operation in addition to the table's own columns. Schemas are named as in
/// `openapi/schemas.json` and `pilot_api::schemas`.
pub struct Docs {
    pub summary: &'static str,
    pub success: Success,
    /// The same answer in other media types, for clients that ask for one of them.
    pub also: &'static [(&'static str, &'static str)],
    /// Headers of the answer, in addition to those every answer has.
    pub answer_headers: &'static [&'static str],
    pub request: Option<RequestBody>,
    pub query: &'static [Parameter],
    pub headers: &'static [&'static str],
    pub problems: &'static [Code],
}

/// Status, description, media type and schema of the answer.
#[derive(Clone, Copy)]
pub struct Success(pub u16, pub &'static str, pub &'static str, pub Option<&'static str>);

/// Media types and schema of a request body, whether it is required, and how large it may be.
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

pub(super) fn guarded(
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

pub(super) fn at_once(
    path: &'static str,
    operation: &'static str,
    access: Access,
    handler: AtOnce,
    docs: Docs,
) -> Route {
    let handler = Handler::Guarded(access, Guarded::AtOnce(handler));
    Route { method: Method::GET, path, operation, handler, docs }
}

pub(super) fn open(path: &'static str, operation: &'static str, handler: fn(&App) -> Answer, docs: Docs) -> Route {
    Route { method: Method::GET, path, operation, handler: Handler::Open(handler), docs }
}

pub(super) fn file(
    path: &'static str,
    operation: &'static str,
    handler: fn(&App, &Parts, Option<&str>) -> Answer,
    docs: Docs,
) -> Route {
    Route { method: Method::GET, path, operation, handler: Handler::File(handler), docs }
}
