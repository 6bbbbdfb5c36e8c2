//! Moving an item, and what has happened to it.

use std::sync::Arc;

use pilot_core::decide::ActionRequest;
use pilot_core::document::Document;
use pilot_core::entry::EntryType;
use pilot_core::fault::Fault;
use pilot_core::item::ItemId;
use pilot_core::limits::{COMMENT_CHARS_MAX, WITNESSES_DEADLINE};
use pilot_core::refusal::Refusal;
use pilot_store::{Key, Subject, Write};
use serde::Serialize;

use crate::access::Caller;
use crate::api::items::nonce;
use crate::api::request::{JsonBody, if_match, item_id, no_such_item, read_body};
use crate::app::App;
use crate::clock::Stopwatch;
use crate::problem::Problem;
use crate::routes::{Answer, Call};
use crate::views::{ReadEntry, TransitionView};
use crate::witnesses::EffectGate;
use crate::{ledger, moves};

pub async fn take_action(call: &mut Call) -> Answer {
    let known = &["action", "content_digest", "comment", "inputs"];
    let body = read_body(call, &["application/json"], known).await?;
    let (asked, Call { app, caller, .. }) = (Asked::read(call, body)?, call);
    let action = asked.request.action.clone();
    if app.witnesses.required() > 0 {
        return Box::pin(act_cosigned(app, caller, &action, asked)).await;
    }
    ledger::settle(app, caller, &action, asked.into_write(app, caller, EffectGate::open())?).await
}

/// What a caller wants to happen to an item.
#[derive(Clone)]
struct Asked {
    id: ItemId,
    key: Option<Key>,
    request: ActionRequest,
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
        Ok(Asked { id: item_id(call)?, key, request })
    }

    fn into_write(self, app: &App, caller: &Caller, gate: EffectGate) -> Result<Write, Problem> {
        let Asked { id, key, request } = self;
        let (comment, inputs) = documents(&request)?;
        let decide = moves::act(Arc::clone(&app.workflows), caller.actor.clone(), request, comment, inputs, gate);
        Ok(Write::new(Subject::Item(id), key, decide))
    }
}

/// An effect waits until what it rests on is cosigned. Whether it is, is asked where the effect is recorded; the waiting
/// is done here.
async fn act_cosigned(app: &App, caller: &Caller, action: &str, asked: Asked) -> Answer {
    let (waiting, mut gate) = (Stopwatch::start(), app.witnesses.gate());
    loop {
        let write = asked.clone().into_write(app, caller, gate.clone())?;
        match ledger::settle_or_refuse(app, caller, action, write).await? {
            Err(Refusal::NotCosigned { entries, version }) => {
                // Once for all attempts: whoever keeps moving the item cannot keep its executor waiting for longer.
                let patience = WITNESSES_DEADLINE.saturating_sub(waiting.elapsed());
                app.witnesses.cover(&app.signer, entries, patience).await?;
                gate = gate.knowing(version);
            }
            settled => return settled.map_err(Problem::from),
        }
    }
}

fn documents(request: &ActionRequest) -> Result<(Option<Document>, Option<Document>), Problem> {
    let comment = match &request.comment {
        Some(text) => Some(Document::comment(text, &nonce()?)),
        None => None,
    };
    let inputs = match &request.inputs {
        Some(inputs) => Some(Document::inputs(inputs, &nonce()?)),
        None => None,
    };
    Ok((comment, inputs))
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
    let (document, if_match) = (Document::comment(&text, &nonce()?), if_match(&call.head.headers));
    let (workflows, actor) = (Arc::clone(&call.app.workflows), call.caller.actor.clone());
    let write = Write::new(Subject::Item(id), key, moves::comment(workflows, actor, text, document, if_match));
    ledger::settle(&call.app, &call.caller, "comment", write).await
}

#[derive(Serialize)]
struct TransitionsView<'e> {
    transitions: Vec<TransitionView<'e>>,
    /// Always null: this list is whole.
    next: Option<String>,
}

/// The moves of an item, oldest first: accepted actions, and what time did.
pub async fn list_transitions(call: &Call) -> Answer {
    let history = history(call).await?;
    let moves = history.iter().filter(|read| read.entry.r#type == EntryType::ItemTransition);
    super::json(&TransitionsView { transitions: moves.filter_map(ReadEntry::view).collect(), next: None })
}

#[derive(Serialize)]
struct HistoryView<'e> {
    history: Vec<TransitionView<'e>>,
}

/// Everything that happened to an item, oldest first: creation, edits and comments too.
pub async fn list_history(call: &Call) -> Answer {
    let history = history(call).await?;
    super::json(&HistoryView { history: history.iter().filter_map(ReadEntry::view).collect() })
}

async fn history(call: &Call) -> Result<Vec<ReadEntry>, Problem> {
    let stored = call.app.store.history(item_id(call)?).await?;
    if stored.is_empty() {
        return Err(no_such_item());
    }
    stored.iter().map(ReadEntry::read).collect()
}
