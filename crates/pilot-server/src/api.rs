//! Handlers: one file for each kind of operation, one function for each operation.

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;

use crate::body::Body;
use crate::problem::Problem;
use crate::routes::Answer;

pub mod actors;
pub mod credentials;
pub mod events;
pub mod evidence;
pub mod health;
pub mod items;
pub mod log;
pub mod ops;
pub mod request;
pub mod session;
pub mod transitions;
pub mod workflows;

pub fn json(view: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(view).map_err(|error| Problem::internal(&error))?;
    Ok(page("application/json", bytes))
}

pub fn page(media_type: &'static str, bytes: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
