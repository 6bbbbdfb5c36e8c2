//! Permit tokens for targets that trust this service's keys.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CACHE_CONTROL, HeaderValue};
use pilot_api::permits::PermitTokenView;
use pilot_core::decide::{PERMIT, may_have_permit};
use pilot_core::entry::Entry;
use pilot_core::entry::details::Details;
use pilot_core::fault::Fault;
use pilot_core::item::Item;
use pilot_core::refusal::Refusal;
use pilot_ledger::clearance;
use pilot_ledger::moves::{self, AskedPermit};
use pilot_ledger::repeated::Repeated;
use pilot_ledger::settle::Settled;
use pilot_setup::random;
use pilot_store::{Subject, Write};
use serde_json::Value;

use crate::api::answers::{created, page};
use crate::api::request::{JsonBody, item_id, read_body};
use crate::app::App;
use crate::call::{Answer, Call};
use crate::permits::{Grounds, LIFETIME, LIFETIME_MAX, PermitIssuer};
use crate::problem::{Code, Problem};

/// The entry is durable before the token exists. The token is stored nowhere: a repeated request gets one with the same
/// claims, if its caller could still be given it.
pub async fn issue_permit_token(call: &mut Call) -> Answer {
    let mut body = read_body(call, &["application/json"], &["audience", "expires_in_s"]).await?;
    let (app, actor) = (Arc::clone(&call.app), call.caller.actor.clone());
    let issuer = app.issuer.as_ref().ok_or_else(not_configured)?;
    let key = body.key(call)?;
    let (audience, lifetime) = asked(issuer, &mut body)?;
    let id = item_id(call)?;
    let jti = data_encoding::HEXLOWER.encode(&random::bytes::<16>().map_err(|error| Problem::internal(&error))?);
    let asked = AskedPermit { audience, jti, key_id: issuer.signing_id().to_owned(), lifetime };
    let decide = moves::issue_permit(Arc::clone(&app.workflows), actor.clone(), asked);
    let write = Write::new(Subject::Item(id.clone()), key, decide);
    let (entry, item) = match app.ledger.settle(call.caller.asking(), PERMIT, write).await? {
        Settled::Recorded { entry, shown } => (entry, shown.map(|item| *item)),
        Settled::Repeated(Repeated::Entry(entry)) => {
            let item = app.ledger.store.item(id).await?.ok_or_else(Problem::no_such_item)?;
            check_again(call, &item, &entry)?;
            (entry, Some(Item::clone(&item)))
        }
        Settled::Repeated(Repeated::Answer(_)) => return Err(unexpected()),
    };
    let item = item.ok_or_else(|| Problem::internal(&"the item of a permit cannot be shown"))?;
    answer(&app, issuer, &entry, &item).await
}

fn unexpected() -> Problem {
    Problem::internal(&"what was stored under this key is not the entry of a permit token")
}

fn not_configured() -> Problem {
    Problem::new(Code::NotFound, "This service issues no permit tokens: its configuration has no [permits].")
}

fn asked(issuer: &PermitIssuer, body: &mut JsonBody) -> Result<(String, Duration), Problem> {
    let mut faults = Vec::new();
    let audience = body.required_text("audience", &mut faults).unwrap_or_default();
    if faults.is_empty() && !issuer.audiences.contains(&audience) {
        let known = issuer.audiences.join(", ");
        faults.push(Fault::new("/audience", format!("must be one of those configured: {known}")));
    }
    let lifetime = match body.members.remove("expires_in_s") {
        None => Some(LIFETIME),
        Some(given) => given.as_u64().map(Duration::from_secs),
    };
    let lifetime = lifetime.filter(|lifetime| (Duration::from_secs(1)..=LIFETIME_MAX).contains(lifetime));
    let Some(lifetime) = lifetime else {
        let most = LIFETIME_MAX.as_secs();
        faults.push(Fault::new("/expires_in_s", format!("must be a number of seconds from 1 to {most}")));
        return Err(Problem::invalid(faults));
    };
    if faults.is_empty() { Ok((audience, lifetime)) } else { Err(Problem::invalid(faults)) }
}

/// Whether the caller could be given the token of an earlier request now: nothing that ended since comes back.
fn check_again(call: &Call, item: &Item, entry: &Entry) -> Result<(), Problem> {
    let (app, now) = (&call.app, call.app.ledger.clock.now());
    may_have_permit(&*app.workflows.kept_by(item)?, item, &call.caller.actor, now)?;
    let Some(Details::PermitIssued(issued)) = entry.details() else { return Err(unexpected()) };
    // A key that was retired since signs nothing any more.
    let is_published = call.app.issuer.as_ref().is_some_and(|issuer| issuer.key_ids().contains(&issued.key_id));
    if item.entered_at > entry.at || issued.expires_at <= now || !is_published {
        let (state, due_at) = (item.state.clone(), issued.expires_at);
        return Err(Refusal::DeadlinePassed { state, due_at }.into());
    }
    Ok(())
}

async fn answer(app: &App, by: &PermitIssuer, entry: &Entry, item: &Item) -> Answer {
    let Some(Details::PermitIssued(issued)) = entry.details() else { return Err(unexpected()) };
    let definition = app.workflows.kept_by(item)?;
    let cleared_by = clearance::cleared_by(&*app.ledger.store, &definition, item).await?;
    let approved_by = clearance::approved_by(item);
    let claims: Value = by.claims(&Grounds { entry, issued: &issued, item, approved_by, cleared_by });
    let token = by.sign(&issued, &claims).map_err(|error| Problem::internal(&error))?;
    let view = PermitTokenView {
        token,
        audience: issued.audience,
        expires_at: issued.expires_at,
        jti: issued.jti,
        key_id: issued.key_id,
        entry: entry.index,
    };
    created(None, None, &view)
}

pub fn get_permit_issuer(app: &App) -> Answer {
    published(app, |issuer| issuer.configuration.clone())
}

pub fn get_permit_keys(app: &App) -> Answer {
    published(app, |issuer| issuer.key_set.clone())
}

fn published(app: &App, document: impl Fn(&PermitIssuer) -> bytes::Bytes) -> Answer {
    let issuer = app.issuer.as_ref();
    let issuer = issuer.ok_or_else(|| Problem::new(Code::NotFound, "There is nothing at this path."))?;
    let mut response = page("application/json", document(issuer));
    // A new key is published this long before it may sign; docs/guide/enforcing-at-the-target.md says so.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    Ok(response)
}
