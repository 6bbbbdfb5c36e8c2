//! An item's history by its entries alone: what can be judged even where every document was left out, and a second
//! look, written apart from `decide`, where nothing was.

use std::collections::BTreeMap;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::document::ContentDigest;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::{Definition, Name, Own, Rule};

use crate::replay::Stray;

/// A move that took votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    pub action: Name,
    pub have: usize,
    /// More may have been needed, by a content that only the documents tell.
    pub at_least: u32,
    pub is_exact: bool,
}

#[derive(Debug, Clone)]
pub struct Outline {
    pub state: Name,
    pub version: u64,
    pub content: ContentDigest,
    pub creator: ActorId,
    /// Everyone who moved or wrote the item, and their role.
    pub people: BTreeMap<ActorId, Role>,
    pub carried: Vec<Carried>,
    /// Moves that needed to be inside a window.
    pub windowed: usize,
    at: Time,
    held: bool,
    votes: BTreeMap<ActorId, Name>,
}

fn wrong<T>(rule: &'static str, what: impl Into<String>) -> Result<T, Stray> {
    Err(Stray::wrong(rule, what))
}

fn person(entry: &Entry) -> Result<Actor, Stray> {
    match (&entry.actor_id, entry.role) {
        (Some(actor_id), Some(role)) => Ok(Actor { actor_id: actor_id.clone(), role }),
        _ => wrong("history", "nobody is named as its actor"),
    }
}

impl Outline {
    pub fn begin(definition: &Definition, entry: &Entry) -> Result<Outline, Stray> {
        if entry.r#type != EntryType::ItemCreated {
            return wrong("version_gap", format!("the history begins with {}, not with the creation", entry.r#type));
        }
        let actor = person(entry)?;
        let (Some(content), Some(state)) = (entry.content.clone(), entry.to.clone()) else {
            return wrong("history", "no content or no state is named");
        };
        if actor.role != Role::Initiator {
            return wrong("role_forbidden", format!("{} creates it as {}", actor.actor_id, actor.role));
        }
        if entry.version != Some(1) || entry.from.is_some() || state != definition.rules().initial {
            return wrong("history", "an item begins with version 1 in its first state");
        }
        Ok(Outline {
            state,
            version: 1,
            content,
            creator: actor.actor_id.clone(),
            people: BTreeMap::from([(actor.actor_id, actor.role)]),
            carried: Vec::new(),
            windowed: 0,
            at: entry.at,
            held: false,
            votes: BTreeMap::new(),
        })
    }

    pub fn step(&mut self, definition: &Definition, entry: &Entry) -> Result<(), Stray> {
        if entry.definition.as_deref() != Some(&**definition.digest()) {
            return wrong("state_conflict", "it names another definition than the item was created under");
        }
        if entry.at < self.at {
            return wrong("time_order", format!("its time {} is before {}", entry.at, self.at));
        }
        self.at = entry.at;
        let is_comment = entry.r#type == EntryType::ItemComment;
        let version = self.version.saturating_add(u64::from(!is_comment));
        if entry.version != Some(version) {
            let found = entry.version.map_or_else(|| "none".to_owned(), |found| found.to_string());
            return wrong("version_gap", format!("its version is {found}, and the next one is {version}"));
        }
        if is_comment {
            return person(entry).map(drop);
        }
        if entry.from.as_ref() != Some(&self.state) {
            return wrong("state_conflict", format!("it does not begin in {}, where the item is", self.state));
        }
        match entry.r#type {
            EntryType::ItemEdited => self.edit(definition, entry)?,
            EntryType::ItemTransition => self.moved(definition, entry)?,
            kind => return wrong("history", format!("{kind} stands in the middle of the history")),
        }
        self.version = version;
        Ok(())
    }

    fn edit(&mut self, definition: &Definition, entry: &Entry) -> Result<(), Stray> {
        let actor = person(entry)?;
        let editable = definition.rules().state(&self.state).is_some_and(|state| state.editable);
        if !editable || entry.to.as_ref() != Some(&self.state) {
            return wrong("state_conflict", format!("an item is not edited in {}", self.state));
        }
        if actor.actor_id != self.creator {
            return wrong("not_owner", format!("{} did not create the item", actor.actor_id));
        }
        let Some(content) = entry.content.clone() else { return wrong("history", "no content is named") };
        self.content = content;
        self.votes.clear();
        self.separate(&actor)
    }

    fn moved(&mut self, definition: &Definition, entry: &Entry) -> Result<(), Stray> {
        if entry.content.as_ref() != Some(&self.content) {
            return wrong("content_changed", format!("it is about another content than {}", self.content));
        }
        let Some(to) = entry.to.clone() else { return wrong("history", "no state is named") };
        let action = entry.action.as_deref().unwrap_or_default();
        if entry.actor_id.is_none() {
            return self.timer(definition, action, to);
        }
        let actor = person(entry)?;
        match (action, &definition.rules().hold) {
            ("hold" | "release", Some(hold)) => {
                let holds = action == "hold";
                let roles = if holds { hold.roles } else { hold.release_roles };
                if !roles.contains(actor.role) {
                    return wrong("role_forbidden", format!("{action} is for {roles}"));
                }
                if self.held == holds || to != self.state || entry.comment.is_none() {
                    return wrong("state_conflict", format!("{action} does not fit here"));
                }
                self.held = holds;
            }
            _ => self.by_rule(definition, entry, action, &actor, to)?,
        }
        self.separate(&actor)
    }

    fn timer(&mut self, definition: &Definition, action: &str, to: Name) -> Result<(), Stray> {
        let timers = &definition.rules().timers;
        if action != "timer" || !timers.iter().any(|timer| timer.to == to && timer.from.contains(&self.state)) {
            return wrong("state_conflict", format!("no deadline leads from {} to {to}", self.state));
        }
        self.state = to;
        Ok(())
    }

    fn by_rule(
        &mut self,
        definition: &Definition,
        entry: &Entry,
        action: &str,
        actor: &Actor,
        to: Name,
    ) -> Result<(), Stray> {
        let rules = definition.rules();
        let here = || rules.transitions.iter().filter(|rule| *rule.action == *action && rule.leads_from(&self.state));
        if here().next().is_none() {
            return wrong("state_conflict", format!("{action} is not possible in {}", self.state));
        }
        if !here().any(|rule| rule.roles.contains(actor.role)) {
            return wrong(
                "role_forbidden",
                format!("{action} is not for {}, who acts as {}", actor.actor_id, actor.role),
            );
        }
        let leads = |rule: &&Rule| {
            rule.roles.contains(actor.role)
                && (rule.to.as_ref().unwrap_or(&self.state) == &to || (rule.quorum.is_some() && to == self.state))
        };
        let Some(rule) = here().find(leads) else {
            return wrong("state_conflict", format!("{action} does not lead from {} to {to}", self.state));
        };
        if rule.own == Some(Own::Creator) && actor.actor_id != self.creator {
            return wrong("not_owner", format!("{action} is for whoever created the item"));
        }
        if rule.comment_required && entry.comment.is_none() {
            return wrong("invalid_request", format!("{action} needs a comment"));
        }
        if self.held && rules.hold.as_ref().is_some_and(|hold| hold.blocks.contains(&rule.action)) {
            return wrong("item_held", format!("the item is held, and a hold blocks {action}"));
        }
        self.count(rule, actor, &to)?;
        self.windowed += usize::from(rule.inside_window);
        self.state = to;
        Ok(())
    }

    fn count(&mut self, rule: &Rule, actor: &Actor, to: &Name) -> Result<(), Stray> {
        let moves = *to != self.state || rule.quorum.is_none();
        if let Some(quorum) = rule.quorum {
            self.votes.insert(actor.actor_id.clone(), rule.action.clone());
            let have = self.votes.values().filter(|action| **action == rule.action).count();
            let reached = u32::try_from(have).is_ok_and(|have| have >= quorum);
            let is_exact = rule.quorum_if.is_none();
            if moves && !reached || !moves && reached && is_exact {
                let what = format!("{} has {have} votes of {quorum}, and the item goes to {to}", rule.action);
                return wrong("quorum", what);
            }
            if moves {
                self.carried.push(Carried { action: rule.action.clone(), have, at_least: quorum, is_exact });
            }
        }
        if moves && rule.takes_back_vote {
            self.votes.remove(&actor.actor_id);
        }
        if moves && rule.voids_votes {
            self.votes.clear();
        }
        Ok(())
    }

    /// Whoever acts on an item does so in one role, for good.
    fn separate(&mut self, actor: &Actor) -> Result<(), Stray> {
        match self.people.insert(actor.actor_id.clone(), actor.role) {
            Some(role) if role != actor.role => wrong(
                "separation_of_duties",
                format!("{} took part as {role} and acts as {}", actor.actor_id, actor.role),
            ),
            _ => Ok(()),
        }
    }
}
