//! Deadlines. Timers take rights away and never give any: the prover checks that for every definition.

use crate::decide::{Case, Change, Transition, Unasked};
use crate::item::{Item, Window};
use crate::refusal::Refusal;
use crate::time::Time;
use crate::workflow::{Definition, Due, Mark, Name, Timer};

/// When an item leaves its state by itself, and to where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    pub at: Time,
    pub to: Name,
}

/// The earliest deadline of the item's state. It keeps running while the item is held. For a window that is no longer
/// known, the latest possible end counts.
pub fn due_at(definition: &Definition, item: &Item) -> Option<Deadline> {
    earliest(timers(definition, item), item)
}

fn timers<'d>(definition: &'d Definition, item: &'d Item) -> impl Iterator<Item = &'d Timer> {
    definition.rules().timers.iter().filter(|timer| timer.from.contains(&item.state))
}

fn ends_window(timer: &Timer) -> bool {
    timer.due == Due::At(Mark::WindowEnd)
}

fn earliest<'d>(timers: impl Iterator<Item = &'d Timer>, item: &Item) -> Option<Deadline> {
    let mut earliest: Option<(Time, &Timer)> = None;
    for timer in timers {
        let at = match &timer.due {
            Due::After(span) => Some(item.entered_at.plus(span.length)),
            Due::At(Mark::WindowEnd) => item.window.as_ref().map(|window| window.not_after),
            Due::At(Mark::LeaseEnd) => item.lease.as_ref().map(|lease| lease.expires_at),
        };
        // If two are due at the same moment, the one written first applies.
        earliest = match (earliest, at) {
            (Some((sooner, timer)), Some(at)) if sooner <= at => Some((sooner, timer)),
            (_, Some(at)) => Some((at, timer)),
            (before, None) => before,
        };
    }
    earliest.map(|(at, timer)| Deadline { at, to: timer.to.clone() })
}

impl<'c> Case<'c> {
    /// A window that is no longer known, if its end is a deadline of the item's state.
    fn unknown_end(self) -> Option<(&'c Window, &'c Timer)> {
        let window = self.item.window.as_ref().filter(|window| window.is_left_out)?;
        timers(self.definition, self.item).find(|timer| ends_window(timer)).map(|timer| (window, timer))
    }

    pub(super) fn window_may_have_ended(self) -> bool {
        self.unknown_end().is_some_and(|(window, _)| window.not_before < self.at)
    }

    /// Where a deadline that has passed leads. If one of them is the end of an unknown window, each that may have been
    /// the first is possible, and the one that the item took was the first.
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
