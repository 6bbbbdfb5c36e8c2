//! What can be checked on single rules, without following them.

use std::collections::BTreeSet;

use crate::limits::QUORUM_MAX;
use crate::role::Role;
use crate::role_set::RoleSet;
use crate::workflow::schema::requires;
use crate::workflow::source::Finding;
use crate::workflow::{Due, Hold, Kind, Mark, Own, Rule, Rules, State};

pub(super) fn check(rules: &Rules) -> Vec<Finding> {
    let Rules {
        schema_version: _,
        name: _,
        version: _,
        title: _,
        description: _,
        initial: _,
        required_roles: _,
        // Checked when an item is created, where it can only refuse.
        one_open_per_creator: _,
        states,
        transitions,
        timers: _,
        hold: _,
        payload_schema: _,
    } = rules;
    let mut findings = Vec::new();
    required_roles(rules, &mut findings);
    for (index, state) in states.iter().enumerate() {
        state_kind(rules, state, &format!("/state/{index}"), &mut findings);
    }
    for (index, rule) in transitions.iter().enumerate() {
        let at = format!("/transition/{index}");
        roles(rule.roles, &format!("{at}/roles"), &mut findings);
        quorum(rules, rule, &at, &mut findings);
        ownership(rules, rule, &at, &mut findings);
        ends(rules, rule, &at, &mut findings);
    }
    determinism(rules, &mut findings);
    timers(rules, &mut findings);
    hold(rules, &mut findings);
    findings
}

fn required_roles(rules: &Rules, findings: &mut Vec<Finding>) {
    if rules.required_roles.len() < 2 {
        findings.push(
            Finding::new("too_few_required_roles", "/required_roles")
                .says("a single role would be enough to reach an effect")
                .mend("name at least two roles in required_roles"),
        );
    }
    if rules.required_roles.contains(Role::Auditor) {
        findings.push(auditor("/required_roles"));
    }
    if !rules.states.iter().any(|state| state.kind.is_effect()) {
        findings.push(
            Finding::new("no_effect", "/state")
                .says("no state is marked as an effect, so nothing is protected")
                .mend("set kind = \"effect\" on the state in which something happens"),
        );
    }
    let initial = rules.state(&rules.initial);
    if initial.is_some_and(|state| !state.kind.is_open()) {
        findings.push(
            Finding::new("initial_state", "/initial")
                .says(format!("an item cannot begin in {}, which is an effect or a terminal state", rules.initial))
                .mend("make the initial state an open one"),
        );
    }
}

fn auditor(pointer: &str) -> Finding {
    Finding::new("auditor_acts", pointer)
        .says("an auditor only reads: those who examine the work must have had no part in it")
        .mend("remove auditor")
}

fn roles(roles: RoleSet, pointer: &str, findings: &mut Vec<Finding>) {
    if roles.is_empty() {
        findings.push(Finding::new("no_roles", pointer).says("no role may do this").mend("name at least one role"));
    }
    if roles.contains(Role::Auditor) {
        findings.push(auditor(pointer));
    }
}

fn state_kind(rules: &Rules, state: &State, at: &str, findings: &mut Vec<Finding>) {
    let State { name: _, kind, editable, waits_for, description: _ } = state;
    if *editable && !state.kind.is_open() {
        findings.push(
            Finding::new("editable_effect", format!("{at}/editable"))
                .says(format!("the content could change while the item is {}", state.name))
                .mend("only open states can be editable"),
        );
    }
    let has_turn = |role: Role| {
        let acts = rules.transitions.iter().any(|rule| rule.leads_from(&state.name) && rule.roles.contains(role));
        acts || (*editable && role == Role::Initiator)
    };
    let idle: RoleSet = waits_for.iter().filter(|role| !has_turn(*role)).collect();
    let complaint = match kind {
        Kind::Terminal if !waits_for.is_empty() => "waits for someone although it is terminal".to_owned(),
        Kind::Open | Kind::Effect if waits_for.is_empty() => "does not say whose turn it is".to_owned(),
        Kind::Open | Kind::Effect if !idle.is_empty() => format!("waits for {idle}, who can do nothing there"),
        Kind::Terminal | Kind::Open | Kind::Effect => return,
    };
    findings.push(
        Finding::new("waits_for", format!("{at}/waits_for"))
            .says(format!("the state {} {complaint}", state.name))
            .mend("in waits_for, name the roles that have a transition from this state; a terminal state has none"),
    );
}

fn quorum(rules: &Rules, rule: &Rule, at: &str, findings: &mut Vec<Finding>) {
    let mut flaw = |code, key: &str, says: String, mend: &str| {
        findings.push(Finding::new(code, format!("{at}/{key}")).says(says).mend(mend));
    };
    let action = &rule.action;
    let raised = rule.quorum_if.as_ref();
    let Some(quorum) = rule.quorum else {
        if raised.is_some() {
            flaw("quorum_if", "quorum_if", format!("{action} has quorum_if but no quorum"), "add quorum = 1");
        }
        return;
    };
    let largest = quorum.max(raised.map_or(0, |raised| raised.quorum));
    if quorum == 0 || raised.is_some_and(|raised| raised.quorum == 0) {
        flaw("quorum_zero", "quorum", format!("{action} would need no votes at all"), "a quorum is at least 1");
    }
    if largest > QUORUM_MAX {
        let says = format!("{action} needs {largest} people, more than the {QUORUM_MAX} a quorum may require");
        flaw("quorum_unsatisfiable", "quorum", says, "require fewer people");
    }
    let is_for_one = match rule.own {
        Some(Own::Creator | Own::Holder) => true,
        Some(Own::Voter) | None => false,
    };
    if largest > 1 && is_for_one {
        let says = format!("{action} needs {largest} people, but only one person may vote");
        flaw("quorum_unsatisfiable", "quorum", says, "remove own or the quorum");
    }
    if rule.to.is_none() {
        flaw(
            "quorum_stays",
            "to",
            format!("the votes for {action} lead nowhere"),
            "name the state a full quorum leads to",
        );
    }
    let Some(raised) = raised else { return };
    if raised.quorum < quorum {
        let says = format!("the condition lowers the quorum of {action} from {quorum} to {}", raised.quorum);
        flaw("quorum_if", "quorum_if/quorum", says, "a condition may raise the quorum, never lower it");
    }
    if !requires(&rules.payload_schema, &raised.pointer) {
        let says = format!("a payload without {} would escape the higher quorum of {action}", raised.pointer);
        flaw("quorum_if", "quorum_if/pointer", says, "list the member under properties and required in payload_schema");
    }
}

fn ownership(rules: &Rules, rule: &Rule, at: &str, findings: &mut Vec<Finding>) {
    let roles_of = |pick: fn(&Rule) -> bool| {
        rules.transitions.iter().filter(|rule| pick(rule)).fold(RoleSet::EMPTY, |all, rule| all.union(rule.roles))
    };
    let owners = match rule.own {
        Some(Own::Creator) => RoleSet::one(Role::Initiator),
        Some(Own::Voter) => roles_of(|rule| rule.quorum.is_some()),
        Some(Own::Holder) => roles_of(|rule| rule.takes_lease.is_some()),
        None => rule.roles,
    };
    if rule.own.is_some() && rule.roles.shared(owners).is_empty() {
        findings.push(
            Finding::new("owner_never_fits", format!("{at}/own"))
                .says(format!("{} is for {}, but its owner always acts as {owners}", rule.action, rule.roles))
                .mend("add the owner's role to roles, or remove own"),
        );
    }
    if rule.takes_back_vote && rule.own != Some(Own::Voter) {
        findings.push(
            Finding::new("takes_back_vote", format!("{at}/takes_back_vote"))
                .says(format!("{} takes back the vote of someone who may not have one", rule.action))
                .mend("add own = \"voter\""),
        );
    }
}

fn ends(rules: &Rules, rule: &Rule, at: &str, findings: &mut Vec<Finding>) {
    for (index, from) in rule.from.iter().enumerate().filter(|(_, from)| rules.is_terminal(from)) {
        findings.push(
            Finding::new("leaves_an_end", format!("{at}/from/{index}"))
                .says(format!("{} leads out of {from}, which is terminal", rule.action))
                .mend("make the state open, or remove it from `from`"),
        );
    }
}

/// Two rules for one action in one state must be distinguished by different values of the same input; otherwise they
/// conflict.
fn determinism(rules: &Rules, findings: &mut Vec<Finding>) {
    for (later, second) in rules.transitions.iter().enumerate() {
        for first in rules.transitions.iter().take(later).filter(|first| first.action == second.action) {
            let told_apart = match (&first.when, &second.when) {
                (Some(one), Some(other)) => one.input == other.input && one.equals != other.equals,
                _ => false,
            };
            let shared = second.from.iter().find(|from| first.from.contains(from));
            if let (false, Some(state)) = (told_apart, shared) {
                findings.push(
                    Finding::new("ambiguous", format!("/transition/{later}"))
                        .says(format!("two rules define what {} does in {state}", second.action))
                        .mend("distinguish them with when = { input = …, equals = … }, or give them different names"),
                );
            } else if shared.is_some() && first.roles != second.roles {
                findings.push(
                    Finding::new("ambiguous", format!("/transition/{later}/roles"))
                        .says(format!("who may {} depends on an input the caller chooses", second.action))
                        .mend("give both rules the same roles"),
                );
            }
        }
    }
}

fn timers(rules: &Rules, findings: &mut Vec<Finding>) {
    let mut kinds = BTreeSet::new();
    for (index, timer) in rules.timers.iter().enumerate() {
        for (place, from) in timer.from.iter().enumerate() {
            if rules.is_terminal(from) {
                findings.push(
                    Finding::new("leaves_an_end", format!("/timer/{index}/from/{place}"))
                        .says(format!("a timer leads out of {from}, which is terminal"))
                        .mend("remove the state from `from`"),
                );
            }
            let kind = match timer.due {
                Due::After(_) => 0,
                Due::At(Mark::WindowEnd) => 1,
                Due::At(Mark::LeaseEnd) => 2,
            };
            if !kinds.insert((from, kind)) {
                findings.push(
                    Finding::new("ambiguous", format!("/timer/{index}"))
                        .says(format!("two timers of one kind run in {from}"))
                        .mend("keep the one you mean"),
                );
            }
        }
    }
}

/// A held item must not run: a hold stops every action that leads into an effect.
fn hold(rules: &Rules, findings: &mut Vec<Finding>) {
    let Some(Hold { roles: holders, release_roles, blocks }) = &rules.hold else { return };
    roles(*holders, "/hold/roles", findings);
    roles(*release_roles, "/hold/release_roles", findings);
    let is_effect = |name: &str| rules.state(name).is_some_and(|state| state.kind.is_effect());
    let enters =
        |rule: &Rule| rule.to.as_ref().is_some_and(|to| is_effect(to) && rule.from.iter().any(|from| !is_effect(from)));
    let mut named = BTreeSet::new();
    for rule in rules.transitions.iter().filter(|rule| enters(rule) && !blocks.contains(&rule.action)) {
        if named.insert(rule.action.clone()) {
            findings.push(
                Finding::new("hold_lets_pass", "/hold/blocks")
                    .says(format!("a held item could still reach an effect through {}", rule.action))
                    .mend(format!("add \"{}\" to blocks", rule.action)),
            );
        }
    }
}
