//! Items and what happened to them.

use pilot_core::actor::{Actor, ActorId};
use pilot_core::decide::{actions_for, due_at};
use pilot_core::document::{ContentDigest, DocumentKind};
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::{Item, ItemId, Lease, VotesView, Window, WorkflowRef};
use pilot_core::payload::Payload;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::{Definition, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::named;

#[derive(Serialize)]
pub struct ItemView<'i> {
    id: &'i ItemId,
    workflow: &'i WorkflowRef,
    title: &'i str,
    payload: &'i Payload,
    state: &'i str,
    version: u64,
    content_digest: &'i ContentDigest,
    created_at: Time,
    created_by: &'i Actor,
    updated_at: Time,
    held: bool,
    window: &'i Option<Window>,
    lease: &'i Option<Lease>,
    votes: Option<VotesView<'i>>,
    attempts: u32,
    /// When the item leaves its state by itself, if it does.
    due_at: Option<Time>,
    waits_for: Vec<Role>,
    /// What the caller may do now.
    actions: Vec<Name>,
}

impl<'i> ItemView<'i> {
    pub fn new(definition: &'i Definition, item: &'i Item, caller: &Actor, now: Time) -> ItemView<'i> {
        ItemView {
            id: &item.id,
            workflow: &item.workflow,
            title: &item.title,
            payload: &item.payload,
            state: &item.state,
            version: item.version,
            content_digest: &item.content_digest,
            created_at: item.created_at,
            created_by: &item.created_by,
            updated_at: item.updated_at,
            held: item.held,
            window: &item.window,
            lease: &item.lease,
            votes: item.votes_view(definition),
            attempts: item.attempts,
            due_at: due_at(definition, item).map(|deadline| deadline.at),
            waits_for: item.waits_for(definition),
            actions: actions_for(definition, item, caller, now),
        }
    }
}

/// One line of an item's history: a transition, or for the whole history also its creation, edits and comments.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Transition")]
pub struct TransitionView<'e> {
    #[schemars(with = "named::ItemId")]
    item_id: &'e ItemId,
    #[schemars(range(min = 1))]
    version: u64,
    action: &'e str,
    #[schemars(with = "Option<String>")]
    from: Option<&'e Name>,
    #[schemars(with = "Option<String>")]
    to: Option<&'e Name>,
    /// Null when a timer moved the item.
    #[schemars(with = "Option<named::ActorId>")]
    actor_id: Option<&'e ActorId>,
    #[schemars(with = "Option<named::Role>")]
    role: Option<Role>,
    #[schemars(with = "named::Time")]
    at: Time,
    comment: Option<&'e str>,
    #[schemars(with = "Option<named::Object>")]
    inputs: Option<&'e Value>,
    /// Its index in the ledger.
    entry: u64,
}

impl<'e> TransitionView<'e> {
    pub fn of_entry(
        entry: &'e Entry,
        comment: Option<&'e str>,
        inputs: Option<&'e Value>,
    ) -> Option<TransitionView<'e>> {
        let action = match entry.r#type {
            EntryType::ItemComment => "comment",
            _ => entry.action.as_deref()?,
        };
        Some(TransitionView {
            item_id: entry.item.as_ref()?,
            version: entry.version?,
            action,
            from: entry.from.as_ref(),
            to: entry.to.as_ref(),
            actor_id: entry.actor_id.as_ref(),
            role: entry.role,
            at: entry.at,
            comment,
            inputs,
            entry: entry.index,
        })
    }
}

/// An entry from the ledger, with what people wrote and was not erased.
pub struct ReadEntry {
    pub entry: Entry,
    comment: Option<String>,
    inputs: Option<Value>,
}

impl ReadEntry {
    /// From an entry's bytes and the documents kept with it.
    pub fn read(entry: &[u8], documents: &[(DocumentKind, Vec<u8>)]) -> serde_json::Result<ReadEntry> {
        #[derive(Deserialize)]
        struct Comment {
            comment: String,
        }
        #[derive(Deserialize)]
        struct Inputs {
            inputs: Value,
        }
        let document = |wanted| documents.iter().find(|(kind, _)| *kind == wanted).map(|(_, bytes)| bytes.as_slice());
        let comment = document(DocumentKind::Comment).map(serde_json::from_slice::<Comment>).transpose()?;
        let inputs = document(DocumentKind::Inputs).map(serde_json::from_slice::<Inputs>).transpose()?;
        Ok(ReadEntry {
            entry: serde_json::from_slice(entry)?,
            comment: comment.map(|document| document.comment),
            inputs: inputs.map(|document| document.inputs),
        })
    }

    /// Nothing for an entry that is not about an item.
    pub fn view(&self) -> Option<TransitionView<'_>> {
        TransitionView::of_entry(&self.entry, self.comment.as_deref(), self.inputs.as_ref())
    }
}
