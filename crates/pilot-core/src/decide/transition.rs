//! A transition: one accepted move with all its facts. Its fields are private, and only `decide` sets them.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::unasked::Unasked;
use crate::actor::{Actor, ActorId};
use crate::document::ContentDigest;
use crate::item::{Lease, Vote, Window};
use crate::payload::{Learned, Payload};
use crate::time::Time;
use crate::workflow::Name;

#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    pub(super) action: Name,
    pub(super) from: Option<Name>,
    pub(super) to: Name,
    pub(super) actor: Option<Actor>,
    pub(super) at: Time,
    pub(super) comment: Option<String>,
    pub(super) inputs: Option<Value>,
    pub(super) version: u64,
    pub(super) changes: Vec<Change>,
    pub(super) unasked: Vec<Unasked>,
}

/// What a transition does to an item in addition to moving it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Replaces an earlier vote of the same person.
    VoteCast(Vote),
    VoteTakenBack(ActorId),
    VotesVoided,
    WindowSet(Window),
    WindowVoided,
    LeaseTaken(Lease),
    LeaseEnded,
    AttemptCounted,
    ExecutedBy(ActorId),
    Held(bool),
    /// About a payload that can no longer be read.
    Learned(Learned),
    Content {
        title: Arc<str>,
        payload: Payload,
        content_digest: ContentDigest,
    },
}

impl Transition {
    pub fn action(&self) -> &Name {
        &self.action
    }

    /// `None` for a creation.
    pub fn from(&self) -> Option<&Name> {
        self.from.as_ref()
    }

    pub fn to(&self) -> &Name {
        &self.to
    }

    /// `None` if a timer moved the item.
    pub fn actor(&self) -> Option<&Actor> {
        self.actor.as_ref()
    }

    pub fn at(&self) -> Time {
        self.at
    }

    pub fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// As sent, after validation.
    pub fn inputs(&self) -> Option<&Value> {
        self.inputs.as_ref()
    }

    /// The item's version after this transition.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The questions that only missing documents could answer; empty for a move decided now.
    pub fn unasked(&self) -> &[Unasked] {
        &self.unasked
    }

    /// The content that this transition gives the item, if any.
    pub fn content_digest(&self) -> Option<&ContentDigest> {
        self.changes.iter().find_map(|change| match change {
            Change::Content { content_digest, .. } => Some(content_digest),
            Change::VoteCast(_)
            | Change::VoteTakenBack(_)
            | Change::VotesVoided
            | Change::WindowSet(_)
            | Change::WindowVoided
            | Change::LeaseTaken(_)
            | Change::LeaseEnded
            | Change::AttemptCounted
            | Change::ExecutedBy(_)
            | Change::Held(_)
            | Change::Learned(_) => None,
        })
    }
}
