//! `decide`: the only way to make a transition.
//!
//! A pure function of the definition, the item, the request, the caller and the time. The server calls it before it
//! writes, a verifier calls it again on what was written; both must reach the same verdict, so nothing here may depend
//! on anything else.

mod content;
mod creation;
mod edit;
#[cfg(test)]
mod invariants;
mod needs;
mod outlook;
mod timer;
mod transition;
mod unasked;

use serde_json::Value;

use crate::actor::Actor;
use crate::document::ContentDigest;
use crate::item::{Item, ItemId};
use crate::refusal::Refusal;
use crate::role_set::RoleSet;
use crate::time::Time;
use crate::workflow::{Action, Definition, Kind, Own, Rule};

pub use content::Content;
pub use creation::decide_creation;
pub use outlook::actions_for;
pub use timer::{Deadline, due_at};
pub use transition::{Change, Transition};
pub use unasked::{Gaps, Unasked};

/// Who acts: an actor the server knows by a credential, or the passing of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    Actor(Actor),
    Timer,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Act(ActionRequest),
    Edit(EditRequest),
    Timer,
}

/// The versions a request was made for: it counts only while the item has one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfMatch(Vec<u64>);

impl IfMatch {
    /// With no version at all, nothing matches.
    pub fn any_of(versions: Vec<u64>) -> IfMatch {
        IfMatch(versions)
    }

    pub fn one(version: u64) -> IfMatch {
        IfMatch(vec![version])
    }

    pub fn check(&self, item: &Item) -> Result<(), Refusal> {
        if self.0.contains(&item.version) { Ok(()) } else { Err(Refusal::VersionMismatch { actual: item.version }) }
    }
}

/// Nothing in it names an actor, a role or a time, so a request cannot supply one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActionRequest {
    pub action: String,
    pub content_digest: Option<String>,
    pub comment: Option<String>,
    pub inputs: Option<Value>,
    pub if_match: Option<IfMatch>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EditRequest {
    /// The content as it will be; absent when the request names nothing to change.
    pub content: Option<Content>,
    /// The content it was made from. By the time of the decision, that may not be the item's any more.
    pub made_from: ContentDigest,
    pub if_match: Option<IfMatch>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewItem {
    pub id: ItemId,
    pub content: Content,
}

/// The order of the checks is part of the contract: an outsider learns nothing about the item, and a participant first
/// learns what to fix in the request, then what prevents the action.
pub fn decide(
    definition: &Definition,
    item: &Item,
    request: &Request,
    caller: &Caller,
    now: Time,
) -> Result<Transition, Refusal> {
    decide_again(definition, item, request, caller, now, &Gaps::default())
}

/// The same for a move that was recorded, of whose documents some may be missing: `decide` with no gaps.
pub fn decide_again(
    definition: &Definition,
    item: &Item,
    request: &Request,
    caller: &Caller,
    now: Time,
    gaps: &Gaps,
) -> Result<Transition, Refusal> {
    if item.workflow.digest != *definition.digest() {
        return Err(Refusal::OtherDefinition);
    }
    // A clock that was set back does not make time run backwards within an item.
    let at = now.max(item.updated_at);
    let case = Case { definition, item, at, gaps };
    match (request, caller) {
        (Request::Act(request), Caller::Actor(actor)) => case.act(request, actor),
        (Request::Edit(request), Caller::Actor(actor)) => case.edit(request, actor),
        (Request::Timer, Caller::Timer) => case.expire(),
        // A timer sends no request, and nobody else may act as a timer.
        _ => Err(Refusal::NothingDue),
    }
}

/// What is being decided on, and when.
#[derive(Clone, Copy)]
struct Case<'c> {
    definition: &'c Definition,
    item: &'c Item,
    at: Time,
    gaps: &'c Gaps,
}

impl<'c> Case<'c> {
    fn act(self, request: &ActionRequest, actor: &Actor) -> Result<Transition, Refusal> {
        let action = self.definition.action(&request.action).ok_or_else(|| self.unknown_action())?;
        let rule = self.permit(action, actor)?;
        let mut verdicts = self.choices(action, rule).into_iter().map(|choice| {
            let mut unasked = Vec::new();
            let needed = self.needs(action, rule, choice, request, &mut unasked)?;
            self.situation(action, needed.rule, actor, &mut unasked)?;
            self.version(request.if_match.as_ref())?;
            self.content(needed.content_digest.as_ref())?;
            self.payload_complete(needed.rule, &mut unasked)?;
            Ok(self.taken(needed.rule, actor, request, needed.window, unasked))
        });
        // One, unless inputs that choose between rules are missing: then what any of them allows is possible.
        let first = verdicts.next().unwrap_or_else(|| Err(self.unknown_action()));
        first.or_else(|refusal| verdicts.find_map(Result::ok).ok_or(refusal))
    }

    fn unknown_action(self) -> Refusal {
        Refusal::UnknownAction { known: self.definition.actions().iter().map(|action| action.name.clone()).collect() }
    }

    /// Role, separation and ownership. Gives the rule that applies in the item's state, or, when none does, one that
    /// says what the action would need elsewhere.
    fn permit(self, action: &'c Action, actor: &Actor) -> Result<&'c Rule, Refusal> {
        let forbidden = |allowed| {
            let (actor_id, action) = (actor.actor_id.clone(), action.name.clone());
            Refusal::RoleForbidden { actor_id, role: actor.role, action, allowed }
        };
        if !action.roles.contains(actor.role) {
            return Err(forbidden(action.roles));
        }
        let rules = || self.definition.rules_of(action);
        let for_role = |rule: &&Rule| rule.roles.contains(actor.role);
        let here = || rules().filter(|rule| rule.leads_from(&self.item.state));
        let rule = match here().find(for_role) {
            Some(rule) => rule,
            // In this state the action is for others, though in another state it would be for this role.
            None if here().next().is_some() => {
                return Err(forbidden(here().fold(RoleSet::EMPTY, |all, rule| all.union(rule.roles))));
            }
            None => rules().find(for_role).ok_or_else(|| forbidden(action.roles))?,
        };
        self.separate(actor)?;
        self.owned(rule, actor)?;
        Ok(rule)
    }

    /// Anyone who acted on an item in one role never acts on it in another, whatever the role map says now.
    fn separate(self, actor: &Actor) -> Result<(), Refusal> {
        match self.item.participants.get(&actor.actor_id) {
            Some(as_role) if *as_role != actor.role => {
                Err(Refusal::SameActor { actor_id: actor.actor_id.clone(), as_role: *as_role, role: actor.role })
            }
            _ => Ok(()),
        }
    }

    fn owned(self, rule: &Rule, actor: &Actor) -> Result<(), Refusal> {
        let item = self.item;
        let id = &actor.actor_id;
        if rule.not_by_executor && item.executors.contains(id) {
            return Err(Refusal::Executed { actor_id: id.clone(), action: rule.action.clone() });
        }
        // If there is no owner yet, the state is the reason for the refusal.
        let another_owns = match rule.own {
            None => false,
            Some(Own::Creator) => item.created_by.actor_id != *id,
            Some(Own::Voter) => !item.votes.is_empty() && !item.votes.iter().any(|vote| vote.actor_id == *id),
            Some(Own::Holder) => item.lease.as_ref().is_some_and(|lease| lease.holder != *id),
        };
        match rule.own {
            Some(own) if another_owns => {
                Err(Refusal::NotOwner { actor_id: id.clone(), action: rule.action.clone(), own })
            }
            _ => Ok(()),
        }
    }

    /// Deadline, state, vote, attempts, hold and window: what prevents the action whatever the request says.
    fn situation(self, action: &Action, rule: &Rule, actor: &Actor, unasked: &mut Vec<Unasked>) -> Result<(), Refusal> {
        let item = self.item;
        self.not_overdue(unasked)?;
        self.undecided(rule, actor)?;
        if !rule.leads_from(&item.state) {
            return Err(self.wrong_state(action, actor));
        }
        match rule.own {
            Some(Own::Voter) if item.votes.is_empty() => return Err(self.wrong_state(action, actor)),
            Some(Own::Holder) if item.lease.is_none() => return Err(self.wrong_state(action, actor)),
            _ => {}
        }
        if let Some(attempts_max) = rule.attempts.filter(|max| item.attempts >= *max) {
            return Err(Refusal::AttemptsUsed { attempts_max });
        }
        match rule.holds {
            Some(true) if item.held => return Err(Refusal::AlreadyHeld),
            Some(false) if !item.held => return Err(Refusal::NotHeld),
            _ => {}
        }
        if item.held && self.definition.hold_blocks(&rule.action) {
            return Err(Refusal::ItemHeld { action: rule.action.clone() });
        }
        if rule.inside_window {
            let inside = item.window.as_ref().filter(|window| window.contains(self.at));
            let outside = || Refusal::OutsideWindow { action: rule.action.clone(), window: item.window.clone() };
            unasked.extend(inside.ok_or_else(outside)?.is_left_out.then_some(Unasked::Window));
        }
        Ok(())
    }

    fn wrong_state(self, action: &Action, actor: &Actor) -> Refusal {
        let rules = self.definition.rules_of(action).filter(|rule| rule.roles.contains(actor.role));
        let mut from: Vec<_> = rules.flat_map(|rule| rule.from.iter().cloned()).collect();
        from.dedup();
        Refusal::WrongState { action: action.name.clone(), state: self.item.state.clone(), from }
    }

    /// A due timer wins over a person: nobody can still act after a deadline by being quicker than the server.
    fn not_overdue(self, unasked: &mut Vec<Unasked>) -> Result<(), Refusal> {
        match due_at(self.definition, self.item) {
            Some(deadline) if deadline.at <= self.at => {
                Err(Refusal::DeadlinePassed { state: self.item.state.clone(), due_at: deadline.at })
            }
            _ => {
                unasked.extend(self.window_may_have_ended().then_some(Unasked::Deadline));
                Ok(())
            }
        }
    }

    /// Each person counts once in a round. A round lasts until its votes are voided, or the item has left the state
    /// they led to.
    fn undecided(self, rule: &Rule, actor: &Actor) -> Result<(), Refusal> {
        let item = self.item;
        let is_in_round = rule.leads_from(&item.state) || rule.to.as_ref() == Some(&item.state);
        if rule.quorum.is_none() || !is_in_round || item.is_terminal(self.definition) {
            return Ok(());
        }
        let standing =
            |vote: &&crate::item::Vote| vote.actor_id == actor.actor_id && vote.content_digest == item.content_digest;
        match item.votes.iter().find(standing) {
            Some(vote) if !rule.replaces.contains(&vote.action) => Err(Refusal::AlreadyDecided {
                actor_id: actor.actor_id.clone(),
                action: vote.action.clone(),
                at: vote.at,
            }),
            _ => Ok(()),
        }
    }

    fn version(self, if_match: Option<&IfMatch>) -> Result<(), Refusal> {
        if_match.map_or(Ok(()), |if_match| if_match.check(self.item))
    }

    fn content(self, decided_on: Option<&ContentDigest>) -> Result<(), Refusal> {
        match decided_on {
            Some(digest) if *digest != self.item.content_digest => {
                Err(Refusal::ContentChanged { actual: self.item.content_digest.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Content that is no longer editable, unless the item ends, is frozen: from here on it must be complete.
    fn payload_complete(self, rule: &Rule, unasked: &mut Vec<Unasked>) -> Result<(), Refusal> {
        let rules = self.definition.rules();
        let editable = |name: &str| rules.state(name).is_some_and(|state| state.editable);
        let freezes = rule.to.as_ref().is_some_and(|to| !editable(to) && !rules.is_terminal(to));
        if !freezes || !editable(&self.item.state) {
            return Ok(());
        }
        if self.item.payload.is_left_out() {
            unasked.push(Unasked::Payload);
            return Ok(());
        }
        let faults = self.definition.payload_faults(&self.item.payload.value());
        if faults.is_empty() { Ok(()) } else { Err(Refusal::Invalid(faults)) }
    }

    fn is_effect(self, state: &str) -> bool {
        self.definition.rules().state(state).is_some_and(|state| state.kind == Kind::Effect)
    }
}
