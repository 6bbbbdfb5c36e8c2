//! What is wrong with an input, and where. A fault never carries the value it found, which may be a clear token.

use std::collections::HashMap;
use std::fmt;

use crate::limits::{FAULTS_MAX, FAULTS_OF_ONE_KIND_MAX, POINTER_BYTES_MAX};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// JSON pointer (RFC 6901) to the place; empty for the document as a whole.
    pub pointer: String,
    /// What is wrong and how to fix it, without the value.
    pub detail: String,
    /// How many faults of its kind this one stands for, itself included.
    pub times: usize,
}

impl Fault {
    /// A pointer that is too long to show is cut to the nearest enclosing value whose pointer is not.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let mut pointer = pointer.into();
        if pointer.len() > POINTER_BYTES_MAX {
            let end = pointer.floor_char_boundary(POINTER_BYTES_MAX);
            let end = pointer.get(..end).and_then(|shown| shown.rfind('/')).unwrap_or(0);
            pointer.truncate(end);
        }
        Fault { pointer, detail: detail.into(), times: 1 }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "(whole document)" } else { &self.pointer };
        match self.times.checked_sub(1) {
            None | Some(0) => write!(f, "{place}: {}", self.detail),
            Some(others) => write!(f, "{place} and {others} more places: {}", self.detail),
        }
    }
}

/// Collects faults. Of each kind the first few are kept and the rest counted, and only as many kinds as anyone reads.
/// So refusing a file costs no more than accepting it.
#[derive(Debug, Default)]
pub struct Faults {
    kept: Vec<Fault>,
    /// By place and detail without their numbers: how many there were, and the position of the last one kept.
    kinds: HashMap<(String, String), (usize, usize)>,
    /// Faults of kinds that came after the list was full.
    left_out: usize,
}

impl Faults {
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub fn push(&mut self, fault: Fault) {
        let kind = (without_numbers(&fault.pointer), without_numbers(&fault.detail));
        let is_room = self.kept.len() < FAULTS_MAX;
        match self.kinds.get_mut(&kind) {
            Some((times, at)) if *times < FAULTS_OF_ONE_KIND_MAX && is_room => {
                *times += 1;
                *at = self.kept.len();
                self.kept.push(fault);
            }
            Some((times, at)) => {
                *times += 1;
                if let Some(last) = self.kept.get_mut(*at) {
                    last.times += fault.times;
                }
            }
            None if is_room => {
                self.kinds.insert(kind, (1, self.kept.len()));
                self.kept.push(fault);
            }
            None => self.left_out += fault.times,
        }
    }

    /// At most [`FAULTS_MAX`], plus one that says how many more there are.
    pub fn into_list(mut self) -> Vec<Fault> {
        if self.left_out > 0 {
            let detail = "has further kinds of faults that are not listed; fix these first";
            self.kept.push(Fault { times: self.left_out, ..Fault::new("", detail) });
        }
        self.kept
    }
}

impl Extend<Fault> for Faults {
    fn extend<T: IntoIterator<Item = Fault>>(&mut self, faults: T) {
        for fault in faults {
            self.push(fault);
        }
    }
}

/// Makes places equal that differ only in their numbers.
fn without_numbers(text: &str) -> String {
    let is_number = |segment: &str| !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    text.split('/')
        .map(|segment| match segment.split_once(|character: char| !character.is_ascii_digit()) {
            _ if is_number(segment) => "*".to_owned(),
            // A place inside a sentence: `…/credentials/17 (letter case is ignored)`.
            Some((number, rest)) if is_number(number) => format!("* {rest}"),
            _ => segment.to_owned(),
        })
        .collect::<Vec<_>>()
        .join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(faults: impl Iterator<Item = Fault>) -> Vec<String> {
        let mut list = Faults::default();
        list.extend(faults);
        list.into_list().iter().map(Fault::to_string).collect()
    }

    #[test]
    fn a_few_of_a_kind_are_each_listed_and_many_are_counted() {
        let role = |index: usize| Fault::new(format!("/credentials/{index}/roles/0"), "unknown");
        assert_eq!(listed((0..2).map(role)), ["/credentials/0/roles/0: unknown", "/credentials/1/roles/0: unknown"]);
        assert_eq!(
            listed((0..1_000).map(role)),
            [
                "/credentials/0/roles/0: unknown",
                "/credentials/1/roles/0: unknown",
                "/credentials/2/roles/0 and 997 more places: unknown"
            ]
        );
    }

    #[test]
    fn details_that_name_other_places_are_of_one_kind() {
        let twice = |index: usize| Fault::new(format!("/a/{index}"), format!("given at /a/{} (twice)", index / 2));
        assert_eq!(listed((0..500).map(twice)).len(), FAULTS_OF_ONE_KIND_MAX);
    }

    #[test]
    fn kinds_without_end_are_counted() {
        let lines = listed((0..5_000).map(|index| Fault::new(format!("/m{index}"), "is not a known member")));
        assert_eq!(lines.len(), FAULTS_MAX + 1);
        let rest = 5_000 - FAULTS_MAX - 1;
        assert_eq!(
            lines.last().map(String::as_str),
            Some(&*format!(
                "(whole document) and {rest} more places: has further kinds of faults that are not listed; fix these first"
            ))
        );
    }
}
