//! The operator console's static files. A binary built without them says so instead of showing an empty page.

use http::Response;
use http::header::{CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_FRAME_OPTIONS};

use crate::api::page;
use crate::app::App;
use crate::body::Body;
use crate::routes::Answer;

const PLACEHOLDER: &str = include_str!("console/placeholder.html");

pub fn get_console(_: &App) -> Answer {
    Ok(document(PLACEHOLDER))
}

/// A page that can load nothing, run nothing and be framed by nobody.
pub fn document(text: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = page("text/html; charset=utf-8", text.into());
    let headers = response.headers_mut();
    let policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
