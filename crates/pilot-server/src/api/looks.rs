//! Remembers which content of an item the caller looked at, so that they are shown what changed since.

use http::{Response, StatusCode};
use pilot_core::document::ContentDigest;
use pilot_core::fault::Fault;
use pilot_ledger::moves;
use pilot_store::look::Look;
use pilot_wire::body::Body;

use crate::api::request::{item_id, read_body};
use crate::call::{Answer, Call};
use crate::problem::Problem;

pub async fn look_at_item(call: &mut Call) -> Answer {
    let mut body = read_body(call, &["application/json"], &["content_digest"]).await?;
    let mut faults = Vec::new();
    let digest = body.required_text("content_digest", &mut faults).unwrap_or_default();
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    let malformed = || {
        let detail = "must be sha256: followed by 64 lowercase hexadecimal characters";
        Problem::invalid(vec![Fault::new("/content_digest", detail)])
    };
    let digest: ContentDigest = digest.parse().map_err(|_| malformed())?;
    let (id, actor_id) = (item_id(call)?, &call.caller.actor.actor_id);
    let shown = call.app.ledger.store.shown_item(id.clone(), Look::name(&id, actor_id)).await?;
    let shown = shown.ok_or_else(Problem::no_such_item)?;
    let last = shown.fact.as_deref().map(Look::read).transpose()?;
    // A page that is opened again and again writes nothing, and does not wait for those who write.
    let is_known = last.is_some_and(|last| last.content_digest == digest) && shown.item.content_digest == digest;
    // Of an erased content there is nothing to see, and who looked at it was erased too.
    let is_erased = shown.content.is_none() && shown.item.content_digest == digest;
    if !is_known && !is_erased {
        call.app.ledger.note(moves::look(&id, actor_id.clone(), digest)).await?;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
