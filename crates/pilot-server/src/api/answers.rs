//! Building blocks of answers.

use http::header::{CONTENT_TYPE, ETAG, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use pilot_ledger::repeated::{KeptAnswer, Made};
use pilot_setup::random;
use pilot_wire::body::Body;
use serde::Serialize;

use crate::api::request::decode;
use crate::call::Answer;
use crate::problem::Problem;

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

/// The answer to a write that created something.
pub fn created(version: Option<u64>, location: Option<String>, view: &impl Serialize) -> Answer {
    let mut response = json(view)?;
    *response.status_mut() = StatusCode::CREATED;
    mark(&mut response, version, location);
    Ok(response)
}

/// An answer as an older program gave it.
pub fn given_again(kept: KeptAnswer) -> Response<Body> {
    let KeptAnswer { made, location, version, body } = kept;
    let mut response = page("application/json", body);
    if made == Made::Created {
        *response.status_mut() = StatusCode::CREATED;
    }
    mark(&mut response, version, location);
    response
}

fn mark(response: &mut Response<Body>, version: Option<u64>, location: Option<String>) {
    if let Some(location) = location.and_then(|location| HeaderValue::try_from(location).ok()) {
        response.headers_mut().insert(LOCATION, location);
    }
    if let Some(version) = version {
        response.headers_mut().insert(ETAG, etag(version));
    }
}

pub fn etag(version: u64) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
}

/// The `Link` to the next page.
pub fn link(path: &str, query: &str, next: &str) -> Option<HeaderValue> {
    // Recognised after decoding: the name may be percent-encoded.
    let is_cursor = |pair: &str| decode(pair.split('=').next().unwrap_or("")).is_some_and(|name| name == "cursor");
    let kept = query.split('&').filter(|pair| !pair.is_empty() && !is_cursor(pair));
    let query: Vec<_> = kept.map(str::to_owned).chain([format!("cursor={next}")]).collect();
    HeaderValue::try_from(format!("<{path}?{}>; rel=\"next\"", query.join("&"))).ok()
}

/// A random number for a document, so that nobody can guess its content from its digest.
pub fn nonce() -> Result<String, Problem> {
    let bytes = random::nonce().map_err(|error| Problem::internal(&error))?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}
