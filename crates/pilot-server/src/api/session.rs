//! The session check.

use http::header::{HeaderName, HeaderValue};

use crate::api::answers::page;
use crate::app::App;
use crate::call::Answer;
use crate::caller::{Caller, session_of};

const CREDENTIAL_EXPIRES_AT: HeaderName = HeaderName::from_static("credential-expires-at");

/// The actor and the role come from the credential; the request cannot influence either. If the credential expires, a
/// header says when, because the body is exactly the specification's.
pub fn get_session(_: &App, caller: &Caller, _: Option<&str>) -> Answer {
    let body = caller.session.clone().unwrap_or_else(|| session_of(&caller.actor));
    let mut response = page("application/json", body);
    if let Some(expires_at) = caller.credential.expires_at
        && let Ok(value) = HeaderValue::try_from(expires_at.to_string())
    {
        response.headers_mut().insert(CREDENTIAL_EXPIRES_AT, value);
    }
    Ok(response)
}
