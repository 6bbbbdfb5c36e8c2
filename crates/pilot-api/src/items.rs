//! Items and what happened to them.

use std::borrow::Cow;

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

#[derive(Serialize, Deserialize)]
pub struct ItemView<'i> {
    pub id: Cow<'i, ItemId>,
    pub workflow: Cow<'i, WorkflowRef>,
    pub title: Cow<'i, str>,
    pub payload: Cow<'i, Payload>,
    pub state: Cow<'i, str>,
    pub version: u64,
    pub content_digest: Cow<'i, ContentDigest>,
    pub created_at: Time,
    pub created_by: Cow<'i, Actor>,
    pub updated_at: Time,
    /// When the item came into its state.
    pub entered_at: Time,
    pub held: bool,
    pub window: Cow<'i, Option<Window>>,
    pub lease: Cow<'i, Option<Lease>>,
    pub votes: Option<VotesView<'i>>,
    pub attempts: u32,
    /// When the item leaves its state by itself, if it does.
    pub due_at: Option<Time>,
    pub waits_for: Vec<Role>,
    /// What the caller may do now.
    pub actions: Vec<Name>,
}

impl<'i> ItemView<'i> {
    pub fn new(definition: &'i Definition, item: &'i Item, caller: &Actor, now: Time) -> ItemView<'i> {
        ItemView {
            id: Cow::Borrowed(&item.id),
            workflow: Cow::Borrowed(&item.workflow),
            title: Cow::Borrowed(&item.title),
            payload: Cow::Borrowed(&item.payload),
            state: Cow::Borrowed(&item.state),
            version: item.version,
            content_digest: Cow::Borrowed(&item.content_digest),
            created_at: item.created_at,
            created_by: Cow::Borrowed(&item.created_by),
            updated_at: item.updated_at,
            entered_at: item.entered_at,
            held: item.held,
            window: Cow::Borrowed(&item.window),
            lease: Cow::Borrowed(&item.lease),
            votes: item.votes_view(definition),
            attempts: item.attempts,
            due_at: due_at(definition, item).map(|deadline| deadline.at),
            waits_for: item.waits_for(definition),
            actions: actions_for(definition, item, caller, now),
        }
    }
}

/// A content that an item has or had.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Content")]
pub struct ContentView {
    #[schemars(with = "named::Digest")]
    pub content_digest: ContentDigest,
    pub title: String,
    #[schemars(with = "named::Object")]
    pub payload: Value,
}

/// A page of items, as a client reads it. The service writes it item by item.
#[derive(Deserialize)]
pub struct ItemsPage {
    pub items: Vec<ItemView<'static>>,
    pub next: Option<String>,
}

/// One line of an item's history: a transition, or for the whole history also its creation, edits and comments.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Transition")]
pub struct TransitionView<'e> {
    #[schemars(with = "named::ItemId")]
    pub item_id: Cow<'e, ItemId>,
    #[schemars(range(min = 1))]
    pub version: u64,
    pub action: Cow<'e, str>,
    #[schemars(with = "Option<String>")]
    pub from: Option<Cow<'e, str>>,
    #[schemars(with = "Option<String>")]
    pub to: Option<Cow<'e, str>>,
    /// Null when a timer moved the item.
    #[schemars(with = "Option<named::ActorId>")]
    pub actor_id: Option<Cow<'e, ActorId>>,
    #[schemars(with = "Option<named::Role>")]
    pub role: Option<Role>,
    #[schemars(with = "named::Time")]
    pub at: Time,
    pub comment: Option<Cow<'e, str>>,
    #[schemars(with = "Option<named::Object>")]
    pub inputs: Option<Cow<'e, Value>>,
    /// Its index in the ledger.
    pub entry: u64,
}

/// A page of an item's history, as a client reads it. The service writes it entry by entry.
#[derive(Deserialize)]
pub struct HistoryPage {
    #[serde(alias = "history")]
    pub transitions: Vec<TransitionView<'static>>,
    pub next: Option<String>,
}

impl<'e> TransitionView<'e> {
    pub fn of_entry(
        entry: &'e Entry,
        comment: Option<&'e str>,
        inputs: Option<&'e Value>,
    ) -> Option<TransitionView<'e>> {
        let action = match entry.r#type {
            EntryType::ItemComment => "comment",
            EntryType::PermitIssued => "permit",
            _ => entry.action.as_deref()?,
        };
        Some(TransitionView {
            item_id: Cow::Borrowed(entry.item.as_ref()?),
            version: entry.version?,
            action: Cow::Borrowed(action),
            from: entry.from.as_deref().map(Cow::Borrowed),
            to: entry.to.as_deref().map(Cow::Borrowed),
            actor_id: entry.actor_id.as_ref().map(Cow::Borrowed),
            role: entry.role,
            at: entry.at,
            comment: comment.map(Cow::Borrowed),
            inputs: inputs.map(Cow::Borrowed),
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
