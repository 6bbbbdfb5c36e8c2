//! The case being decided, and the checks common to every kind of request.

use super::deadline::{due_at, ends_window, timers};
use super::request::IfMatch;
use super::unasked::{Gaps, Unasked};
use crate::actor::Actor;
use crate::document::ContentDigest;
use crate::item::{Item, Window};
use crate::refusal::Refusal;
use crate::time::Time;
use crate::workflow::{Definition, Timer};

/// What is being decided on, and when.
#[derive(Clone, Copy)]
pub(super) struct Case<'c> {
    pub(super) definition: &'c Definition,
    pub(super) item: &'c Item,
    pub(super) at: Time,
    pub(super) gaps: &'c Gaps,
}

impl<'c> Case<'c> {
    /// A person who acted on an item in one role never acts on it in another, whatever the role map says now, and
    /// neither does a machine. What a machine does, the person who operates it does.
    pub(super) fn separate(self, actor: &Actor) -> Result<(), Refusal> {
        let role = actor.role;
        for person in [&actor.actor_id, actor.person()] {
            match self.item.part_of(person) {
                Some((as_role, None)) if as_role != role && *person == actor.actor_id => {
                    return Err(Refusal::SameActor { actor_id: person.clone(), as_role, role });
                }
                Some((as_role, through)) if as_role != role => {
                    let (actor, person, through) = (actor.clone(), person.clone(), through.cloned());
                    return Err(Refusal::SamePerson { actor, person, as_role, through });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A due timer wins over a person: nobody can act after a deadline by being faster than the server.
    pub(super) fn not_overdue(self, unasked: &mut Vec<Unasked>) -> Result<(), Refusal> {
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

    /// A window that is no longer known, if its end is a deadline of the item's state.
    pub(super) fn unknown_end(self) -> Option<(&'c Window, &'c Timer)> {
        let window = self.item.window.as_ref().filter(|window| window.is_left_out)?;
        timers(self.definition, self.item).find(|timer| ends_window(timer)).map(|timer| (window, timer))
    }

    pub(super) fn window_may_have_ended(self) -> bool {
        self.unknown_end().is_some_and(|(window, _)| window.not_before < self.at)
    }

    pub(super) fn version(self, if_match: Option<&IfMatch>) -> Result<(), Refusal> {
        if_match.map_or(Ok(()), |if_match| if_match.check(self.item))
    }

    pub(super) fn content(self, decided_on: Option<&ContentDigest>) -> Result<(), Refusal> {
        match decided_on {
            Some(digest) if *digest != self.item.content_digest => {
                Err(Refusal::ContentChanged { actual: self.item.content_digest.clone() })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_effect(self, state: &str) -> bool {
        self.definition.rules().state(state).is_some_and(|state| state.kind.is_effect())
    }
}
