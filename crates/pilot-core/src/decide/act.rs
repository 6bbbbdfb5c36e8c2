//! Taking an action: the checks, in the order that is part of the contract.

use super::case::Case;
use super::request::ActionRequest;
use super::transition::Transition;
use super::unasked::Unasked;
use crate::actor::Actor;
use crate::item::Vote;
use crate::refusal::Refusal;
use crate::role_set::RoleSet;
use crate::workflow::{Action, Own, Rule};

impl<'c> Case<'c> {
    pub(super) fn act(self, request: &ActionRequest, actor: &Actor) -> Result<Transition, Refusal> {
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
        // One rule, unless the inputs that choose between rules are missing: then the move is possible if any of them
        // allows it.
        let first = verdicts.next().unwrap_or_else(|| Err(self.unknown_action()));
        first.or_else(|refusal| verdicts.find_map(Result::ok).ok_or(refusal))
    }

    fn unknown_action(self) -> Refusal {
        Refusal::UnknownAction { known: self.definition.actions().iter().map(|action| action.name.clone()).collect() }
    }

    /// Role, separation of duties and ownership. Returns the rule that applies in the item's state or, if none does,
    /// one that says what the action would need elsewhere.
    pub(super) fn permit(self, action: &'c Action, actor: &Actor) -> Result<&'c Rule, Refusal> {
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
            // In this state the action is for other roles, although in another state this role may take it.
            None if here().next().is_some() => {
                return Err(forbidden(here().fold(RoleSet::EMPTY, |all, rule| all.union(rule.roles))));
            }
            None => rules().find(for_role).ok_or_else(|| forbidden(action.roles))?,
        };
        self.separate(actor)?;
        self.owned(rule, actor)?;
        Ok(rule)
    }

    fn owned(self, rule: &Rule, actor: &Actor) -> Result<(), Refusal> {
        let item = self.item;
        let id = &actor.actor_id;
        if rule.not_by_executor && [id, actor.person()].iter().any(|one| item.executors.contains(*one)) {
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
    pub(super) fn situation(
        self,
        action: &Action,
        rule: &Rule,
        actor: &Actor,
        unasked: &mut Vec<Unasked>,
    ) -> Result<(), Refusal> {
        let item = self.item;
        // Every field of a rule is checked here, or where the comment says.
        let Rule {
            action: _,
            from: _,
            // Where it leads, and what it changes in the item: `taken`.
            to: _,
            takes_lease: _,
            renews_lease: _,
            voids_votes: _,
            voids_window: _,
            takes_back_vote: _,
            // Who: `permit`, `owned`.
            roles: _,
            own,
            not_by_executor: _,
            // Whose vote counts: `undecided`; how many: `taken`.
            quorum: _,
            quorum_if: _,
            replaces: _,
            // What the request must contain: `needs`.
            comment_required: _,
            content_digest_required: _,
            sets_window: _,
            when: _,
            inputs: _,
            inside_window,
            attempts,
            holds,
            description: _,
        } = rule;
        self.not_overdue(unasked)?;
        self.undecided(rule, actor)?;
        if !rule.leads_from(&item.state) {
            return Err(self.wrong_state(action, actor));
        }
        let has_owner = match own {
            None | Some(Own::Creator) => true,
            Some(Own::Voter) => !item.votes.is_empty(),
            Some(Own::Holder) => item.lease.is_some(),
        };
        if !has_owner {
            return Err(self.wrong_state(action, actor));
        }
        if let Some(attempts_max) = attempts.filter(|max| item.attempts >= *max) {
            return Err(Refusal::AttemptsUsed { attempts_max });
        }
        match (holds, item.held) {
            (Some(true), true) => return Err(Refusal::AlreadyHeld),
            (Some(false), false) => return Err(Refusal::NotHeld),
            (Some(true), false) | (Some(false), true) | (None, _) => {}
        }
        if item.held && self.definition.hold_blocks(&rule.action) {
            return Err(Refusal::ItemHeld { action: rule.action.clone() });
        }
        if *inside_window {
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

    /// Each person counts once in a round. A round lasts until its votes are voided, or the item leaves the state they
    /// led to.
    fn undecided(self, rule: &Rule, actor: &Actor) -> Result<(), Refusal> {
        let item = self.item;
        let is_in_round = rule.leads_from(&item.state) || rule.to.as_ref() == Some(&item.state);
        if rule.quorum.is_none() || !is_in_round || item.is_terminal(self.definition) {
            return Ok(());
        }
        let is_own = |vote: &Vote| vote.person() == actor.person() || vote.actor_id == actor.actor_id;
        let standing = |vote: &&Vote| is_own(vote) && vote.content_digest == item.content_digest;
        match item.votes.iter().find(standing) {
            Some(vote) if !rule.replaces.contains(&vote.action) => Err(Refusal::AlreadyDecided {
                actor_id: vote.actor_id.clone(),
                action: vote.action.clone(),
                at: vote.at,
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn freezes(self, rule: &Rule) -> bool {
        let rules = self.definition.rules();
        let editable = |name: &str| rules.state(name).is_some_and(|state| state.editable);
        let freezes = rule.to.as_ref().is_some_and(|to| !editable(to) && !rules.is_terminal(to));
        freezes && editable(&self.item.state)
    }

    /// When content stops being editable, it is frozen and must be complete, unless the item ends.
    pub(super) fn payload_complete(self, rule: &Rule, unasked: &mut Vec<Unasked>) -> Result<(), Refusal> {
        if !self.freezes(rule) {
            return Ok(());
        }
        if self.item.payload.is_left_out() {
            unasked.push(Unasked::Payload);
            return Ok(());
        }
        let faults = self.definition.payload_faults(&self.item.payload.value());
        if faults.is_empty() { Ok(()) } else { Err(Refusal::Invalid(faults)) }
    }
}
