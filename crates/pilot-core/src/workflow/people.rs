//! The rules and a role map together: whether there are enough people, how few could conspire, and who is
//! indispensable.

use serde::Serialize;

use crate::actor::Actor;
use crate::certain::Certain as _;
use crate::role::Role;
use crate::role_map::RoleMap;
use crate::workflow::search::{Limits, Model, Node};
use crate::workflow::{Rule, Rules};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct People {
    pub roles: Vec<Staffing>,
    /// Whether these people can take an item from its creation through an effect to an end.
    pub finishable: bool,
    /// The smallest group that could bring about an effect by conspiring; `None` if no group can.
    pub smallest_group: Option<Vec<Actor>>,
    /// If any one of these is absent, there are items that nobody can finish.
    pub indispensable: Vec<Actor>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Staffing {
    pub role: Role,
    pub have: u32,
    pub need: u32,
}

/// The number of people in each role, in the order of [`Role::ALL`].
type Heads = [u32; 5];

pub fn examine(rules: &Rules, map: &RoleMap) -> People {
    let model = Model::new(rules);
    let people = |role: Role| map.actors.iter().filter(move |mapped| mapped.actor.role == role);
    let all: Heads =
        Role::ALL.map(|role| u32::try_from(people(role).count()).certain("a role map has fewer people than bytes"));
    let finishable = can_finish(&model, all);
    let missed = |role: Role| finishable && !can_finish(&model, one_less(all, role));
    let group = smallest_group(&model, all).map(|heads| {
        let members = |role: Role| people(role).take(count(heads, role) as usize).map(|mapped| mapped.actor.clone());
        Role::ALL.into_iter().flat_map(members).collect()
    });
    let missed_actors = map.actors.iter().map(|mapped| mapped.actor.clone()).filter(|actor| missed(actor.role));
    let staffing = Role::ALL.map(|role| Staffing { role, have: count(all, role), need: needed(rules, role) });
    People {
        roles: staffing.into_iter().filter(|staffing| staffing.need > 0).collect(),
        finishable,
        smallest_group: group,
        indispensable: missed_actors.collect(),
    }
}

fn count(heads: Heads, role: Role) -> u32 {
    *heads.get(role as usize).certain("there is a count for each role")
}

fn one_less(mut heads: Heads, role: Role) -> Heads {
    if let Some(count) = heads.get_mut(role as usize) {
        *count = count.saturating_sub(1);
    }
    heads
}

/// The most people of one role that a single step of the rules requires.
fn needed(rules: &Rules, role: Role) -> u32 {
    let creates = u32::from(role == Role::Initiator);
    let asked = rules.transitions.iter().filter(|rule| rule.roles.contains(role)).map(|rule| {
        let alone = rule.roles.len() == 1;
        if alone { largest_quorum(rule) } else { 1 }
    });
    asked.max().unwrap_or(0).max(creates)
}

fn largest_quorum(rule: &Rule) -> u32 {
    rule.quorum.unwrap_or(1).max(rule.quorum_if.as_ref().map_or(0, |raised| raised.quorum))
}

/// Whether this many people can take a rule; `quorum` says how many it requires.
fn enough(heads: Heads, rule: &Rule, taken_by: Role, quorum: u32) -> bool {
    count(heads, taken_by) > 0 && rule.roles.iter().map(|role| count(heads, role)).sum::<u32>() >= quorum
}

/// People only: an item that ends because time ran out was not finished by anyone.
fn can_finish(model: &Model<'_>, heads: Heads) -> bool {
    let able = |rule: &Rule, role: Role| enough(heads, rule, role, largest_quorum(rule));
    let limits = Limits { able: &able, timers: false, grants: false };
    let Some(start) = model.start().filter(|_| count(heads, Role::Initiator) > 0) else { return false };
    let begun = model.explore(&[start], &limits);
    let effects: Vec<Node> = begun.nodes.into_iter().filter(|node| model.is_effect(node.state)).collect();
    model.explore(&effects, &limits).nodes.iter().any(|node| model.is_terminal(node.state))
}

/// Conspirators choose the payload too, so the lowest quorum counts.
fn reaches_effect(model: &Model<'_>, heads: Heads) -> bool {
    let able = |rule: &Rule, role: Role| enough(heads, rule, role, rule.quorum.unwrap_or(1));
    let Some(start) = model.start().filter(|_| count(heads, Role::Initiator) > 0) else { return false };
    let reached = model.explore(&[start], &Limits { able: &able, timers: true, grants: false });
    reached.nodes.iter().any(|node| model.is_effect(node.state))
}

/// Tries every combination of head counts that could matter, smallest first. More people than the largest quorum of a
/// role change nothing, so there are at most 10 × 10 × 10 × 10 combinations.
fn smallest_group(model: &Model<'_>, all: Heads) -> Option<Heads> {
    let rules = &model.rules.transitions;
    let quorum = |role: Role| {
        let of_role = rules.iter().filter(|rule| rule.roles.contains(role));
        of_role.map(|rule| rule.quorum.unwrap_or(1)).max().unwrap_or(0)
    };
    let top = Role::ALL.map(|role| count(all, role).min(quorum(role).max(u32::from(role == Role::Initiator))));
    if !reaches_effect(model, top) {
        return None;
    }
    let mut combinations: Vec<Heads> = vec![[0; 5]];
    for role in Role::ALL {
        let more = |heads: &Heads| {
            let heads = *heads;
            (0..=count(top, role)).map(move |number| with(heads, role, number)).collect::<Vec<_>>()
        };
        combinations = combinations.iter().flat_map(more).collect();
    }
    combinations.sort_by_key(|heads| heads.iter().sum::<u32>());
    combinations.into_iter().find(|heads| reaches_effect(model, *heads))
}

fn with(mut heads: Heads, role: Role, number: u32) -> Heads {
    if let Some(count) = heads.get_mut(role as usize) {
        *count = number;
    }
    heads
}
