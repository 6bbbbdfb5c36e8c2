//! Moves an item, and lists what has happened to it.

use std::sync::Arc;

use http::header::LINK;
use pilot_api::items::{ReadEntry, TransitionView, Written};
use pilot_core::decide::ActionRequest;
use pilot_core::document::Document;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::fault::Fault;
use pilot_core::item::ItemId;
use pilot_core::limits::{COMMENT_CHARS_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX, WITNESSES_DEADLINE};
use pilot_core::refusal::Refusal;
use pilot_ledger::moves;
use pilot_ledger::repeated::Repeated;
use pilot_ledger::settle::{SettleError, Settled};
use pilot_ledger::witnesses::EffectGate;
use pilot_store::{Key, StoredEntry, Subject, Write};
use pilot_wire::clock::Stopwatch;

use crate::api::answers::{created, given_again, link, nonce, page};
use crate::api::cursor;
use crate::api::request::{JsonBody, Query, if_match, item_id, read_body};
use crate::api::who_can::explained;
use crate::app::App;
use crate::call::{Answer, Call};
use crate::caller::Caller;
use crate::problem::Problem;

pub async fn take_action(call: &mut Call) -> Answer {
    let known = &["action", "content_digest", "comment", "inputs"];
    let body = read_body(call, &["application/json"], known).await?;
    let (asked, Call { app, caller, .. }) = (Asked::read(call, body)?, call);
    let said = asked.clone();
    let (id, action) = (&said.id, &said.request.action);
    let settled = if app.witnesses.required() > 0 {
        Box::pin(act_cosigned(app, caller, action, asked)).await?
    } else {
        let write = asked.into_write(app, caller, EffectGate::open());
        app.ledger.settle(caller.asking(), action, write).await
    };
    let settled = match settled {
        Ok(settled) => settled,
        // Boxed, so that the many requests that are not refused do not carry the space for it.
        Err(error) => return Err(Box::pin(explained(app, id, action, error)).await),
    };
    show(app, id, settled, said.written()).await
}

/// What happened to the item, together with what the request said: a repeated request says the same, but the nonces are
/// those of the first.
async fn show(app: &App, id: &ItemId, settled: Settled, said: Written<'_>) -> Answer {
    let (entry, first) = match settled {
        Settled::Recorded { entry, .. } => (entry, None),
        Settled::Repeated(Repeated::Entry(entry)) => {
            let first = Box::pin(first_written(app, entry.index)).await?;
            (entry, Some(first))
        }
        Settled::Repeated(Repeated::Answer(kept)) => return Ok(given_again(kept)),
    };
    let written = match &first {
        None => said,
        Some(first) => {
            let Written { comment_nonce, inputs_nonce, .. } = first.written();
            Written { comment_nonce, inputs_nonce, ..said }
        }
    };
    let view = TransitionView::of_entry(&entry, written).filter(|_| entry.item.as_ref() == Some(id));
    created(entry.version, None, &view.ok_or_else(|| Problem::internal(&"the entry of a move is not about its item"))?)
}

/// An entry that was recorded before, with what is left of its documents.
async fn first_written(app: &App, index: u64) -> Result<ReadEntry, Problem> {
    let stored = app.ledger.store.whole_entries_at(vec![index]).await?;
    let stored = stored.first().ok_or_else(|| Problem::internal(&"an entry that a key names is missing"))?;
    read(stored)
}

fn read(stored: &StoredEntry) -> Result<ReadEntry, Problem> {
    let unreadable = |error| Problem::internal(&format!("a stored record cannot be read: {error}"));
    ReadEntry::read(&stored.bytes, &stored.documents).map_err(unreadable)
}

/// What a caller wants to do to an item.
#[derive(Clone)]
struct Asked {
    id: ItemId,
    key: Option<Key>,
    request: ActionRequest,
    comment_nonce: Option<String>,
    inputs_nonce: Option<String>,
}

impl Asked {
    fn read(call: &Call, mut body: JsonBody) -> Result<Asked, Problem> {
        let key = body.key(call)?;
        let mut faults = Vec::new();
        let request = ActionRequest {
            action: body.required_text("action", &mut faults).unwrap_or_default(),
            content_digest: body.text("content_digest", &mut faults),
            comment: body.text("comment", &mut faults),
            inputs: body.members.remove("inputs"),
            if_match: if_match(&call.head.headers),
        };
        if !faults.is_empty() {
            return Err(Problem::invalid(faults));
        }
        let comment_nonce = request.comment.as_ref().map(|_| nonce()).transpose()?;
        let inputs_nonce = request.inputs.as_ref().map(|_| nonce()).transpose()?;
        Ok(Asked { id: item_id(call)?, key, request, comment_nonce, inputs_nonce })
    }

    fn written(&self) -> Written<'_> {
        Written {
            comment: self.request.comment.as_deref(),
            comment_nonce: self.comment_nonce.as_deref(),
            inputs: self.request.inputs.as_ref(),
            inputs_nonce: self.inputs_nonce.as_deref(),
        }
    }

    fn into_write(self, app: &App, caller: &Caller, gate: EffectGate) -> Write {
        let Written { comment, comment_nonce, inputs, inputs_nonce } = self.written();
        let comment = comment.zip(comment_nonce).map(|(text, nonce)| Document::comment(text, nonce));
        let inputs = inputs.zip(inputs_nonce).map(|(inputs, nonce)| Document::inputs(inputs, nonce));
        let (workflows, actor) = (Arc::clone(&app.workflows), caller.actor.clone());
        let decide = moves::act(workflows, actor, self.request, comment, inputs, gate);
        Write::new(Subject::Item(self.id), self.key, decide)
    }
}

/// An effect waits until the entries it depends on are cosigned. Whether they are is checked where the effect is
/// recorded; the waiting happens here.
async fn act_cosigned(
    app: &App,
    caller: &Caller,
    action: &str,
    asked: Asked,
) -> Result<Result<Settled, SettleError>, Problem> {
    let (waiting, mut gate) = (Stopwatch::start(), app.witnesses.gate());
    loop {
        let write = asked.clone().into_write(app, caller, gate.clone());
        match app.ledger.settle(caller.asking(), action, write).await {
            Err(SettleError::Refused(Refusal::NotCosigned { entries, version })) => {
                // One deadline for all attempts: by moving the item again and again, nobody can keep its executor
                // waiting longer.
                let patience = WITNESSES_DEADLINE.saturating_sub(waiting.elapsed());
                app.witnesses.cover(&app.ledger.signer, entries, patience).await?;
                gate = gate.knowing(version);
            }
            settled => return Ok(settled),
        }
    }
}

pub async fn add_comment(call: &mut Call) -> Answer {
    let mut body = read_body(call, &["application/json"], &["text"]).await?;
    let key = body.key(call)?;
    let mut faults = Vec::new();
    let text = body.required_text("text", &mut faults).unwrap_or_default();
    if faults.is_empty() && (text.trim().is_empty() || text.chars().count() > COMMENT_CHARS_MAX) {
        faults.push(Fault::new("/text", format!("must have 1 to {COMMENT_CHARS_MAX} characters")));
    }
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    let id = item_id(call)?;
    let (nonce, if_match) = (nonce()?, if_match(&call.head.headers));
    let document = Document::comment(&text, &nonce);
    let (workflows, actor) = (Arc::clone(&call.app.workflows), call.caller.actor.clone());
    let write = Write::new(Subject::CountedItem(id.clone()), key, moves::comment(workflows, actor, document, if_match));
    let said = Written { comment: Some(&text), comment_nonce: Some(&nonce), ..Written::default() };
    show(&call.app, &id, call.app.ledger.settle(call.caller.asking(), "comment", write).await?, said).await
}

/// The moves of an item, oldest first: accepted actions and timers.
pub async fn list_transitions(call: &mut Call) -> Answer {
    list(call, "transitions", |entry| entry.r#type == EntryType::ItemTransition).await
}

/// Everything that happened to an item, oldest first, including its creation, edits and comments.
pub async fn list_history(call: &mut Call) -> Answer {
    list(call, "history", |_| true).await
}

/// How many entries are read in one visit: each may come with documents as large as a body.
const ENTRIES_AT_ONCE: usize = 16;

/// A page of an item's entries, written under `name` entry by entry.
async fn list(call: &mut Call, name: &'static str, is_wanted: fn(&Entry) -> bool) -> Answer {
    let query = Query::read(call, &["limit", "cursor"])?;
    let limit = query.number("limit", 1, PAGE_ITEMS_MAX as u64)?.map_or(PAGE_ITEMS_MAX, usize_of);
    let mut after = query.get("cursor").map(cursor::read).transpose()?;
    let (id, actor_id) = (item_id(call)?, &call.caller.actor.actor_id);
    call.share = Some(Box::pin(call.app.budget.take(actor_id, PAGE_BYTES_MAX)).await?);
    let (mut text, mut listed, mut is_last, mut is_known) =
        (format!("{{\"{name}\":[").into_bytes(), 0, false, after.is_some());
    while listed < limit && text.len() < PAGE_BYTES_MAX && !is_last {
        let stored = call.app.ledger.store.history_page(id.clone(), after, ENTRIES_AT_ONCE).await?;
        is_known |= !stored.is_empty();
        is_last = stored.len() < ENTRIES_AT_ONCE;
        for entry in stored {
            if listed == limit {
                is_last = false;
                break;
            }
            after = Some(entry.index);
            let read = read(&entry)?;
            if let Some(view) = read.view().filter(|_| is_wanted(&read.entry)) {
                if listed > 0 {
                    text.push(b',');
                }
                serde_json::to_writer(&mut text, &view).map_err(|error| Problem::internal(&error))?;
                listed += 1;
            }
        }
        // Lets others run: what was read may be large.
        tokio::task::yield_now().await;
    }
    if !is_known {
        return Err(Problem::no_such_item());
    }
    let next = after.filter(|_| !is_last).map(cursor::write);
    text.extend_from_slice(b"],\"next\":");
    serde_json::to_writer(&mut text, &next).map_err(|error| Problem::internal(&error))?;
    text.push(b'}');
    let mut response = page("application/json", text);
    if let Some(link) = next.and_then(|next| link(call.head.uri.path(), call.head.uri.query().unwrap_or(""), &next)) {
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

fn usize_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(PAGE_ITEMS_MAX)
}
