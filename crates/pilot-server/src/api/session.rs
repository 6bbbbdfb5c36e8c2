//! The session check.

use crate::api::json;
use crate::routes::{Answer, Call};

/// The actor and the role come from the credential; the request has no say in either.
#[expect(clippy::unused_async, reason = "every guarded handler has this shape")]
pub async fn get_session(call: Call) -> Answer {
    json(&call.caller.actor)
}
