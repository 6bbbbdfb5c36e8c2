//! Items: create, show, edit.

use std::sync::Arc;

use http::header::ETAG;
use pilot_api::outlook::WholeItemView;
use pilot_core::decide::{Content, NewItem};
use pilot_core::document::Document;
use pilot_core::entry::Entry;
use pilot_core::fault::Fault;
use pilot_core::item::{Item, ItemId};
use pilot_core::refusal::Refusal;
use pilot_core::workflow::Definition;
use pilot_ledger::moves::{self, Edit};
use pilot_ledger::repeated::Repeated;
use pilot_ledger::settle::{SettleError, Settled};
use pilot_setup::random;
use pilot_store::look::Look;
use pilot_store::{CountOpen, ShownItem, Subject, Write};
use serde_json::Value;

use crate::api::answers::{created, etag, given_again, json, nonce};
use crate::api::request::{JsonBody, if_match, item_id, read_body};
use crate::api::who_can::explained;
use crate::api::whole_item::{Newest, decided, later, newest, nonce_of, whole_item};
use crate::app::App;
use crate::call::{Answer, Call};
use crate::caller::Caller;
use crate::problem::Problem;

const EDIT_TRIES_MAX: u32 = 8;
pub async fn create_item(call: &mut Call) -> Answer {
    let mut body = read_body(call, &["application/json"], &["workflow", "title", "payload"]).await?;
    let key = body.key(call)?;
    let (definition, title, payload) = new_item(&call.app, &mut body)?;
    let id = new_id(&call.app)?;
    let nonce = nonce()?;
    let content = Document::content(&title, &payload, &nonce);
    let judged = Content::judge(&definition, &title, &payload, content.digest.clone());
    let new = NewItem { id, content: judged };
    let actor = call.caller.actor.clone();
    let max = call.app.identity.open_items_max(&actor.actor_id);
    let is_limited = max.is_some() || definition.rules().one_open_per_creator;
    let (creator, workflow) = (actor.actor_id.clone(), definition.name().to_string());
    let count_open = is_limited.then_some(CountOpen { creator, workflow, max });
    let decide = moves::create(Arc::clone(&definition), actor, new, content);
    let write = Write::new(Subject::NewItem { count_open }, key, decide);
    let (item, nonce) = match call.app.ledger.settle(call.caller.asking(), "create", write).await? {
        Settled::Recorded { shown, .. } => (shown.map(|item| *item), Some(nonce)),
        Settled::Repeated(Repeated::Entry(entry)) => {
            let item = moves::created(&call.app.workflows, &entry, definition.name(), &title, &payload);
            (item, Box::pin(first_nonce(&call.app, &entry)).await?)
        }
        Settled::Repeated(Repeated::Answer(kept)) => return Ok(given_again(kept)),
    };
    let item = item.ok_or_else(|| Problem::internal(&"what was created cannot be shown"))?;
    let definition = call.app.workflows.kept_by(&item)?;
    let mut view = whole_item(&call.app, &definition, &item, &item.created_by, item.created_at);
    view.outlook.content_nonce = nonce;
    view.outlook.seen = Some(decided(&item, item.created_at));
    created(Some(item.version), Some(format!("/v1/items/{}", item.id)), &view)
}

fn new_item(app: &App, body: &mut JsonBody) -> Result<(Arc<Definition>, String, Value), Problem> {
    let mut faults = Vec::new();
    let workflow = body.required_text("workflow", &mut faults);
    let title = body.required_text("title", &mut faults);
    let payload = body.members.remove("payload").unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let definition = workflow.and_then(|name| {
        let found = app.workflows.named(&name).cloned();
        if found.is_none() {
            let known: Vec<_> = app.workflows.in_force().map(|definition| definition.name().to_string()).collect();
            faults.push(Fault::new(
                "/workflow",
                format!("is not a workflow in force; choose one of {}", known.join(", ")),
            ));
        }
        found
    });
    match (definition, title) {
        (Some(definition), Some(title)) if faults.is_empty() => Ok((definition, title, payload)),
        _ => Err(Problem::invalid(faults)),
    }
}

fn new_id(app: &App) -> Result<ItemId, Problem> {
    let random = random::bytes().map_err(|error| Problem::internal(&error))?;
    app.ids.next(app.ledger.clock.now(), random).map_err(|error| Problem::internal(&error))
}

/// The nonce that a repeated request was given first, unless the content was erased since.
async fn first_nonce(app: &App, entry: &Entry) -> Result<Option<String>, Problem> {
    let stored = app.ledger.store.whole_entries_at(vec![entry.index]).await?;
    let mut documents = stored.iter().flat_map(|stored| &stored.documents);
    Ok(documents.find_map(|(_, bytes)| nonce_of(bytes, entry.content.as_ref()?)))
}

pub async fn get_item(call: &Call) -> Answer {
    let (id, app, actor) = (item_id(call)?, &call.app, &call.caller.actor);
    let shown = app.ledger.store.shown_item(id.clone(), Look::name(&id, &actor.actor_id)).await?;
    let ShownItem { item, content, fact } = shown.ok_or_else(Problem::no_such_item)?;
    let Newest { decided, hold } = newest(app, &item, actor).await?;
    let definition = app.workflows.kept_by(&item)?;
    let mut view = whole_item(app, &definition, &item, actor, app.ledger.clock.now());
    view.outlook.content_nonce = content.and_then(|content| nonce_of(&content, &item.content_digest));
    view.outlook.seen = later(decided, fact.as_deref().map(Look::read).transpose()?);
    view.outlook.hold = hold;
    show(&item, &view)
}

fn show(item: &Item, view: &WholeItemView<'_>) -> Answer {
    let mut response = json(view)?;
    response.headers_mut().insert(ETAG, etag(item.version));
    Ok(response)
}

pub async fn edit_item(call: &mut Call) -> Answer {
    let media_types = ["application/merge-patch+json", "application/json"];
    let mut body = read_body(call, &media_types, &["title", "payload"]).await?;
    let mut faults = Vec::new();
    let title = body.text("title", &mut faults);
    let payload = body.members.remove("payload");
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    let (if_match, nonce, id) = (if_match(&call.head.headers), nonce()?, item_id(call)?);
    settle_edit(&call.app, &call.caller, &id, &Edit { title, payload, if_match, nonce }).await
}

/// An edit is prepared from the item as it is, here and not on the single writing thread. If the content changed in
/// between, it is prepared again; after several attempts the caller is told that it changed.
async fn settle_edit(app: &App, caller: &Caller, id: &ItemId, edit: &Edit) -> Answer {
    let mut tries = EDIT_TRIES_MAX;
    loop {
        let item = app.ledger.store.item(id.clone()).await?.ok_or_else(Problem::no_such_item)?;
        let prepared = edit.prepare(&*app.workflows.kept_by(&item)?, &item);
        let decide = moves::edit(Arc::clone(&app.workflows), caller.actor.clone(), prepared);
        let write = Write::new(Subject::Item(id.clone()), None, decide);
        tries -= 1;
        match app.ledger.settle(caller.asking(), "edit", write).await {
            Err(SettleError::Refused(Refusal::ContentChanged { .. })) if tries > 0 => {}
            Err(error) => return Err(Box::pin(explained(app, id, "edit", error)).await),
            Ok(settled) => {
                let Settled::Recorded { entry, shown: Some(item) } = settled else {
                    return Err(Problem::internal(&"an edit has no key, and shows its item"));
                };
                let definition = app.workflows.kept_by(&item)?;
                let hold = newest(app, &item, &caller.actor).await?.hold;
                let mut view = whole_item(app, &definition, &item, &caller.actor, entry.at);
                view.outlook.content_nonce = Some(edit.nonce.clone());
                view.outlook.seen = Some(decided(&item, entry.at));
                view.outlook.hold = hold;
                return show(&item, &view);
            }
        }
    }
}
