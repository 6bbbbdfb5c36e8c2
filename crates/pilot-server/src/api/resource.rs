//! Which provider to ask for a token (RFC 9728).

use http::header::{CACHE_CONTROL, HeaderValue};

use crate::api::answers::page;
use crate::app::App;
use crate::call::Answer;
use crate::problem::{Code, Problem};

pub fn get_protected_resource(app: &App) -> Answer {
    let Some(resource) = app.identity.resource() else {
        return Err(Problem::new(Code::NotFound, "There is nothing at this path."));
    };
    let mut response = page("application/json", resource.document.clone());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}
