//! What stands out in the course of one item, by its definition's own rules and not by the names of workflows.

use pilot_core::entry::{Entry, EntryType};
use pilot_core::time::Time;
use pilot_core::workflow::{Due, Mark, Name, Rule, Rules};

use super::kind::Kind;

/// How far an item has come, as its entries tell it.
#[derive(Default)]
pub(super) struct Progress {
    /// Enough votes have let its present content pass.
    is_voted: bool,
    /// Where the first effect began.
    effect: Option<u64>,
    /// That effect began without votes, and none have judged it since.
    is_unjudged: bool,
    /// Its last entry, and the state after it.
    last: Option<(u64, Time, Name)>,
}

/// A move from one state to another.
struct Step<'e> {
    rules: &'e Rules,
    action: &'e str,
    from: &'e Name,
    to: &'e Name,
    is_timer: bool,
}

impl Progress {
    /// Takes in one entry of the item, and says what stands out about it.
    pub(super) fn take(&mut self, rules: &Rules, entry: &Entry) -> Vec<(Kind, String)> {
        if let Some(to) = &entry.to {
            self.last = Some((entry.index, entry.at, to.clone()));
        }
        if entry.r#type == EntryType::ItemEdited {
            self.is_voted = false;
        }
        let (Some(from), Some(to), EntryType::ItemTransition) = (&entry.from, &entry.to, entry.r#type) else {
            return Vec::new();
        };
        let action = entry.action.as_deref().unwrap_or_default();
        match action {
            "hold" => return vec![(Kind::Hold, format!("put on hold in {from}"))],
            "release" => return vec![(Kind::Release, format!("released from its hold in {from}"))],
            _ if from == to => return Vec::new(),
            _ => {}
        }
        let step = Step { rules, action, from, to, is_timer: entry.actor_id.is_none() };
        let mut found = self.judged(&step);
        found.extend(self.carried_out(&step, entry.index));
        found.extend(step.told());
        found
    }

    /// What votes and effects say of a move, and what is remembered of it.
    fn judged(&mut self, step: &Step<'_>) -> Vec<(Kind, String)> {
        let Step { action, from, to, .. } = step;
        let mut found = Vec::new();
        if step.rules.is_terminal(to) && !step.is_timer && self.is_voted && self.effect.is_none() {
            let what = format!("`{action}` ended it after votes had let it pass: {from} to {to}");
            found.push((Kind::StoppedAfterVotes, what));
        }
        let Some(rule) = step.rule() else { return found };
        if rule.quorum.is_some() {
            // Votes that overrule others are votes against what was done.
            if self.is_unjudged && !rule.replaces.is_empty() {
                let what =
                    format!("`{action}` was decided by votes, on an effect that began without any: {from} to {to}");
                found.push((Kind::Condemned, what));
            }
            self.is_unjudged = false;
        }
        // Votes that send an item back to be changed let nothing pass.
        let is_passed = rule.quorum.is_some() && !step.rules.state(to).is_some_and(|state| state.editable);
        self.is_voted = is_passed || self.is_voted && !rule.voids_votes && !rule.takes_back_vote;
        found
    }

    fn carried_out(&mut self, step: &Step<'_>, entry: u64) -> Option<(Kind, String)> {
        let Step { action, from, to, .. } = step;
        if !step.is_effect(to) || step.is_effect(from) {
            return None;
        }
        if self.effect.is_some() {
            return Some((Kind::EffectAgain, format!("`{action}` began an effect again: {from} to {to}")));
        }
        self.effect = Some(entry);
        self.is_unjudged = !self.is_voted;
        let what = || format!("`{action}` began an effect that no votes had let pass: {from} to {to}");
        self.is_unjudged.then(|| (Kind::EffectWithoutVotes, what()))
    }

    /// What stands out about the item as it is now, with its last entry.
    pub(super) fn open_end(&self, rules: &Rules) -> Option<(u64, Time, String)> {
        let effect = self.effect.filter(|_| self.is_unjudged)?;
        let (entry, at, state) = self.last.as_ref().filter(|(_, _, state)| !rules.is_terminal(state))?;
        let what = format!(
            "an effect began without votes at entry {effect}, and no votes have judged it since: it is still {state}"
        );
        Some((*entry, *at, what))
    }
}

impl Step<'_> {
    /// The rule that this move went by, if there is one.
    fn rule(&self) -> Option<&Rule> {
        let is_it = |rule: &&Rule| {
            *rule.action == *self.action && rule.leads_from(self.from) && rule.to.as_ref() == Some(self.to)
        };
        self.rules.transitions.iter().find(is_it)
    }

    fn is_effect(&self, state: &str) -> bool {
        self.rules.state(state).is_some_and(|state| state.kind.is_effect())
    }

    /// A state that a lost lease leads to: nobody knows how the execution ended.
    fn is_uncertain(&self, state: &Name) -> bool {
        let leads = |timer: &pilot_core::workflow::Timer| {
            timer.to == *state
                && timer.due == Due::At(Mark::LeaseEnd)
                && timer.from.iter().any(|from| self.is_effect(from))
        };
        self.rules.timers.iter().any(leads)
    }

    /// What stands out about the move itself.
    fn told(&self) -> Option<(Kind, String)> {
        let Step { action, from, to, .. } = self;
        Some(match (self.is_timer, self.is_effect(from)) {
            (true, true) => (Kind::EffectTimedOut, format!("time ran out in {from}: moved to {to}")),
            (true, false) if self.rules.is_terminal(to) => {
                (Kind::Expired, format!("a deadline passed in {from}: moved to {to}"))
            }
            (false, _) if self.is_uncertain(to) => {
                (Kind::OutcomeUnknown, format!("`{action}` says that nobody knows how it ended: {from} to {to}"))
            }
            (false, _) if self.is_uncertain(from) => {
                (Kind::OutcomeSettled, format!("`{action}` settled how it ended: {from} to {to}"))
            }
            // The name by which every executor reports a failure.
            (false, true) if *action == "fail" => {
                (Kind::ExecutionFailed, format!("`{action}` ended the execution: {from} to {to}"))
            }
            _ => return None,
        })
    }
}
