//! Searches many stored JSON texts one after another: entries and documents on their way into an export.

use std::borrow::Cow;

use super::words::Budget;
use super::{LeakGuard, Search, runs};
use crate::limits::{TOKEN_BYTES_MAX, TOKEN_BYTES_MIN};
use crate::scan::first;

/// How many runs are remembered as clean. An item's entries are near one another, and repeat its id and digests; among
/// them are those of the other items that were busy at the time.
const REMEMBERED: usize = 1 << 14;

/// A search of many texts. Tokens that were used, generated or signed are found anywhere in a text. A token of which
/// only the digest is known is looked for in strings, and a run that was hashed for one text is not hashed again for
/// the next. That is safe because the live tokens never change while the service runs.
pub struct Sweep<'g> {
    guard: &'g LeakGuard,
    /// Runs that contain no live token, each at the place given by the hash of its bytes.
    clean: Vec<Box<[u8]>>,
}

impl LeakGuard {
    pub fn sweep(&self) -> Sweep<'_> {
        Sweep { guard: self, clean: vec![Box::default(); REMEMBERED] }
    }
}

impl Sweep<'_> {
    /// Whether a JSON text contains a token.
    pub fn finds_token(&mut self, json: &[u8]) -> bool {
        let mut search = self.guard.search(Budget::of_words());
        if runs(json).filter_map(|run| json.get(run)).any(|run| search.known(run).is_some()) {
            return true;
        }
        // Strings are taken apart only for what the whole text does not show.
        let hides_nothing = !search.looks_for_unused && !json.contains(&b'\\');
        !hides_nothing
            && strings(json).any(|string| match unescaped(string) {
                Cow::Borrowed(plain) => search.looks_for_unused && self.unused(plain, &mut search),
                // Escapes hide a token from the search of the whole text.
                Cow::Owned(text) => search.find(&text).is_some(),
            })
    }

    /// Whether this string contains a live token that was never used.
    fn unused(&mut self, string: &[u8], search: &mut Search<'_>) -> bool {
        runs(string).filter_map(|run| string.get(run)).any(|run| {
            let place = place(run);
            if self.clean.get(place).is_some_and(|known| **known == *run) {
                return false;
            }
            let found = search.find_unused(run).is_some();
            if let Some(known) = self.clean.get_mut(place).filter(|_| !found && run.len() <= TOKEN_BYTES_MAX) {
                *known = run.into();
            }
            found
        })
    }
}

/// FNV-1a over eight bytes at a time. Colliding runs make this slower, but no less thorough.
fn place(run: &[u8]) -> usize {
    let (words, rest) = run.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let all = words.chain(rest.iter().map(|byte| u64::from(*byte)));
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, mix).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(hash >> 32).unwrap_or(0) % REMEMBERED
}

/// The strings of a JSON text that are long enough for a token, as written. Text that is not JSON is treated as one
/// long string.
fn strings(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = json;
    std::iter::from_fn(move || {
        loop {
            let start = first(rest, |byte| byte == b'"')? + 1;
            let inside = rest.get(start..)?;
            let end = end_of_string(inside);
            rest = inside.get(end + 1..).unwrap_or_default();
            if end >= TOKEN_BYTES_MIN {
                return inside.get(..end);
            }
        }
    })
}

/// The position of the quote that ends a string, or the end of the text.
fn end_of_string(inside: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = inside.get(at..).and_then(|rest| first(rest, |byte| matches!(byte, b'"' | b'\\'))) {
        at += found;
        if inside.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    inside.len()
}

fn unescaped(string: &[u8]) -> Cow<'_, [u8]> {
    if !string.contains(&b'\\') {
        return Cow::Borrowed(string);
    }
    let quoted = [b"\"", string, b"\""].concat();
    let text = serde_json::from_slice::<String>(&quoted);
    Cow::Owned(text.map_or_else(|_| string.to_vec(), String::into_bytes))
}
