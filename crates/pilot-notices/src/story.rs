//! What is said about an item: read when a message is sent, so that nobody is told what is no longer so.

use pilot_core::actor::{Actor, ActorId};
use pilot_core::decide::{Waiting, due_at, waiting};
use pilot_core::item::Item;
use pilot_core::leak::LeakGuard;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_setup::config::{Detail, Notice, NoticeKind, Zone};
use pilot_setup::contacts::{Contact, Contacts};

use crate::desk::Kind;
use crate::message::{Line, Person, Task, Why};
use crate::reminders;

/// How many of those who can act are named.
const NAMED_MAX: usize = 3;
const HIGH: &str = "high";

/// Everything that a line is made from besides the item.
pub(crate) struct Stage<'s> {
    pub(crate) notice: &'s Notice,
    pub(crate) contacts: &'s Contacts,
    pub(crate) people: &'s [Actor],
    pub(crate) guard: &'s LeakGuard,
    /// Under which the console is found.
    pub(crate) public_url: Option<&'s str>,
    pub(crate) now: Time,
    /// What clocks on walls say, for the hours of people: the ledger's time may be ahead of them.
    pub(crate) wall: Time,
}

/// What makes it time to look for whom an item waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// It has moved.
    Move,
    /// It stays where it is, but someone has done their part.
    Vote,
    Reminder,
}

/// To whom a message goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The chat itself.
    Chat,
    Person(ActorId),
}

impl Place {
    /// As the book names it. No actor has this name, which is not one.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Place::Chat => "*",
            Place::Person(actor) => actor.as_str(),
        }
    }
}

impl Stage<'_> {
    /// Whether items of this workflow are told about at all.
    pub(crate) fn is_about(&self, definition: &Definition) -> bool {
        let workflows = &self.notice.workflows;
        workflows.is_empty() || workflows.iter().any(|name| **name == **definition.name())
    }

    pub(crate) fn is_urgent(&self, item: &Item) -> bool {
        self.notice.urgent_workflows.iter().any(|name| **name == *item.workflow.name)
            || item.payload.risk().as_deref() == Some(HIGH)
    }

    /// What the item waits for, of the roles that this notice is for, with everyone who can do it.
    fn tasks(&self, definition: &Definition, item: &Item) -> Vec<Waiting> {
        // What is cleared for a window to come waits for those who will carry it out in it.
        let opens = item.window.as_ref().map_or(Time::EPOCH, |window| window.not_before);
        let mut tasks = waiting(definition, item, self.people, usize::MAX, self.now.max(opens));
        let roles = &self.notice.waits_for;
        tasks.retain(|task| (roles.is_empty() || roles.contains(&task.role)) && !task.who.actors.is_empty());
        tasks
    }

    fn contact(&self, actor: &ActorId) -> Option<&Contact> {
        self.contacts.of(actor)
    }

    fn is_backup(&self, actor: &ActorId) -> bool {
        self.contact(actor).is_some_and(|contact| contact.backup)
    }

    /// Whether the item waits for this place.
    pub(crate) fn waits(&self, definition: &Definition, item: &Item, place: &Place) -> bool {
        self.is_about(definition)
            && self.tasks(definition, item).iter().any(|task| match place {
                Place::Chat => true,
                Place::Person(actor) => task.who.actors.contains(actor),
            })
    }

    /// Who is told, and why. The actor `by` caused it and knows.
    pub(crate) fn places(
        &self,
        definition: &Definition,
        item: &Item,
        by: Option<&ActorId>,
        trigger: Trigger,
    ) -> Vec<(Place, Kind)> {
        if !self.is_about(definition) {
            return Vec::new();
        }
        let tasks = self.tasks(definition, item);
        let mut able: Vec<&ActorId> = tasks.iter().flat_map(|task| &task.who.actors).collect();
        able.retain(|actor| Some(*actor) != by);
        able.sort_unstable();
        able.dedup();
        let (is_reminder, is_vote) = (trigger == Trigger::Reminder, trigger == Trigger::Vote);
        let kind = if is_reminder { Kind::Reminder } else { Kind::Waits };
        if self.notice.kind != NoticeKind::Mail {
            return if able.is_empty() || is_vote { Vec::new() } else { vec![(Place::Chat, kind)] };
        }
        let has_mail = |actor: &&&ActorId| self.contact(actor).is_some_and(|contact| contact.mail.is_some());
        let (backups, first): (Vec<&ActorId>, Vec<&ActorId>) =
            able.iter().filter(has_mail).partition(|actor| self.is_backup(actor));
        // Without a time limit there is no moment at which half of it has passed.
        let all_at_once = !is_reminder && (first.is_empty() || (!is_vote && due_at(definition, item).is_none()));
        let first = first.into_iter().filter(|_| !is_vote);
        let mut places: Vec<_> = first.map(|actor| (Place::Person(actor.clone()), kind)).collect();
        if is_reminder || all_at_once {
            let kind = if is_reminder { Kind::Escalated } else { kind };
            places.extend(backups.into_iter().map(|actor| (Place::Person(actor.clone()), kind)));
        }
        let creator = &item.created_by.actor_id;
        let is_for_creators = self.notice.waits_for.is_empty() || self.notice.waits_for.contains(&Role::Initiator);
        if is_for_creators && item.is_terminal(definition) && Some(creator) != by && has_mail(&&creator) {
            places.push((Place::Person(creator.clone()), Kind::Ended));
        }
        places
    }

    /// `None` if the item no longer waits for this place.
    pub(crate) fn line(&self, definition: &Definition, item: &Item, place: &Place, kind: Kind) -> Option<Line> {
        let zone = self.zone(place);
        let deadline = due_at(definition, item).map(|deadline| deadline.at);
        let left = deadline.map(|at| reminders::in_words(at.since(self.now)));
        let mut tasks = self.tasks(definition, item);
        if let Place::Person(actor) = place {
            tasks.retain(|task| task.who.actors.contains(actor));
        }
        let why = match (kind, left) {
            (Kind::Ended, _) => item.is_terminal(definition).then_some(Why::Ended)?,
            (_, _) if tasks.is_empty() => return None,
            (Kind::Reminder, Some(left)) => Why::Reminder { left },
            (Kind::Escalated, left) => Why::Escalated { left },
            (Kind::Waits | Kind::Reminder, _) => Why::Waits,
        };
        let calls_backups = matches!(why, Why::Reminder { .. } | Why::Escalated { .. });
        let link = |url: &str| format!("{url}/console/items/{}", item.id);
        Some(Line {
            title: (self.notice.detail == Detail::Full).then(|| self.guard.redact(&item.title).into_owned()),
            item: item.id.clone(),
            workflow: definition.rules().title.clone(),
            state: item.state.to_string(),
            risk: item.payload.risk().map(|risk| self.guard.redact(&risk).into_owned()),
            created_by: creator(&item.created_by),
            tasks: if matches!(why, Why::Ended) {
                Vec::new()
            } else {
                tasks.into_iter().map(|task| self.task(task, calls_backups)).collect()
            },
            until: deadline.filter(|_| why != Why::Ended).map(|at| self.until(item, at, zone)),
            link: self.public_url.map(link),
            is_urgent: self.is_urgent(item),
            why,
        })
    }

    fn until(&self, item: &Item, deadline: Time, zone: &Zone) -> String {
        let opens = item.window.as_ref().map(|window| window.not_before).filter(|opens| *opens > self.now);
        match opens {
            Some(opens) => format!("{}, not before {}", zone.written(deadline), zone.written(opens)),
            None => zone.written(deadline),
        }
    }

    fn task(&self, task: Waiting, calls_backups: bool) -> Task {
        let Waiting { action, role, who, needed } = task;
        let person = |actor: &ActorId| Person {
            name: actor.to_string(),
            mention: self.mention(actor).filter(|_| calls_backups || !self.is_backup(actor)),
        };
        let mut actors = who.actors;
        // Those who are to act first are named first.
        actors.sort_by_key(|actor| self.is_backup(actor));
        Task {
            action: action.to_string(),
            role,
            needed,
            who: actors.iter().take(NAMED_MAX).map(person).collect(),
            others: who.others + actors.len().saturating_sub(NAMED_MAX),
        }
    }

    fn mention(&self, actor: &ActorId) -> Option<String> {
        let contact = self.contact(actor)?;
        match self.notice.kind {
            NoticeKind::Slack => contact.slack.clone(),
            NoticeKind::Teams => contact.teams.clone(),
            NoticeKind::Mail => None,
        }
    }

    pub(crate) fn zone(&self, place: &Place) -> &Zone {
        let own = match place {
            Place::Chat => None,
            Place::Person(actor) => self.contact(actor).and_then(|contact| contact.time_zone.as_ref()),
        };
        own.unwrap_or(&self.notice.time_zone)
    }

    /// If this place is not to be disturbed now: until when.
    pub(crate) fn quiet_until(&self, place: &Place) -> Option<Time> {
        let own = match place {
            Place::Chat => None,
            Place::Person(actor) => self.contact(actor).and_then(|contact| contact.quiet_hours),
        };
        own.or(self.notice.quiet_hours)?.until(self.zone(place), self.wall)
    }
}

/// A machine is named with the person who answers for it.
fn creator(actor: &Actor) -> String {
    match &actor.operated_by {
        Some(operator) => format!("{}, machine of {operator}", actor.actor_id),
        None => actor.actor_id.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_named_with_the_person_who_answers_for_it() {
        let ana = Actor::new("ana".parse().unwrap(), Role::Initiator);
        let bot =
            Actor { operated_by: Some("ana".parse().unwrap()), ..Actor::new("bot".parse().unwrap(), Role::Initiator) };
        assert_eq!((creator(&ana).as_str(), creator(&bot).as_str()), ("ana", "bot, machine of ana"));
    }
}
