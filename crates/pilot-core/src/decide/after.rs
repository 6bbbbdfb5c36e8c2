//! What a transition does to an item.

use std::sync::Arc;

use super::transition::{Change, Transition};
use crate::actor::Actor;
use crate::item::{Item, Operator};

impl Item {
    /// The item as it is after `transition`. Pure: the server, a replay and an auditor arrive at the same item.
    #[must_use]
    pub fn after(&self, transition: &Transition) -> Item {
        let mut item = self.clone();
        item.version = transition.version();
        item.updated_at = transition.at();
        if item.state != *transition.to() {
            item.state = transition.to().clone();
            item.entered_at = transition.at();
        }
        if let Some(actor) = transition.actor() {
            item.took_part(actor);
        }
        for change in transition.changes() {
            item.apply(change);
        }
        item
    }

    /// The first role counts.
    fn took_part(&mut self, actor: &Actor) {
        if !self.participants.contains_key(&actor.actor_id) {
            Arc::make_mut(&mut self.participants).insert(actor.actor_id.clone(), actor.role);
        }
        self.operators.extend(Operator::of(actor));
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::VoteCast(vote) => {
                self.votes.retain(|other| other.actor_id != vote.actor_id && other.person() != vote.person());
                self.votes.push(vote.clone());
            }
            Change::VoteTakenBack(actor_id) => self.votes.retain(|vote| vote.actor_id != *actor_id),
            Change::VotesVoided => self.votes.clear(),
            Change::WindowSet(window) => self.window = Some(window.clone()),
            Change::WindowVoided => self.window = None,
            Change::LeaseTaken(lease) => self.lease = Some(lease.clone()),
            Change::LeaseEnded => self.lease = None,
            Change::AttemptCounted => self.attempts = self.attempts.saturating_add(1),
            Change::ExecutedBy(actor_id) => {
                self.executors.insert(actor_id.clone());
            }
            Change::Held(held) => self.held = *held,
            Change::Learned(learned) => self.payload = self.payload.with(learned),
            Change::Content { title, payload, content_digest } => {
                self.title = Arc::clone(title);
                self.payload = payload.clone();
                self.content_digest = content_digest.clone();
            }
        }
    }
}
