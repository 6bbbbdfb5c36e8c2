//! Tools of an initiator for an item that is there: revise, withdraw, comment.

use pilot_api::items::TransitionView;
use pilot_core::document::patch_between;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::arguments::{Comment, Revise, Withdraw};
use crate::desk::{Desk, Found, action};
use crate::refusal::Refusal;
use crate::service::{Request, Service};
use crate::texts::WARNING;
use crate::tools::Said;
use crate::tools::propose::{as_read, check, submit};
use crate::view::Status;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReviseResult {
    /// True if the item had this content already and is on its way.
    pub already_revised: bool,
    pub status: Status,
}

pub(crate) async fn revise<S: Service>(desk: &Desk<S>, arguments: Revise) -> Result<Said<ReviseResult>, Refusal> {
    let Revise { item: id, title, payload } = arguments;
    let payload = payload.map(as_read).transpose()?;
    if title.is_none() && payload.is_none() {
        return Err(Refusal::argument("", "say what to change: `title`, `payload` or both"));
    }
    let found = desk.item(&id).await?;
    if let Some(payload) = &payload {
        check(&desk.definition(&found.view).await?, payload)?;
    }
    let is_so = title.as_ref().is_none_or(|title| found.view.title == **title)
        && payload.as_ref().is_none_or(|payload| found.view.payload.value() == *payload);
    // A call that was cut off after the edit, or after the submission, is finished rather than repeated.
    let (found, already_revised) = match (is_so, found.can("edit")) {
        (true, false) => (found, true),
        (true, true) => (submit(desk, &id, &found).await?, false),
        (false, _) => {
            let body = patch(&found, title, payload)?;
            let edit = Request::patch(format!("/v1/items/{id}"), body, found.view.version);
            if let Err(refusal) = desk.ask::<Value>(edit).await {
                return Err(desk.explained(&id, refusal).await);
            }
            (submit(desk, &id, &desk.item(&id).await?).await?, false)
        }
    };
    let status = Status::new(&found, desk.service.link(id.as_str()));
    let done = if already_revised { "It has this content already." } else { "Revised and submitted again." };
    let words = format!("{done} {} {WARNING}", status.words());
    Ok(Said { words, view: ReviseResult { already_revised, status } })
}

fn patch(found: &Found, title: Option<String>, payload: Option<Value>) -> Result<Value, Refusal> {
    let mut body = Map::new();
    if let Some(title) = title {
        body.insert("title".into(), title.into());
    }
    if let Some(payload) = payload {
        let no_null = || Refusal::argument("/payload", "a member that is null cannot be edited in; leave it out");
        let patch = patch_between(&found.view.payload.value(), &payload).ok_or_else(no_null)?;
        body.insert("payload".into(), patch);
    }
    Ok(body.into())
}

pub(crate) async fn withdraw<S: Service>(desk: &Desk<S>, arguments: Withdraw) -> Result<Said<Status>, Refusal> {
    let Withdraw { item: id, comment } = arguments;
    let found = desk.item(&id).await?;
    // By name only: another action that ends an item may be a decision about it.
    let body = action("withdraw", [("comment", comment.map(Value::from))]);
    let key = desk.key("withdraw", &json!({"item": id, "version": found.view.version, "body": body}));
    desk.act(&id, body, key).await?;
    let view = Status::new(&desk.item(&id).await?, desk.service.link(id.as_str()));
    Ok(Said { words: format!("Withdrawn. {}", view.words()), view })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Commented {
    /// The item's id.
    pub item: String,
    /// The index of the entry in the ledger.
    pub entry: u64,
}

pub(crate) async fn comment<S: Service>(desk: &Desk<S>, arguments: Comment) -> Result<Said<Commented>, Refusal> {
    let Comment { item: id, text } = arguments;
    let body = json!({"text": text});
    let key = desk.key("comment", &json!({"item": id, "text": text}));
    let request = Request::post(format!("/v1/items/{id}/comments"), body, key);
    let recorded: TransitionView<'static> = desk.ask(request).await.map_err(|refusal| refusal.about(id.as_str()))?;
    let words = format!("The comment is entry {} of the ledger.", recorded.entry);
    Ok(Said { words, view: Commented { item: id.to_string(), entry: recorded.entry } })
}
