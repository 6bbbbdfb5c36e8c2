//! Words that were hashed and are not live tokens.
//!
//! Requests name the same items and digests over and over, and as long as any live token has never been used, each of
//! them would be hashed every time. What was found out about a word stays true, because the live tokens never change
//! while the service runs.

use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many words are remembered: 64 KiB. A new one takes the place of an older one.
const PLACES: u64 = 1 << 13;

/// Only keyed marks of words are kept: a word that is not a live token may still be another secret. Without the key,
/// nobody can choose a word that has the mark of a token, and by chance one in 2^64 has.
pub(super) struct Cleared {
    key: u64,
    places: Box<[AtomicU64]>,
}

/// Stands for a word; never [`NOTHING`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(u64);

const NOTHING: u64 = 0;

impl Cleared {
    pub(super) fn new(key: u64) -> Cleared {
        Cleared { key, places: (0..PLACES).map(|_| AtomicU64::new(NOTHING)).collect() }
    }

    pub(super) fn mark(&self, word: &[u8]) -> Mark {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.key);
        hasher.write(word);
        Mark(hasher.finish().max(NOTHING + 1))
    }

    pub(super) fn has(&self, mark: Mark) -> bool {
        self.place(mark).is_some_and(|place| place.load(Ordering::Relaxed) == mark.0)
    }

    pub(super) fn note(&self, mark: Mark) {
        if let Some(place) = self.place(mark) {
            place.store(mark.0, Ordering::Relaxed);
        }
    }

    fn place(&self, Mark(mark): Mark) -> Option<&AtomicU64> {
        self.places.get(usize::try_from(mark % PLACES).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(cleared: &Cleared, word: &str) -> bool {
        cleared.has(cleared.mark(word.as_bytes()))
    }

    #[test]
    fn a_word_is_known_after_it_was_noted_and_no_other_is() {
        let cleared = Cleared::new(7);
        assert!(!has(&cleared, "a"));
        cleared.note(cleared.mark(b"a"));
        assert!(has(&cleared, "a"));
        for other in ["", "b", "aa", "a\0", "A"] {
            assert!(!has(&cleared, other), "{other:?}");
        }
    }

    #[test]
    fn words_without_end_take_no_more_memory_and_the_latest_are_known() {
        let cleared = Cleared::new(7);
        let word = |number: u64| number.to_string();
        for number in 0..10 * PLACES {
            cleared.note(cleared.mark(word(number).as_bytes()));
            assert!(has(&cleared, &word(number)));
        }
        assert_eq!(u64::try_from(cleared.places.len()).unwrap(), PLACES);
        let known = (0..10 * PLACES).filter(|number| has(&cleared, &word(*number))).count();
        assert!(u64::try_from(known).unwrap() <= PLACES);
    }

    #[test]
    fn another_key_gives_other_marks() {
        let [one, other] = [7, 8].map(|key| Cleared::new(key).mark(b"a"));
        assert!(one != other);
    }
}
