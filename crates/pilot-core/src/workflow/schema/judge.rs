//! Judges a payload by a compiled schema.
//!
//! Which members and items were judged is noted only where a node asks for the rest. The notes are one list that grows
//! while branches hold, and is cut back where one does not.

use std::mem;

use serde_json::{Map, Value};

use super::node::{Keyword, Members, NodeId, Others, ROOT, Schema};
use super::rule::Rule;
use super::work::Work;
use crate::fault::Fault;
use crate::json::join;
use crate::limits::{FAULTS_MAX, SCHEMA_DEPTH_MAX, SCHEMA_STEPS_MAX};

const UNKNOWN_MEMBER: &str = "has a member that is not allowed here";
const NOT_ANY_OF: &str = "this is not valid under any of the schemas listed in the 'anyOf' keyword";
const NOT_ONE_OF: &str = "this is not valid under any of the schemas listed in the 'oneOf' keyword";
const MORE_THAN_ONE_OF: &str = "this is valid under more than one of the schemas listed in the 'oneOf' keyword";
const NOT: &str = "this must not be valid under the schema listed in the 'not' keyword";

/// How much of a schema applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// The types and the shape, so that an unfinished text is fine and a number in its place is not.
    Types,
}

pub(super) fn faults(schema: &Schema, extent: Extent, payload: &Value) -> Vec<Fault> {
    let mut judge = Judge::new(schema, extent, Work::new(SCHEMA_STEPS_MAX));
    judge.node(ROOT, payload);
    judge.into_faults()
}

/// How many steps it took.
#[cfg(test)]
pub(super) fn steps(schema: &Schema, payload: &Value) -> usize {
    let mut judge = Judge::new(schema, Extent::Whole, Work::new(SCHEMA_STEPS_MAX));
    judge.node(ROOT, payload);
    SCHEMA_STEPS_MAX - judge.work.left()
}

enum Step<'v> {
    Name(&'v str),
    Index(usize),
}

struct Judge<'s, 'v> {
    schema: &'s Schema,
    extent: Extent,
    work: Work,
    depth: usize,
    path: Vec<Step<'v>>,
    faults: Vec<Fault>,
    /// Inside a branch that may fail: only its verdict counts.
    is_quiet: bool,
    /// Whether anyone will ask which members and items of the current value were judged.
    takes_notes: bool,
    /// By their place in the value.
    notes: Vec<usize>,
}

impl<'s, 'v> Judge<'s, 'v> {
    fn new(schema: &'s Schema, extent: Extent, work: Work) -> Judge<'s, 'v> {
        let (path, faults, notes) = (Vec::new(), Vec::new(), Vec::new());
        Judge { schema, extent, work, depth: 0, path, faults, is_quiet: false, takes_notes: false, notes }
    }

    /// A check that ran out of steps has no verdict, whatever it found on the way.
    fn into_faults(self) -> Vec<Fault> {
        if self.work.is_spent() {
            return vec![Fault::new("/payload", "is too complex to be checked against the schema of this workflow")];
        }
        self.faults
    }

    fn is_over(&self) -> bool {
        self.work.is_spent() || self.faults.len() >= FAULTS_MAX
    }

    fn node(&mut self, id: NodeId, value: &'v Value) -> bool {
        self.work.spend(1);
        if self.depth == SCHEMA_DEPTH_MAX {
            self.work.spend_all();
        }
        if self.is_over() {
            return false;
        }
        let schema = self.schema;
        let node = schema.node(id);
        let (from, took_notes) = (self.notes.len(), self.takes_notes);
        self.takes_notes |= self.extent == Extent::Whole && node.asks_for_the_rest();
        self.depth += 1;
        let holds = self.every(&node.keywords, |judge, keyword| judge.keyword(keyword, value, from));
        self.depth -= 1;
        self.takes_notes = took_notes;
        if !holds || !took_notes {
            self.notes.truncate(from);
        }
        holds
    }

    /// `from` is where the notes about this value by this node begin.
    fn keyword(&mut self, keyword: &'s Keyword, value: &'v Value, from: usize) -> bool {
        if self.extent == Extent::Types && !is_about_types(keyword) {
            return true;
        }
        self.work.spend(1);
        match (keyword, value) {
            (Keyword::Rule { rule, sentence }, _) => rule.holds(value, &mut self.work) || self.fault(sentence),
            (Keyword::Required(names), Value::Object(members)) => self.required(names, members),
            (Keyword::DependentRequired(list), Value::Object(members)) => {
                self.work.spend(list.len());
                self.every(present(list, members), |judge, names| judge.required(names, members))
            }
            (Keyword::Members(rules), Value::Object(members)) => self.members(rules, members),
            (Keyword::MemberNames(id), Value::Object(members)) => self.names(*id, members),
            (Keyword::Items { first, others }, Value::Array(list)) => self.items(first, *others, list),
            (Keyword::Contains { item, min, max }, Value::Array(list)) => self.contains(*item, *min, *max, list),
            (Keyword::DependentSchemas(list), Value::Object(members)) => {
                self.work.spend(list.len());
                self.every(present(list, members), |judge, id| judge.node(*id, value))
            }
            (Keyword::AllOf(branches), _) => self.every(branches, |judge, branch| judge.node(*branch, value)),
            (Keyword::AnyOf { branches, .. }, _) => self.any_of(branches, value, NOT_ANY_OF),
            (Keyword::OneOf(branches), _) => self.one_of(branches, value),
            (Keyword::Not(id), _) => !self.quietly(|judge| judge.node(*id, value)) || self.fault(NOT),
            (Keyword::If { test, then, otherwise }, _) => {
                let next = if self.quietly(|judge| judge.node(*test, value)) { then } else { otherwise };
                next.is_none_or(|id| self.node(id, value))
            }
            (Keyword::Ref(id), _) => self.node(*id, value),
            (Keyword::UnevaluatedMembers(id), Value::Object(members)) => self.other_members(*id, members, from),
            (Keyword::UnevaluatedItems(id), Value::Array(list)) => self.other_items(*id, list, from),
            _ => true,
        }
    }

    /// Goes on after a failure only to list its faults.
    fn every<T>(&mut self, all: impl IntoIterator<Item = T>, mut holds: impl FnMut(&mut Self, T) -> bool) -> bool {
        let mut all_hold = true;
        for one in all {
            all_hold &= holds(self, one);
            if !all_hold && (self.is_quiet || self.is_over()) {
                break;
            }
        }
        all_hold
    }

    fn required(&mut self, names: &[String], members: &Map<String, Value>) -> bool {
        self.work.spend(names.len());
        let missing = names.iter().filter(|name| !members.contains_key(*name));
        self.every(missing, |judge, name| judge.fault_at(|place| join(&place, name), "is required"))
    }

    fn members(&mut self, rules: &'s Members, members: &'v Map<String, Value>) -> bool {
        let mut has_unknown = false;
        let holds = self.every(members.iter().enumerate(), |judge, (index, (name, member))| {
            judge.work.spend(1);
            let (is_known, holds) = judge.member(rules, name, member);
            if is_known {
                judge.note(index);
                return holds;
            }
            has_unknown = true;
            // Reported once, after all members.
            !judge.is_quiet || !matches!(rules.others, Others::Refused)
        });
        let is_refused = has_unknown && matches!(rules.others, Others::Refused);
        (!is_refused || self.fault(UNKNOWN_MEMBER)) && holds
    }

    /// Whether anything is said about a member, and whether that holds.
    fn member(&mut self, rules: &'s Members, name: &'v str, member: &'v Value) -> (bool, bool) {
        let (mut is_known, mut holds) = (false, true);
        if let Some(id) = rules.named.get(name) {
            is_known = true;
            holds &= self.inside(Step::Name(name), *id, member);
        }
        for (pattern, id) in &rules.patterns {
            if pattern.is_in(name, &mut self.work) {
                is_known = true;
                // In a draft it is enough that something is said about it: what other members must be does not apply.
                holds &= self.extent == Extent::Types || self.inside(Step::Name(name), *id, member);
            }
        }
        match rules.others {
            Others::Judged(id) if !is_known => (true, self.inside(Step::Name(name), id, member)),
            _ => (is_known, holds),
        }
    }

    /// Names are judged as texts. A fault never repeats one: it may be a clear token.
    fn names(&mut self, id: NodeId, members: &Map<String, Value>) -> bool {
        let holds = members.keys().all(|name| {
            let name = Value::String(name.clone());
            let mut judge = Judge::new(self.schema, self.extent, mem::replace(&mut self.work, Work::new(0)));
            (judge.is_quiet, judge.depth) = (true, self.depth);
            let holds = judge.node(id, &name);
            self.work = judge.work;
            holds
        });
        holds || self.fault("has a member whose name is not allowed here")
    }

    fn items(&mut self, first: &[NodeId], others: Option<NodeId>, list: &'v [Value]) -> bool {
        let is_whole = self.extent == Extent::Whole;
        self.every(list.iter().enumerate(), |judge, (index, item)| {
            let id = match first.get(index) {
                Some(id) => is_whole.then_some(*id),
                None => others,
            };
            id.is_none_or(|id| {
                judge.note(index);
                judge.inside(Step::Index(index), id, item)
            })
        })
    }

    fn contains(&mut self, item: NodeId, min: u64, max: Option<u64>, list: &'v [Value]) -> bool {
        let mut found = 0;
        for (index, value) in list.iter().enumerate() {
            if self.quietly(|judge| judge.inside(Step::Index(index), item, value)) {
                self.note(index);
                found += 1;
            }
        }
        let fault = match max {
            _ if found == 0 && min == 1 => "none of its items is".to_owned(),
            _ if found < min => format!("fewer than {min} of its items are"),
            Some(max) if found > max => format!("more than {max} of its items are"),
            _ => return true,
        };
        self.fault(&format!("{fault} valid under the schema listed in the 'contains' keyword"))
    }

    fn any_of(&mut self, branches: &[NodeId], value: &'v Value, sentence: &str) -> bool {
        let holds = self.quietly(|judge| {
            let mut holds = false;
            for branch in branches {
                holds |= judge.node(*branch, value);
                // The other branches may still have notes to take.
                if holds && !judge.takes_notes {
                    break;
                }
            }
            holds
        });
        holds || self.fault(sentence)
    }

    fn one_of(&mut self, branches: &[NodeId], value: &'v Value) -> bool {
        // Without their conditions several branches may hold, which is not a fault in a draft.
        if self.extent == Extent::Types {
            return self.any_of(branches, value, NOT_ONE_OF);
        }
        let valid = self.quietly(|judge| branches.iter().filter(|branch| judge.node(**branch, value)).take(2).count());
        match valid {
            0 => self.fault(NOT_ONE_OF),
            1 => true,
            _ => self.fault(MORE_THAN_ONE_OF),
        }
    }

    fn other_members(&mut self, id: NodeId, members: &'v Map<String, Value>, from: usize) -> bool {
        let mut holds = true;
        for ((index, (name, member)), is_noted) in members.iter().enumerate().zip(self.noted(members.len(), from)) {
            if !is_noted {
                self.note(index);
                holds &= self.quietly(|judge| judge.inside(Step::Name(name), id, member));
            }
        }
        holds || self.fault(UNKNOWN_MEMBER)
    }

    fn other_items(&mut self, id: NodeId, list: &'v [Value], from: usize) -> bool {
        let mut holds = true;
        for ((index, item), is_noted) in list.iter().enumerate().zip(self.noted(list.len(), from)) {
            if !is_noted {
                self.note(index);
                holds &= self.quietly(|judge| judge.inside(Step::Index(index), id, item));
            }
        }
        holds || self.fault("has an item that is not allowed here")
    }

    fn note(&mut self, index: usize) {
        if self.takes_notes {
            self.notes.push(index);
        }
    }

    fn noted(&mut self, length: usize, from: usize) -> Vec<bool> {
        let notes = self.notes.get(from..).unwrap_or_default();
        self.work.spend(notes.len() + length);
        let mut is_noted = vec![false; length];
        for index in notes {
            if let Some(is_noted) = is_noted.get_mut(*index) {
                *is_noted = true;
            }
        }
        is_noted
    }

    /// Judges a value inside the current one. No notes are taken about it.
    fn inside(&mut self, step: Step<'v>, id: NodeId, value: &'v Value) -> bool {
        self.path.push(step);
        let took_notes = mem::replace(&mut self.takes_notes, false);
        let holds = self.node(id, value);
        self.takes_notes = took_notes;
        self.path.pop();
        holds
    }

    fn quietly<T>(&mut self, ask: impl FnOnce(&mut Self) -> T) -> T {
        let was_quiet = mem::replace(&mut self.is_quiet, true);
        let answer = ask(self);
        self.is_quiet = was_quiet;
        answer
    }

    /// Never repeats what was found, neither a value nor, in the sentence, a member's name: either may be a clear token.
    fn fault(&mut self, sentence: &str) -> bool {
        self.fault_at(|place| place, sentence)
    }

    fn fault_at(&mut self, place: impl FnOnce(String) -> String, sentence: &str) -> bool {
        if !self.is_quiet && self.faults.len() < FAULTS_MAX {
            let pointer = self.path.iter().fold("/payload".to_owned(), |pointer, step| match step {
                Step::Name(name) => join(&pointer, name),
                Step::Index(index) => format!("{pointer}/{index}"),
            });
            self.faults.push(Fault::new(place(pointer), sentence));
        }
        false
    }
}

/// What is said about those members that are there.
fn present<'s, T>(list: &'s [(String, T)], members: &Map<String, Value>) -> impl Iterator<Item = &'s T> {
    list.iter().filter(|(name, _)| members.contains_key(name)).map(|(_, said)| said)
}

/// What applies to a draft.
fn is_about_types(keyword: &Keyword) -> bool {
    match keyword {
        Keyword::Rule { rule, .. } => matches!(rule, Rule::Never | Rule::Type(_)),
        // Of the two, one is enough for a draft.
        Keyword::AnyOf { has_one_of, .. } => !has_one_of,
        Keyword::Members(_) | Keyword::Items { .. } | Keyword::AllOf(_) | Keyword::OneOf(_) | Keyword::Ref(_) => true,
        Keyword::Required(_)
        | Keyword::DependentRequired(_)
        | Keyword::MemberNames(_)
        | Keyword::Contains { .. }
        | Keyword::DependentSchemas(_)
        | Keyword::Not(_)
        | Keyword::If { .. }
        | Keyword::UnevaluatedMembers(_)
        | Keyword::UnevaluatedItems(_) => false,
    }
}
