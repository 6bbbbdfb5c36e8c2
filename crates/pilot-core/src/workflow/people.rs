//! The rules and a role map together: whether there are enough people, how few could conspire, and who is
//! indispensable.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::actor::{Actor, ActorId};
use crate::certain::Certain as _;
use crate::role::Role;
use crate::role_map::RoleMap;
use crate::role_set::RoleSet;
use crate::workflow::search::{Limits, Model, Node};
use crate::workflow::{Rule, Rules};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct People {
    pub roles: Vec<Staffing>,
    /// People who have more than one role through the machines they operate. On one item they have only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_several_roles: Vec<InSeveralRoles>,
    /// Whether these people can take an item from its creation through an effect to an end.
    pub finishable: bool,
    /// The smallest group that could bring about an effect by conspiring; `None` if no group can.
    pub smallest_group: Option<Vec<Actor>>,
    /// If any one of these is absent, there are items that nobody can finish.
    pub indispensable: Vec<Actor>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InSeveralRoles {
    pub actor_id: ActorId,
    pub roles: Vec<Role>,
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
    let (model, people) = (Model::new(rules), people_of(map));
    let crew = Crew::of(people.values());
    let finishable = crew.can_finish(&model);
    // Everyone with the same roles is missed in the same way, so each set of roles is asked about once.
    let missed: Vec<RoleSet> =
        crew.sets().filter(|roles| finishable && !crew.without(*roles).can_finish(&model)).collect();
    let is_missed = |actor: &Actor| people.get(actor.person()).is_some_and(|roles| missed.contains(roles));
    // A machine is missed with its operator, and only the operator is named.
    let persons = map.actors.iter().map(|mapped| &mapped.actor).filter(|actor| actor.operated_by.is_none());
    let indispensable = persons.filter(|actor| is_missed(actor)).cloned().collect();
    let staffing = Role::ALL.map(|role| Staffing { role, have: count(crew.all(), role), need: needed(rules, role) });
    People {
        roles: staffing.into_iter().filter(|staffing| staffing.need > 0).collect(),
        in_several_roles: people
            .iter()
            .filter(|(_, roles)| roles.len() > 1)
            .map(|(person, roles)| InSeveralRoles { actor_id: (*person).clone(), roles: roles.iter().collect() })
            .collect(),
        finishable,
        smallest_group: crew.smallest_group(&model).map(|heads| named(map, &people, crew, heads)),
        indispensable,
    }
}

/// Each person, with the roles they have in person or through a machine.
fn people_of(map: &RoleMap) -> BTreeMap<&ActorId, RoleSet> {
    let mut people = BTreeMap::new();
    for actor in map.actors.iter().map(|mapped| &mapped.actor) {
        let roles: &mut RoleSet = people.entry(actor.person()).or_default();
        *roles = roles.with(actor.role);
    }
    people
}

/// How many people have exactly these roles, by the set's number. A person counts once, however many machines they
/// operate, and takes part in an item in one role only.
#[derive(Clone, Copy)]
struct Crew([u32; RoleSet::COUNT]);

impl Crew {
    fn of<'r>(people: impl Iterator<Item = &'r RoleSet>) -> Crew {
        let mut crew = Crew([0; RoleSet::COUNT]);
        for roles in people {
            let number = crew.0.get_mut(roles.index()).certain("there is a count for each set of roles");
            *number += 1;
        }
        crew
    }

    fn number(self, is_meant: impl Fn(RoleSet) -> bool) -> u32 {
        RoleSet::all_sets().zip(self.0).filter(|(roles, _)| is_meant(*roles)).map(|(_, number)| number).sum()
    }

    /// The sets of roles that someone has.
    fn sets(&self) -> impl Iterator<Item = RoleSet> {
        RoleSet::all_sets().zip(self.0).filter(|(_, number)| *number > 0).map(|(roles, _)| roles)
    }

    /// Without one person who has these roles.
    fn without(mut self, roles: RoleSet) -> Crew {
        if let Some(number) = self.0.get_mut(roles.index()) {
            *number = number.saturating_sub(1);
        }
        self
    }

    /// How many could act in each role, if they acted in no other.
    fn all(self) -> Heads {
        Role::ALL.map(|role| self.number(|roles| roles.contains(role)))
    }

    /// Whether that many can act in each role, nobody in two: for every choice of roles there must be enough people
    /// who have one of them (Hall's theorem).
    fn covers(self, heads: Heads) -> bool {
        RoleSet::all_sets().all(|chosen| {
            let wanted: u32 = chosen.iter().map(|role| count(heads, role)).sum();
            self.number(|roles| !roles.shared(chosen).is_empty()) >= wanted
        })
    }

    /// As many as could matter in each role: more than the largest quorum change nothing.
    fn top(self, quorum: impl Fn(Role) -> u32) -> Heads {
        Role::ALL.map(|role| count(self.all(), role).min(quorum(role)))
    }

    fn can_finish(self, model: &Model<'_>) -> bool {
        let top = self.top(|role| most(model.rules, role, largest_quorum));
        if self.covers(top) || !can_finish(model, top) {
            return can_finish(model, top);
        }
        // Someone is wanted in two roles at once. Large groups first: most of them suffice.
        divisions(top).into_iter().rev().any(|heads| self.covers(heads) && can_finish(model, heads))
    }

    fn smallest_group(self, model: &Model<'_>) -> Option<Heads> {
        let top = self.top(|role| most(model.rules, role, |rule| rule.quorum.unwrap_or(1)));
        if !reaches_effect(model, top) {
            return None;
        }
        divisions(top).into_iter().find(|heads| self.covers(*heads) && reaches_effect(model, *heads))
    }
}

/// Every way to have at most that many people in each role, the smallest groups first: at most 10 × 10 × 10 × 10 × 10.
fn divisions(top: Heads) -> Vec<Heads> {
    let mut divisions: Vec<Heads> = vec![[0; 5]];
    for role in Role::ALL {
        let more = |heads: &Heads| {
            let heads = *heads;
            (0..=count(top, role)).map(move |number| with(heads, role, number)).collect::<Vec<_>>()
        };
        divisions = divisions.iter().flat_map(more).collect();
    }
    divisions.sort_by_key(|heads| heads.iter().sum::<u32>());
    divisions
}

/// People for these roles, nobody twice, as the map lists them. There are some, since the crew covers the roles.
fn named(map: &RoleMap, people: &BTreeMap<&ActorId, RoleSet>, mut crew: Crew, mut heads: Heads) -> Vec<Actor> {
    let mut named: Vec<Actor> = Vec::new();
    for role in Role::ALL {
        for actor in map.actors.iter().map(|mapped| &mapped.actor).filter(|actor| actor.role == role) {
            let is_taken = named.iter().any(|other| other.person() == actor.person());
            let Some(roles) = people.get(actor.person()).filter(|_| count(heads, role) > 0 && !is_taken) else {
                continue;
            };
            let (rest, less) = (crew.without(*roles), with(heads, role, count(heads, role) - 1));
            if rest.covers(less) {
                named.push(actor.clone());
                (crew, heads) = (rest, less);
            }
        }
    }
    named
}

fn count(heads: Heads, role: Role) -> u32 {
    *heads.get(role as usize).certain("there is a count for each role")
}

/// The most people of a role that any rule asks for. Someone has to create the item.
fn most(rules: &Rules, role: Role, asks: impl Fn(&Rule) -> u32) -> u32 {
    let of_role = rules.transitions.iter().filter(|rule| rule.roles.contains(role));
    of_role.map(asks).max().unwrap_or(0).max(u32::from(role == Role::Initiator))
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

fn with(mut heads: Heads, role: Role, number: u32) -> Heads {
    if let Some(count) = heads.get_mut(role as usize) {
        *count = number;
    }
    heads
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::workflow::builtin::builtin;

    /// `ana:initiator bot:initiator<ben`: actors, and who operates them.
    fn check(cast: &str, expected: &Expect) {
        let actors = cast.split_whitespace().map(|entry| {
            let (name, part) = entry.split_once(':').unwrap();
            match part.split_once('<') {
                None => format!(r#"{{"actor_id": "{name}", "role": "{part}"}}"#),
                Some((role, operator)) => format!(
                    r#"{{"actor_id": "{name}", "role": "{role}", "kind": "machine", "operated_by": "{operator}"}}"#
                ),
            }
        });
        let actors = actors.collect::<Vec<_>>().join(", ");
        let map = format!(r#"{{"schema_version": 1, "approved_by": ["x", "y"], "actors": [{actors}]}}"#);
        let [controlled, _] = builtin();
        let found = examine(controlled.rules(), &RoleMap::parse(map.as_bytes()).unwrap());
        let names = |actors: &[Actor]| actors.iter().map(Actor::to_string).collect::<Vec<_>>().join(", ");
        let have = found.roles.iter().map(|staffing| format!("{} {}/{}", staffing.role, staffing.have, staffing.need));
        expected.assert_eq(&format!(
            "{}; finishable: {}; smallest group: {}; indispensable: {}",
            have.collect::<Vec<_>>().join(", "),
            found.finishable,
            found.smallest_group.map_or("none".to_owned(), |group| names(&group)),
            names(&found.indispensable),
        ));
    }

    const PEOPLE: &str = "ana:initiator ben:approver bob:approver sam:security_admin eve:executor";

    #[test]
    fn a_machine_is_counted_as_the_person_who_operates_it() {
        check(
            PEOPLE,
            &expect![
                "initiator 1/1, approver 2/2, security_admin 1/1, executor 1/1; finishable: true; smallest group: ana, ben, sam, eve; indispensable: ana, ben, bob, sam, eve"
            ],
        );
        check(
            &format!("{PEOPLE} ai:initiator<ana run:executor<eve"),
            &expect![
                "initiator 1/1, approver 2/2, security_admin 1/1, executor 1/1; finishable: true; smallest group: ana, ben, sam, eve; indispensable: ana, ben, bob, sam, eve"
            ],
        );
    }

    #[test]
    fn a_person_with_machines_in_two_roles_fills_only_one_of_them() {
        // Two approvers are needed for high risk, and ben is one of them: nobody is left to propose.
        check(
            "ai:initiator<ben ben:approver bob:approver sam:security_admin eve:executor",
            &expect![
                "initiator 1/1, approver 2/2, security_admin 1/1, executor 1/1; finishable: false; smallest group: ai (operated by ben), bob, sam, eve; indispensable: "
            ],
        );
        check(
            "ai:initiator<ben ben:approver bob:approver bea:approver sam:security_admin eve:executor",
            &expect![
                "initiator 1/1, approver 3/2, security_admin 1/1, executor 1/1; finishable: true; smallest group: ai (operated by ben), bob, sam, eve; indispensable: ben, bob, bea, sam, eve"
            ],
        );
    }

    #[test]
    fn one_person_with_a_machine_in_every_role_is_not_enough() {
        let all = "ana:initiator a:approver<ana b:approver<ana s:security_admin<ana e:executor<ana";
        check(
            all,
            &expect![
                "initiator 1/1, approver 1/2, security_admin 1/1, executor 1/1; finishable: false; smallest group: none; indispensable: "
            ],
        );
        check(
            &format!("{all} ben:approver sam:security_admin"),
            &expect![
                "initiator 1/1, approver 2/2, security_admin 2/1, executor 1/1; finishable: false; smallest group: none; indispensable: "
            ],
        );
    }
}
