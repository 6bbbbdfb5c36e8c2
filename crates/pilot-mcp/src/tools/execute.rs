//! Tools of an executor: what is cleared, start, heartbeat, report.

use std::collections::HashMap;

use pilot_api::items::ItemSummaryView;
use pilot_api::workflows::WorkflowView;
use pilot_core::item::ItemId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::{self, Heartbeat, Outcome, Report, Start};
use crate::bounds::{LIST_MAX, TEXT_BYTES_MAX};
use crate::desk::{Desk, Found, action, encoded};
use crate::refusal::Refusal;
use crate::service::{Request, Service};
use crate::texts::{Quoted, WARNING};
use crate::tools::Said;
use crate::view::{Status, Window};

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Cleared {
    pub items: Vec<ClearedItem>,
    /// Whether there may be more than are listed.
    pub cut: bool,
}

/// An item that you could start now.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ClearedItem {
    /// The item's id: read its `status` before you start it.
    pub item: String,
    pub workflow: String,
    pub state: String,
    pub proposed_by: String,
    /// How often it was started before.
    pub attempts: u32,
    pub window: Option<Window>,
    pub title: Quoted,
}

#[derive(Deserialize)]
struct Summaries {
    items: Vec<ItemSummaryView<'static>>,
    next: Option<String>,
}

pub(crate) async fn cleared<S: Service>(
    desk: &Desk<S>,
    arguments: arguments::Cleared,
) -> Result<Said<Cleared>, Refusal> {
    let workflow = arguments.workflow.map_or_else(String::new, |name| format!("&workflow={}", encoded(&name)));
    let path = format!("/v1/items?waiting_for=me&view=summary&limit=100{workflow}");
    let Summaries { items: found, next } = desk.ask(Request::get(path)).await?;
    let (mut items, mut cut) = (Vec::new(), next.is_some());
    let mut definitions = HashMap::new();
    for item in &found {
        if !can_be_started(desk, &mut definitions, item).await? {
            continue;
        }
        if items.len() == LIST_MAX {
            cut = true;
            break;
        }
        items.push(ClearedItem::from(item));
    }
    let more = if cut { " There may be more." } else { "" };
    let count = if items.len() == 1 { "One item".to_owned() } else { format!("{} items", items.len()) };
    let words = format!("{count} could be started now.{more} {WARNING}");
    Ok(Said { words, view: Cleared { items, cut } })
}

/// Whether one of the actions that the service offers takes a lease, by the item's own definition.
async fn can_be_started<S: Service>(
    desk: &Desk<S>,
    definitions: &mut HashMap<String, WorkflowView>,
    item: &ItemSummaryView<'_>,
) -> Result<bool, Refusal> {
    if item.actions.is_empty() || item.lease.is_some() {
        return Ok(false);
    }
    let digest = item.workflow.digest.to_string();
    if !definitions.contains_key(&digest) {
        let path = format!("/v1/workflows/{}?digest={}", encoded(&item.workflow.name), encoded(&digest));
        definitions.insert(digest.clone(), desk.ask(Request::get(path)).await?);
    }
    let takes_lease = |action: &str| {
        let rules = definitions.get(&digest).map(|definition| definition.rules_of(action, &item.state));
        rules.into_iter().flatten().any(|rule| rule.takes_lease.is_some())
    };
    Ok(STARTS.iter().any(|start| item.actions.iter().any(|action| **action == **start) && takes_lease(start)))
}

/// The actions by which an execution begins, the usual one first. A roll-back is for people to order.
const STARTS: [&str; 2] = ["start", "retry"];

impl From<&ItemSummaryView<'_>> for ClearedItem {
    fn from(item: &ItemSummaryView<'_>) -> ClearedItem {
        let author = item.created_by.actor_id.as_str();
        let window = item.window.as_ref().as_ref();
        ClearedItem {
            item: item.id.to_string(),
            workflow: item.workflow.name.to_string(),
            state: item.state.to_string(),
            proposed_by: author.to_owned(),
            attempts: item.attempts,
            window: window.map(|window| Window {
                not_before: window.not_before.to_string(),
                not_after: window.not_after.to_string(),
            }),
            title: Quoted::new(author, &item.title, TEXT_BYTES_MAX),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StartResult {
    /// True if this session had started it before: the same execution, not a second one.
    pub already_started: bool,
    pub status: Status,
}

pub(crate) async fn start<S: Service>(desk: &Desk<S>, arguments: Start) -> Result<Said<StartResult>, Refusal> {
    let _turn = desk.starting.lock().await;
    let Start { item: id, content_digest } = arguments;
    let found = desk.item(&id).await?;
    // Whether a lease of this actor is this session's, the service knows: under the same key it answers as it did then,
    // and under another it refuses. A second session with the same credential must not take the execution for its own.
    let asked = desk.asked_start(&id).filter(|_| is_mine(desk, &found));
    let asked =
        asked.filter(|(body, _)| body.get("content_digest").is_some_and(|asked| *asked == *content_digest.as_str()));
    let already_started = asked.is_some();
    let (body, key) = asked.unwrap_or_else(|| {
        let action = STARTS.into_iter().find(|action| found.can(action)).unwrap_or("start");
        let body = json!({"action": action, "content_digest": content_digest});
        let key = desk.session_key("start", &json!({"item": id, "version": found.view.version, "body": body}));
        (body, key)
    });
    let earlier = desk.remember_start(&id, Some((body.clone(), key.clone())));
    let started = match desk.act(&id, body, key).await {
        // What was refused is no start; an earlier one may still be this session's.
        Err(refusal) if refusal.is_by_service() => {
            desk.remember_start(&id, earlier);
            return Err(refusal);
        }
        started => started?,
    };
    let found = desk.item(&id).await?;
    // The answer to a repeated start is that of the first time. Since then the item may have been started once more.
    if found.view.entered_at != started.at {
        return Err(moved_on(&id, &found));
    }
    Ok(said(desk, &found, already_started))
}

fn moved_on(id: &ItemId, found: &Found) -> Refusal {
    let words = format!(
        "The execution that this session started has ended; the item is now {}. Do not carry anything out: if it is being \
         executed, another session does that.",
        found.view.state
    );
    Refusal::new("state_conflict", words).about(id.as_str())
}

fn is_mine<S: Service>(desk: &Desk<S>, found: &Found) -> bool {
    found.view.lease.as_ref().as_ref().is_some_and(|lease| lease.holder == desk.actor.actor_id)
}

fn said<S: Service>(desk: &Desk<S>, found: &Found, already_started: bool) -> Said<StartResult> {
    let status = Status::new(found, desk.service.link(found.view.id.as_str()));
    let done = if already_started { "You had started it already." } else { "Started." };
    let until = status.lease.as_ref().map_or_else(String::new, |lease| format!(" before {}", lease.expires_at));
    let words = format!(
        "{done} Carry out the payload with the digest {} and nothing else. Send a heartbeat{until}, and report how it ended. If you \
         cannot tell, report `unknown`. {WARNING}",
        status.content_digest
    );
    Said { words, view: StartResult { already_started, status } }
}

pub(crate) async fn heartbeat<S: Service>(desk: &Desk<S>, arguments: Heartbeat) -> Result<Said<Status>, Refusal> {
    let Heartbeat { item: id, progress } = arguments;
    let found = desk.item(&id).await?;
    let body = action("heartbeat", [("inputs", progress.map(|progress| json!({"progress": progress})))]);
    let key = desk.session_key("heartbeat", &json!({"item": id, "version": found.view.version, "body": body}));
    desk.act(&id, body, key).await?;
    let view = without_payload(desk, &id).await?;
    let until = view.lease.as_ref().map_or_else(String::new, |lease| format!(" until {}", lease.expires_at));
    Ok(Said { words: format!("The lease is yours{until}."), view })
}

pub(crate) async fn report<S: Service>(desk: &Desk<S>, arguments: Report) -> Result<Said<Status>, Refusal> {
    let Report { item: id, outcome, comment, result } = arguments;
    if outcome == Outcome::Unknown && comment.as_ref().is_none_or(|comment| comment.trim().is_empty()) {
        return Err(Refusal::argument("/comment", "`unknown` needs a comment: what you know, and what you do not"));
    }
    let found = desk.item(&id).await?;
    let inputs = result.map(|result| json!({"result": result}));
    let body = action(outcome.action(), [("comment", comment.map(Value::from)), ("inputs", inputs)]);
    // With the version, because an item may be executed several times and end in the same way.
    let key = desk.key("report", &json!({"item": id, "version": found.view.version, "body": body}));
    desk.act(&id, body, key).await?;
    let view = without_payload(desk, &id).await?;
    Ok(Said { words: format!("Reported {}. {}", outcome.action(), view.words()), view })
}

async fn without_payload<S: Service>(desk: &Desk<S>, id: &ItemId) -> Result<Status, Refusal> {
    let found = desk.item(id).await?;
    Ok(Status { payload: None, ..Status::new(&found, desk.service.link(id.as_str())) })
}
