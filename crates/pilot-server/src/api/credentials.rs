//! Lists credentials for those who oversee access, and revokes them.

use std::sync::Arc;

use pilot_api::access::CredentialsView;
use pilot_core::document::Document;
use pilot_core::fault::Fault;
use pilot_core::limits::COMMENT_CHARS_MAX;
use pilot_ledger::register::{self, Wish};

use crate::api::answers::{created, json, nonce};
use crate::api::request::{decode, read_optional_body};
use crate::app::App;
use crate::call::{Answer, Call};
use crate::caller::Caller;
use crate::problem::{Code, Problem};

pub fn list_credentials(app: &App, _: &Caller, _: Option<&str>) -> Answer {
    json(&CredentialsView { credentials: app.identity.credentials() })
}

/// Ends a credential immediately and permanently: open feeds too, and across restarts.
pub async fn revoke_credential(call: &mut Call) -> Answer {
    let mut body = read_optional_body(call, &["comment"]).await?;
    let key = body.key(call)?;
    let mut faults = Vec::new();
    let comment = body.text("comment", &mut faults);
    if comment.as_ref().is_some_and(|text| text.trim().is_empty() || text.chars().count() > COMMENT_CHARS_MAX) {
        faults.push(Fault::new("/comment", format!("must have 1 to {COMMENT_CHARS_MAX} characters")));
    }
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    let app = Arc::clone(&call.app);
    // A colon may be percent-encoded; most clients do that.
    let id = call.parameter.as_deref().and_then(decode).and_then(|id| id.parse().ok());
    let known = id.and_then(|id| app.identity.credential(&id));
    let known = known.ok_or_else(|| Problem::new(Code::NotFound, "There is no credential with this id."))?;
    let comment = match comment {
        Some(text) => Some(Document::comment(&text, &nonce()?)),
        None => None,
    };
    let by = call.caller.actor.clone();
    tracing::warn!(credential_id = %known.id, actor_id = %by.actor_id, "`{}` revokes the credential `{}`", by.actor_id, known.id);
    let (register, store) = (&app.register, &app.ledger.store);
    let revocation = register::revoke(register, store, &known, Wish { by, comment, key }, app.clock.now()).await?;
    created(None, None, &revocation)
}
