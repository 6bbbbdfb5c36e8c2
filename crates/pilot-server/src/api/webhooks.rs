//! Lists webhook endpoints for those who oversee the service, and moves them back in the ledger.

use pilot_api::webhooks::{WebhookState, WebhookView, WebhooksView};
use pilot_core::fault::Fault;
use pilot_ledger::settle::SettleError;
use pilot_ledger::webhooks::{self, Place, ReplayError, Standing};
use serde_json::Value;

use crate::api::answers::json;
use crate::api::request::{decode, read_body};
use crate::call::{Answer, Call};
use crate::problem::{Code, Problem};

pub async fn list_webhooks(call: &mut Call) -> Answer {
    let store = &*call.app.ledger.store;
    let standings = call.app.webhooks.standings(store).await?;
    let size = store.head().borrow().size();
    json(&WebhooksView { webhooks: standings.into_iter().map(|standing| view(standing, size)).collect(), next: None })
}

/// Delivers again from an entry on, even if the endpoint was paused.
pub async fn replay_webhook(call: &mut Call) -> Answer {
    let mut body = read_body(call, &["application/json"], &["from"]).await?;
    let malformed = |detail: String| Problem::invalid(vec![Fault::new("/from", detail)]);
    let from = body.members.remove("from").as_ref().and_then(Value::as_u64);
    let from = from.ok_or_else(|| malformed("must be the index of an entry, or of the next one to come".to_owned()))?;
    let app = &call.app;
    let name = call.parameter.as_deref().and_then(decode);
    let found = name.and_then(|name| Some((app.webhooks.begins(&name)?, name)));
    let (begins, name) = found.ok_or_else(|| Problem::new(Code::NotFound, "There is no webhook with this name."))?;
    app.ledger.check_writing().map_err(SettleError::NotNow)?;
    match webhooks::replay(&*app.ledger.store, &name, begins, from).await {
        Ok(_) => {}
        Err(ReplayError::Ahead { next }) => {
            return Err(malformed(format!(
                "must be at most {next}, where the endpoint is. To leave entries out, give the endpoint a new name in the \
                 configuration; it then begins at the `from` there"
            )));
        }
        Err(ReplayError::Store(error)) => return Err(error.into()),
    }
    let by = &call.caller.actor.actor_id;
    tracing::warn!(endpoint = name, actor_id = %by, from, "`{by}` has the webhook `{name}` deliver from entry {from} on");
    let size = app.ledger.store.head().borrow().size();
    let standing = app.webhooks.standings(&*app.ledger.store).await?.into_iter().find(|found| found.name == name);
    let standing = standing.ok_or_else(|| Problem::internal(&"a webhook was not found again"))?;
    json(&view(standing, size))
}

fn view(standing: Standing, size: u64) -> WebhookView {
    let Standing { name, host, place } = standing;
    let (cursor, is_readable) = match &place {
        Place::At(cursor) => (Some(&**cursor), true),
        Place::Nowhere => (None, true),
        Place::Unreadable => (None, false),
    };
    let is_failing = !is_readable || cursor.is_some_and(|cursor| cursor.failing_since.is_some());
    let state = match cursor {
        Some(cursor) if cursor.paused.is_some() => WebhookState::Paused,
        _ if is_failing => WebhookState::Failing,
        _ => WebhookState::Delivering,
    };
    let unreadable = || (!is_readable).then(|| "its place in the ledger cannot be read".to_owned());
    WebhookView {
        name,
        host,
        state,
        paused_because: cursor.and_then(|cursor| cursor.paused).map(|pause| pause.as_str().to_owned()),
        next: cursor.map(|cursor| cursor.next),
        lag: cursor.map_or(0, |cursor| size.saturating_sub(cursor.next)),
        failing_since: cursor.and_then(|cursor| cursor.failing_since),
        last_answer: cursor.and_then(|cursor| cursor.last_answer.clone()).or_else(unreadable),
        last_answer_at: cursor.and_then(|cursor| cursor.last_answer_at),
        delivered_at: cursor.and_then(|cursor| cursor.delivered_at),
    }
}
