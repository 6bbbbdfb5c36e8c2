//! What taking a rule does to an item: votes, window, lease, attempts.

use super::case::Case;
use super::request::ActionRequest;
use super::transition::{Change, Transition};
use super::unasked::Unasked;
use crate::actor::{Actor, ActorId};
use crate::certain::Certain as _;
use crate::item::{Lease, Vote, Window};
use crate::payload::Learned;
use crate::workflow::{Name, Rule};

/// How many votes there are for an action, and how many it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub count: u32,
    pub needed: u32,
}

impl Case<'_> {
    /// The transition for a rule that may be taken.
    pub(super) fn taken(
        self,
        rule: &Rule,
        actor: &Actor,
        request: &ActionRequest,
        window: Option<Window>,
        mut unasked: Vec<Unasked>,
    ) -> Transition {
        let vote = rule.quorum.map(|_| self.vote(rule, actor));
        let (moves, learned) = vote.as_ref().map_or((true, None), |vote| self.carries(rule, vote));
        let to = rule.to.as_ref().filter(|_| moves).unwrap_or(&self.item.state);
        let mut changes: Vec<Change> = vote.into_iter().map(Change::VoteCast).collect();
        unasked.extend(learned.is_some().then_some(Unasked::Quorum));
        changes.extend(learned.map(Change::Learned));
        // A vote that does not reach the quorum changes nothing else.
        if moves {
            self.votes_and_window(rule, actor, window, &mut changes);
            self.lease_and_attempts(rule, actor, to, &mut changes);
        }
        changes.extend(rule.holds.map(Change::Held));
        Transition {
            action: rule.action.clone(),
            from: Some(self.item.state.clone()),
            to: to.clone(),
            actor: Some(actor.clone()),
            at: self.at,
            comment: request.comment.clone(),
            inputs: request.inputs.clone(),
            version: self.item.version.saturating_add(1),
            changes,
            unasked,
        }
    }

    fn vote(self, rule: &Rule, actor: &Actor) -> Vote {
        Vote {
            actor_id: actor.actor_id.clone(),
            operated_by: actor.operated_by.clone(),
            action: rule.action.clone(),
            content_digest: self.item.content_digest.clone(),
            at: self.at,
        }
    }

    /// Whether this vote reaches the quorum. The voters are different people by construction, since a person has one
    /// vote. If the quorum depends on a missing payload, what the item did next shows the answer, and from then on it
    /// counts as known.
    fn carries(self, rule: &Rule, vote: &Vote) -> (bool, Option<Learned>) {
        let Tally { count: have, needed } = self.tally(rule, &vote.actor_id, vote.person());
        let unknown = rule.unknown_quorum(&self.item.payload).filter(|raised| (needed..raised.quorum).contains(&have));
        let Some(raised) = unknown else { return (have >= needed, None) };
        let moved = self.gaps.led_to.is_some() && self.gaps.led_to == rule.to;
        let (pointer, equals) = (raised.pointer.clone(), raised.equals.clone());
        (moved, Some(Learned { pointer, equals, holds: !moved }))
    }

    /// What the vote stands at once this actor's vote is counted.
    pub(super) fn tally(self, rule: &Rule, voter: &ActorId, person: &ActorId) -> Tally {
        let is_other = |other: &&Vote| other.actor_id != *voter && other.person() != person;
        let others = self.item.votes_for(&rule.action).filter(is_other).count();
        let needed = rule.votes_needed(&self.item.payload).certain("only a rule with a quorum takes a vote");
        Tally { count: u32::try_from(others.saturating_add(1)).certain("an item has fewer votes than entries"), needed }
    }

    fn votes_and_window(self, rule: &Rule, actor: &Actor, window: Option<Window>, changes: &mut Vec<Change>) {
        if rule.takes_back_vote {
            changes.push(Change::VoteTakenBack(actor.actor_id.clone()));
        }
        if rule.voids_votes && !self.item.votes.is_empty() {
            changes.push(Change::VotesVoided);
        }
        if rule.voids_window && self.item.window.is_some() {
            changes.push(Change::WindowVoided);
        }
        changes.extend(window.map(Change::WindowSet));
    }

    fn lease_and_attempts(self, rule: &Rule, actor: &Actor, to: &Name, changes: &mut Vec<Change>) {
        if let Some(length) = rule.takes_lease.as_ref().or(rule.renews_lease.as_ref()) {
            let lease = Lease { holder: actor.actor_id.clone(), expires_at: self.at.plus(length.length) };
            changes.push(Change::LeaseTaken(lease));
        } else if self.item.lease.is_some() && !self.is_effect(to) {
            changes.push(Change::LeaseEnded);
        }
        if rule.attempts.is_some() {
            changes.push(Change::AttemptCounted);
        }
        // Only the actor who moves the item into an effect, not one who acts on it while it is there.
        if self.is_effect(to) && *to != self.item.state {
            let people = [&actor.actor_id].into_iter().chain(&actor.operated_by);
            changes.extend(people.cloned().map(Change::ExecutedBy));
        }
    }
}
