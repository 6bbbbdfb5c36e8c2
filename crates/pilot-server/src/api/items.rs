//! Items: create, list, show, edit.

use std::sync::Arc;

use http::header::{ETAG, LINK};
use pilot_api::items::ItemView;
use pilot_core::actor::Actor;
use pilot_core::decide::{Content, NewItem, actions_for};
use pilot_core::document::Document;
use pilot_core::fault::Fault;
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::{
    ACTOR_BYTES_HELD_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX, SEARCH_ROWS_MAX, SEARCH_VISIT_ROWS_MAX, SMALL_BODY_BYTES_MAX,
};
use pilot_core::refusal::Refusal;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_ledger::moves::{self, Edit};
use pilot_ledger::repeated::Repeated;
use pilot_ledger::settle::{SettleError, Settled};
use pilot_setup::random;
use pilot_store::{Filter, ItemPage, Listed, Subject, Write};
use serde_json::Value;

use crate::api::answers::{created, etag, given_again, json, link, nonce, page};
use crate::api::cursor;
use crate::api::request::{JsonBody, Query, if_match, item_id, read_body, read_item_id};
use crate::api::who_can::explained;
use crate::app::App;
use crate::budget::Share;
use crate::call::{Answer, Call};
use crate::caller::Caller;
use crate::problem::Problem;

const PAGE_ITEMS: u64 = 50;
const EDIT_TRIES_MAX: u32 = 8;
/// How many times one request returns to the store for a page; other requests get their turn in between.
const VISITS_MAX: usize = SEARCH_ROWS_MAX / SEARCH_VISIT_ROWS_MAX;
/// How many items are read in one visit: each may be as large as a payload.
const ITEMS_AT_ONCE: usize = 50;

pub async fn create_item(call: &mut Call) -> Answer {
    let mut body = read_body(call, &["application/json"], &["workflow", "title", "payload"]).await?;
    let key = body.key(call)?;
    let (definition, title, payload) = new_item(&call.app, &mut body)?;
    let id = new_id(&call.app)?;
    let content = Document::content(&title, &payload, &nonce()?);
    let judged = Content::judge(&definition, &title, &payload, content.digest.clone());
    let new = NewItem { id, content: judged };
    let count_open = definition
        .rules()
        .one_open_per_creator
        .then(|| (call.caller.actor.actor_id.clone(), definition.name().to_string()));
    let actor = call.caller.actor.clone();
    let decide = moves::create(Arc::clone(&definition), actor, new, content);
    let write = Write::new(Subject::NewItem { count_open }, key, decide);
    let item = match call.app.ledger.settle(&call.caller.actor, "create", write).await? {
        Settled::Recorded { shown, .. } => shown.map(|item| *item),
        Settled::Repeated(Repeated::Entry(entry)) => {
            moves::created(&call.app.workflows, &entry, definition.name(), &title, &payload)
        }
        Settled::Repeated(Repeated::Answer(kept)) => return Ok(given_again(kept)),
    };
    let item = item.ok_or_else(|| Problem::internal(&"what was created cannot be shown"))?;
    let definition = call.app.workflows.kept_by(&item)?;
    let view = ItemView::new(&definition, &item, &item.created_by, item.created_at);
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

pub async fn get_item(call: &Call) -> Answer {
    let item = call.app.ledger.store.item(item_id(call)?).await?.ok_or_else(Problem::no_such_item)?;
    show(&call.app, &call.caller, &item, call.app.ledger.clock.now())
}

fn show(app: &App, caller: &Caller, item: &Item, now: Time) -> Answer {
    let definition = app.workflows.kept_by(item)?;
    let view = ItemView::new(&definition, item, &caller.actor, now);
    let mut response = json(&view)?;
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
        match app.ledger.settle(&caller.actor, "edit", write).await {
            Err(SettleError::Refused(Refusal::ContentChanged { .. })) if tries > 0 => {}
            Err(error) => return Err(Box::pin(explained(app, id, "edit", error)).await),
            Ok(settled) => {
                let Settled::Recorded { entry, shown: Some(item) } = settled else {
                    return Err(Problem::internal(&"an edit has no key, and shows its item"));
                };
                return show(app, caller, &item, entry.at);
            }
        }
    }
}

pub async fn list_items(call: &mut Call) -> Answer {
    let known = ["state", "workflow", "created_by", "waiting_for", "q", "limit", "cursor"];
    let query = Query::read(call, &known)?;
    let limit = query.number("limit", 1, PAGE_ITEMS_MAX as u64)?.unwrap_or(PAGE_ITEMS);
    let limit = usize::try_from(limit).unwrap_or(PAGE_ITEMS_MAX);
    let is_inbox = match query.get("waiting_for") {
        None => false,
        Some("me") => true,
        Some(_) => return Err(Problem::invalid(vec![Fault::new("/query/waiting_for", "must be me")])),
    };
    let mut filter = Filter {
        state: query.get("state").map(str::to_owned),
        workflow: query.get("workflow").map(str::to_owned),
        created_by: query.get("created_by").map(str::to_owned),
        waits_for: is_inbox.then_some(call.caller.actor.role),
        text: query.get("q").filter(|text| !text.is_empty()).map(searched),
        before: query.get("cursor").map(cursor::read).transpose()?,
    };
    let actor_id = &call.caller.actor.actor_id;
    // A search keeps a reader of the store busy for long: each actor gets one at a time, and the others are left for
    // everyone else.
    let is_search = filter.text.is_some() || is_inbox;
    let bytes = if is_search { ACTOR_BYTES_HELD_MAX } else { PAGE_BYTES_MAX };
    let mut share = Box::pin(call.app.budget.take(actor_id, bytes)).await?;
    let (mut page, mut bytes, mut next): (Vec<Listed>, usize, Option<u64>) = (Vec::new(), 0, None);
    for _ in 0..VISITS_MAX {
        // As many as there is room for; if only some will be for the caller, the full limit.
        let wanted = if is_inbox { limit } else { limit - page.len() }.min(ITEMS_AT_ONCE);
        let found;
        (found, share) = visit(&call.app, filter.clone(), wanted, share).await?;
        next = found.next;
        let items = if is_inbox { waiting(call, found.items).await? } else { found.items };
        for listed in items {
            if page.len() == limit || bytes >= PAGE_BYTES_MAX {
                next = page.last().map(|last| last.created_entry);
                break;
            }
            bytes += listed.item.payload.as_str().len();
            page.push(listed);
        }
        if next.is_none() || page.len() == limit || bytes >= PAGE_BYTES_MAX {
            break;
        }
        filter.before = next;
    }
    call.share = Some(share);
    let page = Page { app: Arc::clone(&call.app), caller: call.caller.actor.clone(), items: page, next };
    let query = call.head.uri.query().unwrap_or("").to_owned();
    if bytes <= SMALL_BODY_BYTES_MAX {
        return page.answer(&query);
    }
    Box::pin(call.app.workshop.long(actor_id, move || page.answer(&query))).await?
}

/// One visit to the store. It holds the share until it is done, even if its caller hangs up: a caller who keeps asking
/// and hanging up keeps one reader busy, not all of them.
async fn visit(app: &App, filter: Filter, wanted: usize, share: Share) -> Result<(ItemPage, Share), Problem> {
    let store = Arc::clone(&app.ledger.store);
    let visiting = tokio::spawn(async move { store.items_page(filter, wanted).await.map(|found| (found, share)) });
    Ok(visiting.await.map_err(|error| Problem::internal(&error))??)
}

/// What a list shows, and where it continues.
struct Page {
    app: Arc<App>,
    caller: Actor,
    items: Vec<Listed>,
    next: Option<u64>,
}

/// Part of a title, or an id in the store's spelling.
fn searched(text: &str) -> String {
    read_item_id(text).map_or_else(|| text.to_owned(), |id| id.to_string())
}

/// Those of the items that are waiting for the caller. What the caller may do with a draft depends on its whole
/// payload.
async fn waiting(call: &Call, items: Vec<Listed>) -> Result<Vec<Listed>, Problem> {
    let (app, actor) = (Arc::clone(&call.app), call.caller.actor.clone());
    let bytes: usize = items.iter().map(|listed| listed.item.payload.as_str().len()).sum();
    let select = move || {
        let mut waiting = Vec::new();
        for listed in items {
            if waits_for(&app, &actor, &listed.item)? {
                waiting.push(listed);
            }
        }
        Ok(waiting)
    };
    if bytes <= 4 * SMALL_BODY_BYTES_MAX {
        return select();
    }
    Box::pin(call.app.workshop.long(&call.caller.actor.actor_id, select)).await?
}

/// Whether it is the actor's turn: there is something they could do that would move the item forward.
fn waits_for(app: &App, actor: &Actor, item: &Item) -> Result<bool, Problem> {
    let definition = app.workflows.kept_by(item)?;
    let actions = actions_for(&definition, item, actor, app.ledger.clock.now());
    // If a vote is in progress, the item waits only for those who have not voted.
    let votes = definition
        .rules()
        .transitions
        .iter()
        .filter(|rule| rule.quorum.is_some() && rule.leads_from(&item.state) && rule.roles.contains(actor.role));
    let mut votes = votes.peekable();
    Ok(if item.held || votes.peek().is_none() {
        actions.iter().any(|action| **action != *"hold")
    } else {
        votes.any(|rule| actions.contains(&rule.action))
    })
}

impl Page {
    /// Written item by item, so that each is freed once it is in the answer.
    fn answer(self, query: &str) -> Answer {
        let now = self.app.ledger.clock.now();
        let mut text = b"{\"items\":[".to_vec();
        for (place, Listed { item, .. }) in self.items.into_iter().enumerate() {
            if place > 0 {
                text.push(b',');
            }
            let definition = self.app.workflows.kept_by(&item)?;
            let view = ItemView::new(&definition, &item, &self.caller, now);
            serde_json::to_writer(&mut text, &view).map_err(|error| Problem::internal(&error))?;
        }
        let next = self.next.map(cursor::write);
        text.extend_from_slice(b"],\"next\":");
        serde_json::to_writer(&mut text, &next).map_err(|error| Problem::internal(&error))?;
        text.push(b'}');
        let mut response = page("application/json", text);
        if let Some(link) = next.and_then(|next| link("/v1/items", query, &next)) {
            response.headers_mut().insert(LINK, link);
        }
        Ok(response)
    }
}
