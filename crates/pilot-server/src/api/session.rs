//! The session check.

use crate::access::Caller;
use crate::api::json;
use crate::app::App;
use crate::routes::Answer;

/// The actor and the role come from the credential; the request has no say in either.
pub fn get_session(_: &App, caller: &Caller, _: Option<&str>) -> Answer {
    json(&caller.actor)
}
