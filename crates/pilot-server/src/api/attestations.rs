//! A signed statement about an item, for pipelines.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue};
use pilot_core::item::Item;
use pilot_core::limits::ATTESTED_ARTIFACTS_MAX;
use pilot_evidence::attestation::{LogHead, MEDIA_TYPE, Outcome, Statement, Unsigned, Voted};
use serde_json::Value;

use crate::api::answers::page;
use crate::api::request::{Query, item_id};
use crate::call::{Answer, Call};
use crate::problem::Problem;

pub async fn get_attestation(call: &Call) -> Answer {
    Query::read(call, &[])?;
    let app = &call.app;
    let _place = app.attestations.begin(&call.caller.actor.actor_id)?;
    let item = app.ledger.store.item(item_id(call)?).await?.ok_or_else(Problem::no_such_item)?;
    let definition = app.workflows.kept_by(&item)?;
    // After the item was read, so that it covers what led to it.
    let head = app.ledger.signer.checkpoint().await?;
    let standing = item.votes.iter().filter(|vote| vote.content_digest == item.content_digest);
    let votes = standing.map(|vote| Voted { actor_id: vote.actor_id.clone(), action: vote.action.clone() });
    let outcome = Outcome {
        item: item.id.clone(),
        workflow: item.workflow.clone(),
        state: item.state.clone(),
        is_final: item.is_terminal(&definition),
        held: item.held,
        version: item.version,
        content_digest: item.content_digest.clone(),
        entered_at: item.entered_at,
        people: item.people().collect(),
        votes: votes.collect(),
        attested_at: app.ledger.clock.now(),
        log: LogHead {
            origin: head.checkpoint.origin.clone(),
            size: head.checkpoint.size,
            root: head.checkpoint.root.to_base64(),
        },
    };
    let internal = |error: serde_json::Error| Problem::internal(&error);
    let statement = Unsigned::new(&Statement::new(outcome, artifacts(&item))).map_err(internal)?;
    let signed = app.ledger.signer.sign_statement(statement).await?;
    let mut response = page(MEDIA_TYPE, Bytes::from(serde_json::to_vec(&signed).map_err(internal)?));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The artifacts of an operation that has begun, as far as they have a name of their own and a SHA-256. Before that, they
/// are only what someone would like to run: naming them here would look like an approval.
fn artifacts(item: &Item) -> Vec<(String, String)> {
    if item.executors.is_empty() {
        return Vec::new();
    }
    let listed = item.payload.at("/operation/artifacts");
    let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let one = |artifact: &Value| {
        let text = |member: &str| artifact.get(member).and_then(Value::as_str).map(str::to_owned);
        Some((text("name")?, text("sha256").filter(|text| is_digest(text))?))
    };
    let listed = listed.as_ref().and_then(Value::as_array).into_iter().flatten();
    let mut names = BTreeSet::new();
    // What is called like the content, or like another artifact, could be taken for it.
    let mut is_own_name = |name: &str| !name.is_empty() && !name.starts_with("item/") && names.insert(name.to_owned());
    listed.filter_map(one).filter(|(name, _)| is_own_name(name)).take(ATTESTED_ARTIFACTS_MAX).collect()
}
