//! Items: create, list, show, edit.

use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use http::header::{ETAG, HeaderValue, LINK, LOCATION};
use http::{Response, StatusCode};
use pilot_core::decide::{NewItem, actions_for};
use pilot_core::document::Document;
use pilot_core::fault::Fault;
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::{PAGE_ITEMS_MAX, SEARCH_ROWS_MAX, SEARCH_VISIT_ROWS_MAX};
use pilot_core::workflow::Definition;
use pilot_store::{Filter, Subject, Write};
use serde::Serialize;
use serde_json::Value;

use crate::api::request::{JsonBody, Query, decode, if_match, item_id, no_such_item, read_body, read_item_id};
use crate::app::App;
use crate::body::Body;
use crate::ledger::{self, StoredAnswer};
use crate::moves::{self, Edit};
use crate::problem::Problem;
use crate::random;
use crate::routes::{Answer, Call};
use crate::views::ItemView;

const PAGE_ITEMS: u64 = 50;
/// How often one request comes back to the store for a page: others have their turn in between.
const VISITS_MAX: usize = SEARCH_ROWS_MAX / SEARCH_VISIT_ROWS_MAX;

pub async fn create_item(call: &mut Call) -> Answer {
    let mut body = read_body(call, &["application/json"], &["workflow", "title", "payload"]).await?;
    let key = body.key(call)?;
    let (definition, title, payload) = new_item(&call.app, &mut body)?;
    let id = new_id(&call.app)?;
    let content = Document::content(&title, &payload, &nonce()?);
    let new = NewItem { id, title, payload, content_digest: content.digest.clone() };
    let count_open = definition
        .rules()
        .one_open_per_creator
        .then(|| (call.caller.actor.actor_id.clone(), definition.name().to_string()));
    let actor = call.caller.actor.clone();
    let decide = moves::create(definition, actor, new, content);
    let write = Write::new(Subject::NewItem { count_open }, key, decide);
    ledger::settle(&call.app, &call.caller, "create", write).await
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
            faults.push(Fault::new("/workflow", format!("is not a workflow in force; those are {}", known.join(", "))));
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
    app.ids.next(app.ledger_clock.now(), random).map_err(|error| Problem::internal(&error))
}

pub fn nonce() -> Result<String, Problem> {
    let bytes = random::nonce().map_err(|error| Problem::internal(&error))?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}

pub async fn get_item(call: &Call) -> Answer {
    let item = call.app.store.item(item_id(call)?).await?.ok_or_else(no_such_item)?;
    show(call, &item)
}

fn show(call: &Call, item: &Item) -> Answer {
    let definition = ledger::definition(&call.app, item)?;
    let view = ItemView::new(&definition, item, &call.caller.actor, call.app.ledger_clock.now());
    let mut response = super::json(&view)?;
    response.headers_mut().insert(ETAG, etag(item.version));
    Ok(response)
}

pub fn etag(version: u64) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
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
    let (if_match, nonce, workflows) = (if_match(&call.head.headers)?, nonce()?, Arc::clone(&call.app.workflows));
    let id = item_id(call)?;
    let actor = call.caller.actor.clone();
    let decide = moves::edit(workflows, actor, Edit { title, payload, if_match, nonce });
    let write = Write::new(Subject::Item(id), None, decide);
    ledger::settle(&call.app, &call.caller, "edit", write).await
}

pub async fn list_items(call: &Call) -> Answer {
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
        before: query.get("cursor").map(read_cursor).transpose()?,
    };
    let (mut page, mut next) = (Vec::new(), None);
    for _ in 0..VISITS_MAX {
        // As many as there is room for; where only some are for the caller, as many as may be.
        let wanted = if is_inbox { limit } else { limit - page.len() };
        let found = call.app.store.items_page(filter.clone(), wanted).await?;
        next = found.next;
        for item in found.items {
            if page.len() == limit {
                next = page.last().map(|last: &Item| last.id.clone());
                break;
            }
            if !is_inbox || waits_for_caller(call, &item)? {
                page.push(item);
            }
        }
        if next.is_none() || page.len() == limit {
            break;
        }
        filter.before.clone_from(&next);
    }
    list(call, &page, next.as_ref())
}

/// Part of a title, or an id as the store knows it.
fn searched(text: &str) -> String {
    read_item_id(text).map_or_else(|| text.to_owned(), |id| id.to_string())
}

/// The caller's turn: something could be done that would bring the item on.
fn waits_for_caller(call: &Call, item: &Item) -> Result<bool, Problem> {
    let definition = ledger::definition(&call.app, item)?;
    let actor = &call.caller.actor;
    let actions = actions_for(&definition, item, actor, call.app.ledger_clock.now());
    // Where a vote is asked for, only those who have not voted are waited for.
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

fn list(call: &Call, page: &[Item], next: Option<&ItemId>) -> Answer {
    #[derive(Serialize)]
    struct ListView<'i> {
        items: Vec<ItemView<'i>>,
        next: Option<String>,
    }
    let definitions = page.iter().map(|item| ledger::definition(&call.app, item)).collect::<Result<Vec<_>, _>>()?;
    let now = call.app.ledger_clock.now();
    let view = |(item, definition)| ItemView::new(definition, item, &call.caller.actor, now);
    let items = page.iter().zip(definitions.iter().map(AsRef::as_ref)).map(view).collect();
    let next = next.map(write_cursor);
    let mut response = super::json(&ListView { items, next: next.clone() })?;
    if let Some(link) = next.and_then(|next| link(call.head.uri.query().unwrap_or(""), &next)) {
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

fn link(query: &str, next: &str) -> Option<HeaderValue> {
    // Recognised by its meaning: a name may be percent-encoded.
    let is_cursor = |pair: &str| decode(pair.split('=').next().unwrap_or("")).is_some_and(|name| name == "cursor");
    let kept = query.split('&').filter(|pair| !pair.is_empty() && !is_cursor(pair));
    let query: Vec<_> = kept.map(str::to_owned).chain([format!("cursor={next}")]).collect();
    HeaderValue::try_from(format!("</v1/items?{}>; rel=\"next\"", query.join("&"))).ok()
}

fn write_cursor(id: &ItemId) -> String {
    BASE64URL_NOPAD.encode(id.as_str().as_bytes())
}

fn read_cursor(text: &str) -> Result<ItemId, Problem> {
    let decoded = BASE64URL_NOPAD.decode(text.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let id = decoded.and_then(|id| id.parse().ok());
    id.ok_or_else(|| Problem::invalid(vec![Fault::new("/query/cursor", "is not a cursor this service gave out")]))
}

/// The answer of a write, new or repeated.
pub fn respond(answer: StoredAnswer) -> Response<Body> {
    let mut response = super::page("application/json", answer.body);
    *response.status_mut() = if answer.status == 201 { StatusCode::CREATED } else { StatusCode::OK };
    if let Some(location) = answer.location.and_then(|location| HeaderValue::try_from(location).ok()) {
        response.headers_mut().insert(LOCATION, location);
    }
    if let Some(version) = answer.version {
        response.headers_mut().insert(ETAG, etag(version));
    }
    response
}
