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
        ItemView::with(definition, item, actions_for(definition, item, caller, now))
    }

    /// For a caller whose actions are known.
    pub fn with(definition: &'i Definition, item: &'i Item, actions: Vec<Name>) -> ItemView<'i> {
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
            actions,
        }
    }
}

/// An item in a list, without its payload.
#[derive(Serialize, Deserialize)]
pub struct ItemSummaryView<'i> {
    pub id: Cow<'i, ItemId>,
    pub workflow: Cow<'i, WorkflowRef>,
    pub title: Cow<'i, str>,
    /// The payload's `risk`, if it is a short text.
    pub risk: Option<String>,
    pub state: Cow<'i, str>,
    pub version: u64,
    pub created_at: Time,
    pub created_by: Cow<'i, Actor>,
    pub updated_at: Time,
    pub entered_at: Time,
    pub held: bool,
    pub window: Cow<'i, Option<Window>>,
    pub lease: Cow<'i, Option<Lease>>,
    pub votes: Option<VotesView<'i>>,
    pub attempts: u32,
    pub due_at: Option<Time>,
    pub waits_for: Vec<Role>,
    pub actions: Vec<Name>,
}

impl<'i> ItemSummaryView<'i> {
    /// Everything but the payload and its digest, which no one recognises an item by and which does not compress. A member that is added to an item has to be added here, or left out by name.
    pub fn of(view: ItemView<'i>) -> ItemSummaryView<'i> {
        let ItemView {
            id,
            workflow,
            title,
            payload,
            state,
            version,
            content_digest: _,
            created_at,
            created_by,
            updated_at,
            entered_at,
            held,
            window,
            lease,
            votes,
            attempts,
            due_at,
            waits_for,
            actions,
        } = view;
        ItemSummaryView {
            id,
            workflow,
            title,
            risk: payload.risk(),
            state,
            version,
            created_at,
            created_by,
            updated_at,
            entered_at,
            held,
            window,
            lease,
            votes,
            attempts,
            due_at,
            waits_for,
            actions,
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
    /// Part of what is hashed: the digest is that of `{"nonce", "payload", "title"}` in canonical form (RFC 8785).
    pub nonce: Option<String>,
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
    /// If the actor is a machine: who operated it at the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "named::ActorId")]
    pub operated_by: Option<Cow<'e, ActorId>>,
    #[schemars(with = "named::Time")]
    pub at: Time,
    pub comment: Option<Cow<'e, str>>,
    #[schemars(with = "Option<named::Object>")]
    pub inputs: Option<Cow<'e, Value>>,
    /// The content this is about: the new one after a creation or an edit, otherwise the one that was decided on. Null
    /// for what is about no content, such as a comment.
    #[serde(default)]
    #[schemars(with = "Option<named::Digest>")]
    pub content_digest: Option<Cow<'e, ContentDigest>>,
    /// With it, the digest of the comment in the ledger's entry can be computed. Null without a comment.
    #[serde(default)]
    pub comment_nonce: Option<Cow<'e, str>>,
    /// The same for the inputs.
    #[serde(default)]
    pub inputs_nonce: Option<Cow<'e, str>>,
    /// Its index in the ledger.
    pub entry: u64,
}

/// What someone wrote with an entry, and the nonces of the documents that hold it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written<'e> {
    pub comment: Option<&'e str>,
    pub comment_nonce: Option<&'e str>,
    pub inputs: Option<&'e Value>,
    pub inputs_nonce: Option<&'e str>,
}

/// A page of an item's history, as a client reads it. The service writes it entry by entry.
#[derive(Deserialize)]
pub struct HistoryPage {
    #[serde(alias = "history")]
    pub transitions: Vec<TransitionView<'static>>,
    pub next: Option<String>,
}

impl<'e> TransitionView<'e> {
    pub fn of_entry(entry: &'e Entry, written: Written<'e>) -> Option<TransitionView<'e>> {
        let Written { comment, comment_nonce, inputs, inputs_nonce } = written;
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
            operated_by: entry.operated_by.as_ref().map(Cow::Borrowed),
            at: entry.at,
            comment: comment.map(Cow::Borrowed),
            inputs: inputs.map(Cow::Borrowed),
            content_digest: entry.content.as_ref().map(Cow::Borrowed),
            comment_nonce: comment_nonce.map(Cow::Borrowed),
            inputs_nonce: inputs_nonce.map(Cow::Borrowed),
            entry: entry.index,
        })
    }
}

/// An entry from the ledger, with what people wrote and was not erased.
pub struct ReadEntry {
    pub entry: Entry,
    comment: Option<Comment>,
    inputs: Option<Inputs>,
}

#[derive(Deserialize)]
struct Comment {
    comment: String,
    nonce: Option<String>,
}

#[derive(Deserialize)]
struct Inputs {
    inputs: Value,
    nonce: Option<String>,
}

impl ReadEntry {
    /// From an entry's bytes and the documents kept with it.
    pub fn read(entry: &[u8], documents: &[(DocumentKind, Vec<u8>)]) -> serde_json::Result<ReadEntry> {
        let document = |wanted| documents.iter().find(|(kind, _)| *kind == wanted).map(|(_, bytes)| bytes.as_slice());
        let comment = document(DocumentKind::Comment).map(serde_json::from_slice).transpose()?;
        let inputs = document(DocumentKind::Inputs).map(serde_json::from_slice).transpose()?;
        Ok(ReadEntry { entry: serde_json::from_slice(entry)?, comment, inputs })
    }

    /// Nothing for an entry that is not about an item.
    pub fn view(&self) -> Option<TransitionView<'_>> {
        TransitionView::of_entry(&self.entry, self.written())
    }

    /// What is left of what someone wrote with it.
    pub fn written(&self) -> Written<'_> {
        let (comment, inputs) = (self.comment.as_ref(), self.inputs.as_ref());
        Written {
            comment: comment.map(|document| document.comment.as_str()),
            comment_nonce: comment.and_then(|document| document.nonce.as_deref()),
            inputs: inputs.map(|document| &document.inputs),
            inputs_nonce: inputs.and_then(|document| document.nonce.as_deref()),
        }
    }
}
