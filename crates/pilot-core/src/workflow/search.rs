//! The prover's map: every situation an item can be in, as far as the rules distinguish situations.
//!
//! A situation is a state, the roles that have granted since the content last changed, and whether a window, a lease
//! and a vote exist. There are at most 50 × 32 × 8 of them, so the search is complete and always short. It is
//! breadth-first, so it finds a shortest path to each situation.

use std::collections::VecDeque;

use crate::role::Role;
use crate::role_set::RoleSet;
use crate::workflow::{Due, Mark, Name, Own, Rule, Rules, Timer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) state: usize,
    pub(crate) granted: RoleSet,
    window: bool,
    lease: bool,
    votes: bool,
}

const NODES_PER_STATE: usize = 32 * 8;

impl Node {
    fn index(self) -> usize {
        let flags = usize::from(self.window) * 4 + usize::from(self.lease) * 2 + usize::from(self.votes);
        self.state * NODES_PER_STATE + self.granted.index() * 8 + flags
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Edit,
    Vote { rule: usize, role: Role },
    Take { rule: usize, role: Role },
    Wait { timer: usize },
}

/// The rules with states as numbers, and each state's distance from an effect.
pub(crate) struct Model<'r> {
    pub(crate) rules: &'r Rules,
    moves: Vec<Move<'r>>,
    timers: Vec<(StateSet, usize, &'r Timer)>,
    voters: RoleSet,
    leasers: RoleSet,
    /// For each state, how many moves by people it is from the nearest effect; `None` if no effect can be reached.
    distances: Vec<Option<u32>>,
}

struct Move<'r> {
    from: StateSet,
    to: Option<usize>,
    rule: &'r Rule,
}

/// States by number, one bit each: a definition has at most 50.
#[derive(Clone, Copy)]
struct StateSet(u64);

impl StateSet {
    fn contains(self, state: usize) -> bool {
        self.0 >> state & 1 == 1
    }

    fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |state| self.contains(*state))
    }
}

/// Who may take a rule, if not everyone in its roles: for asking what fewer people could do.
pub(crate) type Able<'a> = &'a dyn Fn(&Rule, Role) -> bool;

impl<'r> Model<'r> {
    pub(crate) fn new(rules: &'r Rules) -> Model<'r> {
        let numbers = |names: &[Name]| {
            let numbers = names.iter().filter_map(|name| number(rules, name)).filter(|state| *state < 64);
            StateSet(numbers.fold(0, |all, state| all | 1 << state))
        };
        let moves: Vec<Move<'r>> = rules
            .transitions
            .iter()
            .map(|rule| Move { from: numbers(&rule.from), to: rule.to.as_ref().and_then(|to| number(rules, to)), rule })
            .collect();
        let timers = rules
            .timers
            .iter()
            .filter_map(|timer| Some((numbers(&timer.from), number(rules, &timer.to)?, timer)))
            .collect();
        let of = |pick: fn(&Rule) -> bool| {
            rules.transitions.iter().filter(|rule| pick(rule)).fold(RoleSet::EMPTY, |all, rule| all.union(rule.roles))
        };
        let (voters, leasers) = (of(|rule| rule.quorum.is_some()), of(|rule| rule.takes_lease.is_some()));
        let mut model = Model { rules, moves, timers, voters, leasers, distances: Vec::new() };
        model.distances = model.distances_to_effects();
        model
    }

    fn effects(&self) -> impl Iterator<Item = usize> {
        let states = self.rules.states.iter().enumerate();
        states.filter(|(_, state)| state.kind.is_effect()).map(|(index, _)| index)
    }

    pub(crate) fn is_effect(&self, state: usize) -> bool {
        self.rules.states.get(state).is_some_and(|state| state.kind.is_effect())
    }

    pub(crate) fn is_terminal(&self, state: usize) -> bool {
        self.rules.states.get(state).is_some_and(|state| state.kind.is_terminal())
    }

    pub(crate) fn name(&self, state: usize) -> &str {
        self.rules.states.get(state).map_or("?", |state| &state.name)
    }

    fn distances_to_effects(&self) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.rules.states.len()];
        let mut queue: VecDeque<(usize, u32)> = self.effects().map(|effect| (effect, 0)).collect();
        while let Some((state, distance)) = queue.pop_front() {
            match distances.get_mut(state) {
                Some(known @ None) => *known = Some(distance),
                _ => continue,
            }
            let before = self.moves.iter().filter(|step| step.to == Some(state)).flat_map(|step| step.from.iter());
            queue.extend(before.map(|from| (from, distance + 1)));
        }
        distances
    }

    fn distance(&self, state: usize) -> Option<u32> {
        self.distances.get(state).copied().flatten()
    }

    /// A move is a grant if it brings the item strictly closer to an effect, or into one. A move back or sideways is
    /// not a grant, no matter who makes it.
    pub(crate) fn grants(&self, from: usize, to: usize) -> bool {
        match (self.distance(from), self.distance(to)) {
            _ if self.is_effect(to) => true,
            (Some(before), Some(after)) => after < before,
            _ => false,
        }
    }

    /// Precisely what "less right" means: from `to`, people need strictly more moves to the nearest effect than from
    /// `from`, or cannot reach one at all. An effect itself never qualifies, an end always does. Whether a longer way
    /// needs fewer people is not asked here: the search follows timers too, and would show it.
    pub(crate) fn is_less_right(&self, from: usize, to: usize) -> bool {
        match (self.distance(from), self.distance(to)) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(before), Some(after)) => after > before,
        }
    }

    pub(crate) fn start(&self) -> Option<Node> {
        let state = number(self.rules, &self.rules.initial)?;
        Some(Node { state, granted: RoleSet::one(Role::Initiator), window: false, lease: false, votes: false })
    }

    fn successors(&self, node: Node, able: Able<'_>, visit: &mut impl FnMut(Node, Step)) {
        if self.rules.states.get(node.state).is_some_and(|state| state.editable) {
            // New content: whatever anyone granted, they granted for other content.
            let granted = RoleSet::one(Role::Initiator);
            visit(Node { granted, window: false, votes: false, ..node }, Step::Edit);
        }
        for (index, step) in self.moves.iter().enumerate().filter(|(_, step)| step.from.contains(node.state)) {
            for role in step.rule.roles.iter().filter(|role| able(step.rule, *role)) {
                self.take(node, step, index, role, visit);
            }
        }
        for (index, (_, to, timer)) in self.timers.iter().enumerate().filter(|(_, timer)| timer.0.contains(node.state))
        {
            let runs = match timer.due {
                Due::After(_) => true,
                Due::At(Mark::WindowEnd) => node.window,
                Due::At(Mark::LeaseEnd) => node.lease,
            };
            if runs {
                visit(
                    Node { state: *to, lease: node.lease && self.is_effect(*to), ..node },
                    Step::Wait { timer: index },
                );
            }
        }
    }

    fn take(&self, node: Node, step: &Move<'_>, index: usize, taker: Role, visit: &mut impl FnMut(Node, Step)) {
        // Conditions that keep people out, or ask more of them, are ignored: that way the search sees more ways than
        // there are, never fewer.
        let Rule {
            action: _,
            from: _,
            to: _,
            roles: _,
            own,
            not_by_executor: _,
            quorum,
            quorum_if,
            comment_required: _,
            content_digest_required: _,
            // `after` handles the effects of these.
            sets_window: _,
            inside_window,
            takes_lease: _,
            renews_lease: _,
            attempts: _,
            voids_votes: _,
            voids_window: _,
            takes_back_vote,
            replaces: _,
            when: _,
            inputs: _,
            description: _,
            holds: _,
        } = step.rule;
        let owned = match own {
            None => true,
            // The creator acted as initiator, and separation of duties keeps it that way.
            Some(Own::Creator) => taker == Role::Initiator,
            Some(Own::Voter) => node.votes && self.voters.contains(taker),
            Some(Own::Holder) => node.lease && self.leasers.contains(taker),
        };
        if !owned || (*inside_window && !node.window) {
            return;
        }
        let several = quorum.is_some_and(|quorum| quorum > 1) || quorum_if.is_some();
        if several {
            visit(Node { votes: true, ..node }, Step::Vote { rule: index, role: taker });
        }
        let after = self.after(node, step, taker);
        visit(after, Step::Take { rule: index, role: taker });
        if *takes_back_vote {
            // Other votes may remain, or there was no other.
            visit(Node { votes: false, ..after }, Step::Take { rule: index, role: taker });
        }
    }

    fn after(&self, node: Node, step: &Move<'_>, taker: Role) -> Node {
        let rule = step.rule;
        let to = step.to.unwrap_or(node.state);
        let mut granted = node.granted;
        if rule.voids_votes {
            granted = granted.without(self.voters);
        }
        if rule.takes_back_vote {
            granted = granted.without(RoleSet::one(taker));
        } else if self.grants(node.state, to) {
            granted = granted.with(taker);
        }
        let leased = rule.takes_lease.is_some() || rule.renews_lease.is_some();
        Node {
            state: to,
            granted,
            window: rule.sets_window.is_some() || (node.window && !rule.voids_window),
            lease: leased || (node.lease && self.is_effect(to)),
            votes: (node.votes || rule.quorum.is_some()) && !rule.voids_votes,
        }
    }
}

fn number(rules: &Rules, name: &str) -> Option<usize> {
    rules.states.iter().position(|state| *state.name == *name)
}

/// Every situation reached, ordered by distance, and how.
pub(crate) struct Reached {
    pub(crate) nodes: Vec<Node>,
    parents: Vec<Option<(usize, Step)>>,
    /// For each rule, and for each timer, the states in which it was possible.
    taken: Vec<StateSet>,
    waited: Vec<StateSet>,
}

pub(crate) struct Limits<'a> {
    pub(crate) able: Able<'a>,
    pub(crate) timers: bool,
    /// Whether it matters who has granted; if not, there are far fewer situations.
    pub(crate) grants: bool,
}

impl Model<'_> {
    pub(crate) fn explore(&self, starts: &[Node], limits: &Limits<'_>) -> Reached {
        let mut seen = vec![false; self.rules.states.len() * NODES_PER_STATE];
        let none = |count: usize| vec![StateSet(0); count];
        let (taken, waited) = (none(self.moves.len()), none(self.timers.len()));
        let mut reached = Reached { nodes: Vec::new(), parents: Vec::new(), taken, waited };
        let seen_as = |node: Node| if limits.grants { node } else { Node { granted: RoleSet::EMPTY, ..node } };
        for start in starts {
            reached.add(seen_as(*start), None, &mut seen);
        }
        let mut next = 0;
        while let Some(node) = reached.nodes.get(next).copied() {
            self.successors(node, limits.able, &mut |after, step| {
                if matches!(step, Step::Wait { .. }) && !limits.timers {
                    return;
                }
                reached.note(step, node.state);
                reached.add(seen_as(after), Some((next, step)), &mut seen);
            });
            next += 1;
        }
        reached
    }

    /// A path as text, one step a line.
    pub(crate) fn way(&self, reached: &Reached, node: usize) -> Vec<String> {
        let mut way = Vec::new();
        let mut at = Some(node);
        while let Some(index) = at {
            let state = reached.nodes.get(index).map_or("?", |node| self.name(node.state));
            let parent = reached.parents.get(index).copied().flatten();
            way.push(self.words(parent.map_or(Step::Create, |(_, step)| step), state));
            at = parent.map(|(before, _)| before);
        }
        way.reverse();
        way
    }

    fn words(&self, step: Step, state: &str) -> String {
        let rule = |index: usize| self.rules.transitions.get(index);
        match step {
            Step::Create => format!("initiator creates → {state}"),
            Step::Edit => format!("initiator edits the content → {state}"),
            Step::Vote { rule: index, role } => {
                format!("{role} {}, one vote of several → {state}", rule(index).map_or_else(String::new, verb))
            }
            Step::Take { rule: index, role } => {
                format!("{role} {}{} → {state}", rule(index).map_or_else(String::new, verb), times(rule(index)))
            }
            Step::Wait { timer } => {
                let due = self.rules.timers.get(timer).map_or_else(String::new, |timer| timer.due.to_string());
                format!("nobody acts; {due} → {state}")
            }
        }
    }
}

impl Reached {
    fn add(&mut self, node: Node, parent: Option<(usize, Step)>, seen: &mut [bool]) {
        if let Some(new @ false) = seen.get_mut(node.index()) {
            *new = true;
            self.nodes.push(node);
            self.parents.push(parent);
        }
    }

    fn note(&mut self, step: Step, state: usize) {
        let possible = match step {
            Step::Take { rule, .. } => self.taken.get_mut(rule),
            Step::Wait { timer } => self.waited.get_mut(timer),
            Step::Create | Step::Edit | Step::Vote { .. } => None,
        };
        if let Some(states) = possible {
            states.0 |= 1 << state;
        }
    }

    pub(crate) fn was_taken(&self, rule: usize, state: usize) -> bool {
        self.taken.get(rule).is_some_and(|states| states.contains(state))
    }

    pub(crate) fn was_waited_for(&self, timer: usize, state: usize) -> bool {
        self.waited.get(timer).is_some_and(|states| states.contains(state))
    }

    /// The first, and so nearest, matching situation.
    pub(crate) fn first(&self, wanted: impl Fn(&Node) -> bool) -> Option<usize> {
        self.nodes.iter().position(wanted)
    }

    pub(crate) fn any(&self, state: usize) -> bool {
        self.nodes.iter().any(|node| node.state == state)
    }

    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        self.parents.get(node).copied().flatten().map(|(before, _)| before)
    }
}

fn times(rule: Option<&Rule>) -> String {
    match rule.and_then(|rule| rule.quorum) {
        Some(quorum) if quorum > 1 => format!(" ({quorum} people)"),
        _ => String::new(),
    }
}

/// `roll_back` as in "executor rolls back".
pub(crate) fn verb(rule: &Rule) -> String {
    let mut words = rule.action.split(['_', '-']);
    let first = words.next().unwrap_or_default();
    let hissing = ["s", "x", "z", "ch", "sh"].iter().any(|end| first.ends_with(end));
    let stem = first.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    let conjugated = match stem {
        Some(stem) => format!("{stem}ies"),
        None if hissing => format!("{first}es"),
        None => format!("{first}s"),
    };
    std::iter::once(conjugated.as_str()).chain(words).collect::<Vec<_>>().join(" ")
}
