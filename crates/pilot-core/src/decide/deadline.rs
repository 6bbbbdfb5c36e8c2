//! When an item leaves its state by itself.

use crate::item::Item;
use crate::time::Time;
use crate::workflow::{Definition, Due, Mark, Name, Timer};

/// When an item leaves its state by itself, and to where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    pub at: Time,
    pub to: Name,
}

/// The earliest deadline of the item's state. It keeps running while the item is held. For a window that can no longer
/// be read, the latest possible end counts.
pub fn due_at(definition: &Definition, item: &Item) -> Option<Deadline> {
    earliest(timers(definition, item), item)
}

pub(super) fn timers<'d>(definition: &'d Definition, item: &'d Item) -> impl Iterator<Item = &'d Timer> {
    definition.rules().timers.iter().filter(|timer| timer.from.contains(&item.state))
}

pub(super) fn ends_window(timer: &Timer) -> bool {
    match timer.due {
        Due::At(Mark::WindowEnd) => true,
        Due::At(Mark::LeaseEnd) | Due::After(_) => false,
    }
}

pub(super) fn earliest<'d>(timers: impl Iterator<Item = &'d Timer>, item: &Item) -> Option<Deadline> {
    let mut earliest: Option<(Time, &Timer)> = None;
    for timer in timers {
        let at = match &timer.due {
            Due::After(span) => Some(item.entered_at.plus(span.length)),
            Due::At(Mark::WindowEnd) => item.window.as_ref().map(|window| window.not_after),
            Due::At(Mark::LeaseEnd) => item.lease.as_ref().map(|lease| lease.expires_at),
        };
        // If two are due at the same moment, the one that comes first in the definition applies.
        earliest = match (earliest, at) {
            (Some((sooner, timer)), Some(at)) if sooner <= at => Some((sooner, timer)),
            (_, Some(at)) => Some((at, timer)),
            (before, None) => before,
        };
    }
    earliest.map(|(at, timer)| Deadline { at, to: timer.to.clone() })
}
