//! Deadlines. Time takes rights away and never gives one: the prover holds every definition to that.

use crate::decide::{Case, Change, Transition};
use crate::item::Item;
use crate::refusal::Refusal;
use crate::time::Time;
use crate::workflow::{Definition, Due, Mark, Name, Timer};

/// When an item leaves its state by itself, and to where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    pub at: Time,
    pub to: Name,
}

/// The earliest deadline of the item's state. It runs on while the item is held.
pub fn due_at(definition: &Definition, item: &Item) -> Option<Deadline> {
    let timers = definition.rules().timers.iter();
    let here = timers.filter(|timer| timer.from.iter().any(|from| *from == item.state));
    let mut earliest: Option<(Time, &Timer)> = None;
    for timer in here {
        let at = match &timer.due {
            Due::After(span) => Some(item.entered_at.plus(span.length)),
            Due::At(Mark::WindowEnd) => item.window.as_ref().map(|window| window.not_after),
            Due::At(Mark::LeaseEnd) => item.lease.as_ref().map(|lease| lease.expires_at),
        };
        // Of two at the same moment the one written first counts.
        earliest = match (earliest, at) {
            (Some((sooner, timer)), Some(at)) if sooner <= at => Some((sooner, timer)),
            (_, Some(at)) => Some((at, timer)),
            (before, None) => before,
        };
    }
    earliest.map(|(at, timer)| Deadline { at, to: timer.to.clone() })
}

impl Case<'_> {
    pub(super) fn expire(self) -> Result<Transition, Refusal> {
        let deadline = due_at(self.definition, self.item).filter(|deadline| deadline.at <= self.at);
        let Deadline { to, .. } = deadline.ok_or(Refusal::NothingDue)?;
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
        })
    }
}
