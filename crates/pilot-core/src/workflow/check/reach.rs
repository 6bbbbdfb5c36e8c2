//! What shows only when the rules are followed: who must have granted, what cannot be reached, where items get stuck.

use std::collections::BTreeSet;

use crate::role::Role;
use crate::role_set::RoleSet;
use crate::workflow::search::{Limits, Model, Reached};
use crate::workflow::source::Finding;
use crate::workflow::{Own, Rule};

pub(super) fn check(model: &Model<'_>) -> (Vec<Finding>, usize) {
    let Some(start) = model.start() else { return (Vec::new(), 0) };
    let reached = model.explore(&[start], &Limits { able: &|_, _| true, timers: true, grants: true });
    let mut findings = granting_timers(model, &reached);
    findings.extend(effects(model, &reached));
    findings.extend(unreachable(model, &reached));
    findings.extend(never_taken(model, &reached));
    findings.extend(blind_votes(model));
    findings.extend(dead_ends(model, &reached));
    (findings, reached.nodes.len())
}

/// Time only takes rights away.
fn granting_timers(model: &Model<'_>, reached: &Reached) -> Vec<Finding> {
    let number = |name: &str| model.rules.states.iter().position(|state| *state.name == *name);
    let mut findings = Vec::new();
    for (index, timer) in model.rules.timers.iter().enumerate() {
        let ends = timer.from.iter().filter_map(|from| Some((from, number(from)?, number(&timer.to)?)));
        for (name, from, _) in
            ends.filter(|(_, from, to)| !model.is_terminal(*from) && !model.is_less_right(*from, *to))
        {
            let before = reached.first(|node| node.state == from);
            let mut path = before.map_or_else(|| vec![format!("the item is {name}")], |node| model.way(reached, node));
            path.push(format!("nobody acts; {} → {}", timer.due, timer.to));
            findings.push(
                Finding::new("timer_grants", format!("/timer/{index}/to"))
                    .says(format!("waiting long enough would move the item from {name} to {}, which is no further from an effect", timer.to))
                    .path(path)
                    .mend("a timer may only take rights away: point it to a terminal state, or to a state from which an effect is further away"),
            );
        }
    }
    findings
}

/// No effect without each of the required roles. Separation of duties makes them different people: one actor acts on an
/// item in only one role.
fn effects(model: &Model<'_>, reached: &Reached) -> Vec<Finding> {
    let required = model.rules.required_roles;
    let missing = |index: usize| match reached.nodes.get(index) {
        Some(node) if model.is_effect(node.state) => required.without(node.granted),
        _ => RoleSet::EMPTY,
    };
    let mut findings = Vec::new();
    for state in 0..model.rules.states.len() {
        let broken = (0..reached.nodes.len()).find(|index| {
            reached.nodes.get(*index).is_some_and(|node| node.state == state) && !missing(*index).is_empty()
        });
        let Some(broken) = broken else { continue };
        // What follows from an effect that was reached wrongly is the same flaw again.
        let before = std::iter::successors(reached.parent(broken), |index| reached.parent(*index));
        if before.into_iter().any(|index| !missing(index).is_empty()) {
            continue;
        }
        let lacking = missing(broken);
        let words = lacking.iter().map(Role::as_str).collect::<Vec<_>>().join(" and ");
        findings.push(
            Finding::new("effect_without_role", format!("/state/{state}/name"))
                .says(format!("{} can be reached without {words}", model.name(state)))
                .path(model.way(reached, broken))
                .mend(format!(
                    "make every path to {} pass a transition that only {words} can take, after the last edit",
                    model.name(state)
                )),
        );
    }
    findings
}

fn unreachable(model: &Model<'_>, reached: &Reached) -> Vec<Finding> {
    let states = model.rules.states.iter().enumerate().filter(|(index, _)| !reached.any(*index));
    states
        .map(|(index, state)| {
            Finding::new("unreachable", format!("/state/{index}/name"))
                .says(format!("no item can ever reach {}", state.name))
                .mend("add a transition that leads here, or remove the state")
        })
        .collect()
}

/// Rules that are possible in no situation: a promise nobody can keep.
fn never_taken(model: &Model<'_>, reached: &Reached) -> Vec<Finding> {
    let live = |name: &str| {
        let index = model.rules.states.iter().position(|state| *state.name == *name);
        index.filter(|index| reached.any(*index) && !model.is_terminal(*index))
    };
    let mut findings = Vec::new();
    for (index, rule) in model.rules.transitions.iter().enumerate() {
        for (place, from) in rule.from.iter().enumerate() {
            // An owner who can never have the role is reported elsewhere.
            let owner_fits = match rule.own {
                Some(Own::Creator) => rule.roles.contains(Role::Initiator),
                Some(Own::Voter | Own::Holder) | None => true,
            };
            if owner_fits && live(from).is_some_and(|state| !reached.was_taken(index, state)) {
                let finding = Finding::new("never_possible", format!("/transition/{index}/from/{place}"));
                let says = format!("{} is never possible in {from}: {}", rule.action, lacking(rule));
                findings.push(
                    finding
                        .says(says)
                        .mend("remove the state from `from`, or make sure that items have what is missing by then"),
                );
            }
        }
    }
    for (index, timer) in model.rules.timers.iter().enumerate() {
        for (place, from) in timer.from.iter().enumerate() {
            if live(from).is_some_and(|state| !reached.was_waited_for(index, state)) {
                let says = format!(
                    "the timer {} never runs in {from}, because items have no such window or lease there",
                    timer.due
                );
                let finding = Finding::new("never_possible", format!("/timer/{index}/from/{place}")).says(says);
                findings.push(finding.mend("remove the state from `from`, or set the window or lease earlier"));
            }
        }
    }
    findings
}

fn lacking(rule: &Rule) -> &'static str {
    match rule.own {
        Some(Own::Voter) => "no vote stands there",
        Some(Own::Holder) => "nobody holds a lease there",
        Some(Own::Creator) => "its creator has none of its roles",
        None if rule.inside_window => "no window is set there",
        None => "nobody can take it",
    }
}

/// A vote that grants must name its content; otherwise it could count for content the voter never saw.
fn blind_votes(model: &Model<'_>) -> Vec<Finding> {
    let number = |name: &str| model.rules.states.iter().position(|state| *state.name == *name);
    let grants = |rule: &Rule| {
        let to = rule.to.as_ref().and_then(|to| number(to));
        rule.from.iter().filter_map(|from| number(from)).any(|from| to.is_some_and(|to| model.grants(from, to)))
    };
    let rules = model.rules.transitions.iter().enumerate();
    let blind = rules.filter(|(_, rule)| rule.quorum.is_some() && !rule.content_digest_required && grants(rule));
    blind
        .map(|(index, rule)| {
            Finding::new("blind_vote", format!("/transition/{index}"))
                .says(format!("a vote for {} does not say which content it is for", rule.action))
                .mend("add content_digest = \"required\"")
        })
        .collect()
}

/// An item must be able to end whatever has run out: its window, its attempts, or the lease holder's patience.
fn dead_ends(model: &Model<'_>, reached: &Reached) -> Vec<Finding> {
    let rules = model.rules;
    let sure = |rule: &&Rule| {
        let is_someone_there = match rule.own {
            Some(Own::Holder) => false,
            Some(Own::Creator | Own::Voter) | None => true,
        };
        rule.attempts.is_none() && !rule.inside_window && is_someone_there
    };
    let mut ways: Vec<(&str, &str)> = Vec::new();
    for rule in rules.transitions.iter().filter(sure) {
        ways.extend(rule.to.iter().flat_map(|to| rule.from.iter().map(move |from| (&**from, &**to))));
    }
    ways.extend(rules.timers.iter().flat_map(|timer| timer.from.iter().map(move |from| (&**from, &*timer.to))));
    let ends = rules.states.iter().filter(|state| state.kind.is_terminal());
    let mut ending: BTreeSet<&str> = ends.map(|state| &*state.name).collect();
    loop {
        let more: Vec<&str> = ways
            .iter()
            .filter(|(from, to)| ending.contains(to) && !ending.contains(from))
            .map(|(from, _)| *from)
            .collect();
        if more.is_empty() {
            break;
        }
        ending.extend(more);
    }
    let stuck = rules.states.iter().enumerate().filter(|(_, state)| !ending.contains(&*state.name));
    stuck
        .filter_map(|(index, state)| {
            let node = reached.first(|node| node.state == index)?;
            Some(
                Finding::new("dead_end", format!("/state/{index}/name"))
                    .says(format!("an item that is {} may never end", state.name))
                    .path(model.way(reached, node))
                    .mend("add a timer or transition that leads towards a terminal state and needs no lease, window or remaining attempt"),
            )
        })
        .collect()
}
