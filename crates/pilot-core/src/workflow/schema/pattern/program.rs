//! A pattern as a program, and the search for it.

use std::sync::Arc;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};
use regex_syntax::{is_word_byte, is_word_character};

use super::super::work::Work;

/// This many visits cost as much as one step elsewhere.
const VISITS_PER_STEP: usize = 4;
/// This many ranges of a class take as much room as one state.
const RANGES_PER_STATE: usize = 4;

#[derive(Debug)]
pub(super) struct Program(Vec<Op>);

/// Each op is a state. Distances are relative, so that a piece can be repeated as it is. At the end, the pattern is found.
#[derive(Debug, Clone)]
enum Op {
    Char(char),
    OneOf(Arc<[(char, char)]>),
    Look(Look),
    /// Here, and ahead.
    Split(usize),
    Jump(usize),
    /// Back, and here.
    Again(usize),
}

impl Program {
    /// `None` when it does not fit into `room` states.
    pub(super) fn of(hir: &Hir, room: &mut usize) -> Option<Program> {
        ops(hir, room).map(Program)
    }

    pub(super) fn is_in(&self, text: &str, work: &mut Work) -> bool {
        work.search.begin(self.0.len() + 1);
        let only_at_start = matches!(self.0.first(), Some(Op::Look(Look::Start)));
        let mut rest = text.chars();
        let (mut before, mut after) = (None, rest.next());
        loop {
            if before.is_none() || !only_at_start {
                work.search.arrived.push(0);
            }
            if self.settle(before, after, work) {
                return true;
            }
            let is_stuck = only_at_start && work.search.arrived.is_empty();
            if after.is_none() || is_stuck || work.is_spent() {
                return false;
            }
            (before, after) = (after, rest.next());
        }
    }

    /// Follows the program from where the search has arrived to the next character. True if the pattern was found.
    fn settle(&self, before: Option<char>, after: Option<char>, work: &mut Work) -> bool {
        let (search, mut visits) = (&mut work.search, 0);
        let mut is_found = false;
        search.next_round();
        while let Some(mut state) = search.open.pop().filter(|_| !is_found) {
            // Straight on as far as possible; what branches off waits its turn.
            while search.is_first_visit(state) {
                visits += 1;
                state = match self.0.get(state) {
                    None => {
                        is_found = true;
                        break;
                    }
                    Some(Op::Look(look)) if holds(*look, before, after) => state + 1,
                    Some(Op::Split(ahead)) => {
                        search.open.push(state + ahead);
                        state + 1
                    }
                    Some(Op::Jump(ahead)) => state + ahead,
                    Some(Op::Again(back)) => {
                        search.open.push(state - back);
                        state + 1
                    }
                    Some(op) => {
                        if after.is_some_and(|sign| op.takes(sign)) {
                            search.arrived.push(state + 1);
                        }
                        break;
                    }
                };
            }
        }
        work.spend(1 + visits / VISITS_PER_STEP);
        is_found
    }
}

impl Op {
    fn takes(&self, sign: char) -> bool {
        match self {
            Op::Char(wanted) => *wanted == sign,
            Op::OneOf(ranges) => {
                let at = ranges.partition_point(|(_, last)| *last < sign);
                ranges.get(at).is_some_and(|(first, _)| *first <= sign)
            }
            Op::Look(_) | Op::Split(_) | Op::Jump(_) | Op::Again(_) => false,
        }
    }
}

fn ops(hir: &Hir, room: &mut usize) -> Option<Vec<Op>> {
    match hir.kind() {
        HirKind::Empty => Some(Vec::new()),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            take(room, text.len())?;
            Some(text.chars().map(Op::Char).collect())
        }
        HirKind::Class(class) => {
            let ranges = ranges(class);
            take(room, 1 + ranges.len() / RANGES_PER_STATE)?;
            Some(vec![Op::OneOf(ranges)])
        }
        HirKind::Look(look) => {
            take(room, 1)?;
            Some(vec![Op::Look(*look)])
        }
        HirKind::Capture(capture) => ops(&capture.sub, room),
        HirKind::Concat(parts) => {
            let parts: Option<Vec<_>> = parts.iter().map(|part| ops(part, room)).collect();
            Some(parts?.into_iter().flatten().collect())
        }
        HirKind::Alternation(branches) => alternation(branches, room),
        HirKind::Repetition(repetition) => repeated(repetition, room),
    }
}

fn take(room: &mut usize, states: usize) -> Option<()> {
    *room = room.checked_sub(states)?;
    Some(())
}

/// Bytes are ASCII here: a pattern that could match half a character is not translated.
fn ranges(class: &Class) -> Arc<[(char, char)]> {
    match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
    }
}

fn alternation(branches: &[Hir], room: &mut usize) -> Option<Vec<Op>> {
    take(room, 2 * branches.len())?;
    let branches: Vec<_> = branches.iter().map(|branch| ops(branch, room)).collect::<Option<_>>()?;
    // All but the last have an op before and one after them.
    let length = branches.iter().map(|branch| branch.len() + 2).sum::<usize>().saturating_sub(2);
    let mut all = Vec::with_capacity(length);
    let last = branches.len().saturating_sub(1);
    for (index, branch) in branches.into_iter().enumerate() {
        if index == last {
            all.extend(branch);
        } else {
            all.push(Op::Split(branch.len() + 2));
            all.extend(branch);
            all.push(Op::Jump(length - all.len()));
        }
    }
    Some(all)
}

fn repeated(repetition: &Repetition, room: &mut usize) -> Option<Vec<Op>> {
    let once = ops(&repetition.sub, room)?;
    let (min, max) = (usize::try_from(repetition.min).ok()?, repetition.max.map(usize::try_from));
    let max = max.transpose().ok()?;
    let times = max.unwrap_or(min + 1);
    take(room, times.checked_mul(once.len() + 1)?)?;
    let mut all: Vec<Op> = std::iter::repeat_n(&once, min).flatten().cloned().collect();
    match max {
        None if min == 0 => {
            all.push(Op::Split(once.len() + 2));
            all.extend_from_slice(&once);
            all.push(Op::Again(once.len()));
        }
        None => all.push(Op::Again(once.len())),
        Some(max) => {
            for left in (1..=max - min).rev() {
                all.push(Op::Split(left * (once.len() + 1)));
                all.extend_from_slice(&once);
            }
        }
    }
    Some(all)
}

/// Whether an assertion holds between two characters, or at an end of the text.
fn holds(look: Look, before: Option<char>, after: Option<char>) -> bool {
    let (feed, back) = (Some('\n'), Some('\r'));
    let ascii = |sign: Option<char>| sign.and_then(|sign| u8::try_from(sign).ok()).is_some_and(is_word_byte);
    let word = |sign: Option<char>| sign.is_some_and(is_word_character);
    match look {
        Look::Start => before.is_none(),
        Look::End => after.is_none(),
        Look::StartLF => before.is_none() || before == feed,
        Look::EndLF => after.is_none() || after == feed,
        Look::StartCRLF => before.is_none() || before == feed || before == back && after != feed,
        Look::EndCRLF => after.is_none() || after == back || after == feed && before != back,
        Look::WordAscii => ascii(before) != ascii(after),
        Look::WordAsciiNegate => ascii(before) == ascii(after),
        Look::WordUnicode => word(before) != word(after),
        Look::WordUnicodeNegate => word(before) == word(after),
        Look::WordStartAscii => !ascii(before) && ascii(after),
        Look::WordEndAscii => ascii(before) && !ascii(after),
        Look::WordStartUnicode => !word(before) && word(after),
        Look::WordEndUnicode => word(before) && !word(after),
        Look::WordStartHalfAscii => !ascii(before),
        Look::WordEndHalfAscii => !ascii(after),
        Look::WordStartHalfUnicode => !word(before),
        Look::WordEndHalfUnicode => !word(after),
    }
}
