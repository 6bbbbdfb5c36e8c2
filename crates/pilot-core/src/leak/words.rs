//! Where in a run a token may be of which only the digest is known. Each place costs a hash, so the likely ones are
//! always tried, and the others within a budget.

use std::ops::Range;

use crate::limits::{TOKEN_BYTES_MAX, TOKEN_BYTES_MIN};

/// In a longer run only words are tried, because the number of substrings grows with the square of its length.
const STRETCHED_RUN_MAX: usize = 128;

/// How many word boundaries may lie within a token that itself contains punctuation.
const JOINED_MARKS_MAX: usize = 32;

/// How many hashes one text may cost. Nothing else draws on the budget for words: when that is spent, the text contains
/// more than any accepted content, and must not be treated as clean.
pub(super) struct Budget {
    words: usize,
    joins: usize,
    stretches: usize,
}

impl Budget {
    /// For what people write: at most about 4 ms each for stretches and for joined words.
    pub(super) fn of_content() -> Budget {
        Budget { words: 60_000, joins: 10_000, stretches: 10_000 }
    }

    /// For texts that were searched when they were written, of which there are many.
    pub(super) fn of_words() -> Budget {
        Budget { words: 60_000, joins: 2_000, stretches: 0 }
    }

    /// For a request target, which anyone may send: a short one costs little, and the longest about a millisecond.
    pub(super) fn of_url(bytes: usize) -> Budget {
        Budget { words: 60_000, joins: (16 * bytes).min(2_000), stretches: (8 * bytes).min(600) }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.words == 0
    }
}

fn take(budget: &mut usize, hashes: usize) -> bool {
    let left = budget.checked_sub(hashes);
    *budget = left.unwrap_or(*budget);
    left.is_some()
}

/// Every stretch of `run` that is long enough for a token, if the budget covers all of them.
pub(super) fn stretches(run: &[u8], budget: &mut Budget) -> Option<impl Iterator<Item = Range<usize>> + use<>> {
    let length = run.len();
    let starts = (length + 1).saturating_sub(TOKEN_BYTES_MIN);
    if length > STRETCHED_RUN_MAX || is_ours(run) || !take(&mut budget.stretches, starts * (starts + 1) / 2) {
        return None;
    }
    Some((0..starts).flat_map(move |start| (start + TOKEN_BYTES_MIN..=length).map(move |end| start..end)))
}

/// Always tries the whole run, the run without surrounding punctuation, and each word; joined words within the budget.
/// In one of our own ids and digests there is nothing to join: what is left has a letter beside it.
pub(super) fn find_word(run: &[u8], budget: &mut Budget, is_token: impl Fn(&[u8]) -> bool) -> Option<Range<usize>> {
    let fits = |range: &Range<usize>| (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&range.len());
    let is_token = |range: &Range<usize>| run.get(range.clone()).is_some_and(&is_token);
    let (whole, trimmed, marks) = (0..run.len(), trimmed(run), marks(run));
    let is_other = |range: &Range<usize>| *range != whole && *range != trimmed;
    let neighbours = marks.iter().zip(marks.iter().skip(1)).map(|(start, end)| *start..*end).filter(is_other);
    let both = [whole.clone(), trimmed.clone()].into_iter().take(if whole == trimmed { 1 } else { 2 });
    let mut words = both.chain(neighbours).filter(fits).inspect(|_| budget.words = budget.words.saturating_sub(1));
    let found = words.find(is_token);
    drop(words);
    if found.is_some() || (whole == trimmed && is_ours(run)) {
        return found;
    }
    joined(&marks).filter(is_other).take_while(|_| take(&mut budget.joins, 1)).find(is_token)
}

/// Ranges over more than one word, up to the length of a token.
fn joined(marks: &[usize]) -> impl Iterator<Item = Range<usize>> {
    marks.iter().enumerate().flat_map(move |(index, start)| {
        let ends = marks.iter().skip(index + 2).take(JOINED_MARKS_MAX);
        let words = ends.map(|end| *start..*end);
        words.skip_while(|word| word.len() < TOKEN_BYTES_MIN).take_while(|word| word.len() <= TOKEN_BYTES_MAX)
    })
}

/// Where a token may begin or end: before and after each punctuation character, since that may be the token's own first
/// or last. One of our ids counts as one word.
fn marks(run: &[u8]) -> Vec<usize> {
    let mut marks = Vec::with_capacity(8);
    marks.push(0);
    let mut mark = |at: usize| {
        if marks.last() != Some(&at) {
            marks.push(at);
        }
    };
    let (mut at, mut is_start) = (0, true);
    while let Some(byte) = run.get(at) {
        if is_start && let Some(id) = run.get(at..at + ID_BYTES).filter(|id| is_id(id)) {
            at += id.len();
            is_start = false;
            continue;
        }
        is_start = byte.is_ascii_punctuation();
        if is_start {
            mark(at);
            mark(at + 1);
        }
        at += 1;
    }
    mark(run.len());
    marks
}

fn trimmed(run: &[u8]) -> Range<usize> {
    let is_letter = |byte: &u8| !byte.is_ascii_punctuation();
    match (run.iter().position(is_letter), run.iter().rposition(is_letter)) {
        (Some(first), Some(last)) => first..last + 1,
        _ => 0..run.len(),
    }
}

const ID_BYTES: usize = 36;

/// The service's own ids and digests are in most texts. They are only tried as words, since a person may use one as a
/// token.
fn is_ours(run: &[u8]) -> bool {
    let word = run.get(trimmed(run)).unwrap_or_default();
    let bare = word.strip_prefix(b"sha256:").unwrap_or(word);
    let is_digest = || bare.len() == 64 && bare.iter().all(u8::is_ascii_hexdigit);
    is_id(word) || is_digest()
}

fn is_id(text: &[u8]) -> bool {
    text.len() == ID_BYTES
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
