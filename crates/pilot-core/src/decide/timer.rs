//! Deadlines. Timers take rights away and never give any: the prover checks that for every definition.

use super::case::Case;
use super::deadline::{due_at, earliest, ends_window, timers};
use super::transition::{Change, Transition};
use super::unasked::Unasked;
use crate::refusal::Refusal;
use crate::time::Time;
use crate::workflow::Name;

impl Case<'_> {
    /// Where a deadline that has passed leads. If one of them is the end of an unknown window, any that may have been
    /// the first is possible, and the one the item took was the first.
    fn passed(self, unasked: &mut Vec<Unasked>) -> Option<Name> {
        let Some((window, timer)) = self.unknown_end() else {
            return due_at(self.definition, self.item).filter(|deadline| deadline.at <= self.at).map(|due| due.to);
        };
        unasked.push(Unasked::Deadline);
        let others = timers(self.definition, self.item).filter(|timer| !ends_window(timer));
        let other = earliest(others, self.item);
        let is_before = |at: Time| window.not_before < at;
        let end = is_before(self.at) && other.as_ref().is_none_or(|other| is_before(other.at));
        let end = end.then(|| timer.to.clone());
        let other = other.filter(|other| other.at <= self.at && other.at <= window.not_after).map(|other| other.to);
        let led_there = |to: &Name| self.gaps.led_to.as_ref() == Some(to);
        end.clone().filter(led_there).or_else(|| other.clone().filter(led_there)).or(end).or(other)
    }

    pub(super) fn expire(self) -> Result<Transition, Refusal> {
        let mut unasked = Vec::new();
        let to = self.passed(&mut unasked).ok_or(Refusal::NothingDue)?;
        let lease_ends = self.item.lease.is_some() && !self.is_effect(&to);
        Ok(Transition {
            action: "timer".into(),
            from: Some(self.item.state.clone()),
            to,
            actor: None,
            at: self.at,
            comment: None,
            inputs: None,
            version: self.item.version.saturating_add(1),
            changes: lease_ends.then_some(Change::LeaseEnded).into_iter().collect(),
            unasked,
        })
    }
}
