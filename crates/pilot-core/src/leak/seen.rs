//! Finds tokens that were used, anywhere in a text.

use std::ops::Range;

use crate::digest::Digest;
use crate::limits::TOKEN_BYTES_MIN;

/// Fingerprints of the first 32 bytes of each token that was used: a polynomial over a secret base, which can be rolled
/// along a text with two multiplications per byte.
pub(super) struct Seen {
    base: u64,
    /// `base` to the power of the window length, to remove the oldest byte.
    outgoing: u64,
    tokens: Vec<SeenToken>,
    /// One bit for the top bits of each fingerprint, so that most positions cost one lookup in a small table.
    filter: Vec<u64>,
}

struct SeenToken {
    fingerprint: u64,
    length: usize,
    digest: Digest,
}

const FILTER_BITS: u32 = 16;

impl Seen {
    pub(super) fn new(key: u64) -> Seen {
        let base = key | 1;
        let outgoing = (0..TOKEN_BYTES_MIN).fold(1_u64, |power, _| power.wrapping_mul(base));
        Seen { base, outgoing, tokens: Vec::new(), filter: vec![0; (1 << FILTER_BITS) / 64] }
    }

    /// Returns whether it is new here.
    pub(super) fn add(&mut self, token: &[u8], digest: Digest) -> bool {
        let Some(window) = token.get(..TOKEN_BYTES_MIN) else { return false };
        let fingerprint = self.first_fingerprint(window);
        if let Some(word) = self.filter.get_mut(filter_word(fingerprint)) {
            *word |= filter_bit(fingerprint);
        }
        let at = self.tokens.partition_point(|token| token.fingerprint < fingerprint);
        let mut alike = self.tokens.iter().skip(at).take_while(|token| token.fingerprint == fingerprint);
        if alike.any(|token| token.digest.matches(&digest)) {
            return false;
        }
        self.tokens.insert(at, SeenToken { fingerprint, length: token.len(), digest });
        true
    }

    pub(super) fn find(&self, run: &[u8]) -> Option<Range<usize>> {
        if self.tokens.is_empty() || !self.may_be_in(run) {
            return None;
        }
        let mut hash = self.first_fingerprint(run);
        let mut ends = run.iter().skip(TOKEN_BYTES_MIN);
        for (start, oldest) in run.iter().enumerate() {
            if self.filtered(hash) != 0
                && let Some(end) = self.confirm(hash, run.get(start..).unwrap_or_default())
            {
                return Some(start..start + end);
            }
            hash = self.rolled(hash, *oldest, *ends.next()?);
        }
        None
    }

    /// Whether any place of the run passes the filter; a run without a token almost never has one. A fingerprint has to
    /// wait for the one before it, so four parts of the run are looked at in turns, which takes half the time.
    fn may_be_in(&self, run: &[u8]) -> bool {
        let Some(places) = (run.len() + 1).checked_sub(TOKEN_BYTES_MIN).filter(|places| *places > 0) else {
            return false;
        };
        let length = places.div_ceil(4);
        // The last parts may overlap.
        let part = |number: usize| {
            let start = (number * length).min(places - length);
            run.get(start..start + length + TOKEN_BYTES_MIN - 1).unwrap_or_default()
        };
        let parts = [part(0), part(1), part(2), part(3)];
        let mut hashes = parts.map(|part| self.first_fingerprint(part));
        let passes = |hashes: [u64; 4]| hashes.into_iter().fold(0, |found, hash| found | self.filtered(hash)) != 0;
        if passes(hashes) {
            return true;
        }
        let steps = parts.map(|part| part.iter().zip(part.get(TOKEN_BYTES_MIN..).unwrap_or_default()));
        let [first, second, third, fourth] = steps;
        for (((first, second), third), fourth) in first.zip(second).zip(third).zip(fourth) {
            let [one, two, three, four] = hashes;
            let roll = |hash, (oldest, newest): (&u8, &u8)| self.rolled(hash, *oldest, *newest);
            hashes = [roll(one, first), roll(two, second), roll(three, third), roll(four, fourth)];
            if passes(hashes) {
                return true;
            }
        }
        false
    }

    /// Of the first window.
    fn first_fingerprint(&self, run: &[u8]) -> u64 {
        run.iter().take(TOKEN_BYTES_MIN).fold(0, |hash, byte| self.take_in(hash, *byte))
    }

    /// Of the next window. What does not depend on the fingerprint is computed first.
    fn rolled(&self, hash: u64, oldest: u8, newest: u8) -> u64 {
        let change = u64::from(newest).wrapping_sub(u64::from(oldest).wrapping_mul(self.outgoing));
        hash.wrapping_mul(self.base).wrapping_add(change)
    }

    /// Not zero if the filter has it.
    fn filtered(&self, hash: u64) -> u64 {
        self.filter.get(filter_word(hash)).map_or(0, |word| word & filter_bit(hash))
    }

    fn take_in(&self, hash: u64, byte: u8) -> u64 {
        hash.wrapping_mul(self.base).wrapping_add(u64::from(byte))
    }

    fn confirm(&self, fingerprint: u64, text: &[u8]) -> Option<usize> {
        let first = self.tokens.partition_point(|token| token.fingerprint < fingerprint);
        let candidates = self.tokens.iter().skip(first).take_while(|token| token.fingerprint == fingerprint);
        candidates
            .filter(|token| text.get(..token.length).is_some_and(|text| Digest::of(text).matches(&token.digest)))
            .map(|token| token.length)
            .max()
    }
}

fn filter_word(fingerprint: u64) -> usize {
    usize::try_from(fingerprint >> (64 - FILTER_BITS)).unwrap_or(0) / 64
}

fn filter_bit(fingerprint: u64) -> u64 {
    1 << ((fingerprint >> (64 - FILTER_BITS)) % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_token_is_found_at_every_place_of_a_run_of_any_length() {
        let token: Vec<u8> = (0..40).map(|byte| b'a' + byte % 26).collect();
        let mut seen = Seen::new(0x0123_4567_89ab_cdef);
        assert_eq!(seen.find(&token), None, "not used yet");
        assert!(seen.add(&token, Digest::of(&token)));
        for length in 0..200 {
            let hay = vec![b'-'; length];
            assert_eq!(seen.find(&hay), None, "{length}");
            for start in 0..(length + 1).saturating_sub(token.len()) {
                let mut run = hay.clone();
                run[start..start + token.len()].copy_from_slice(&token);
                assert_eq!(seen.find(&run), Some(start..start + token.len()), "{start} of {length}");
                // Its first 32 bytes pass the filter and are not the token.
                run[start + 35] = b'-';
                assert_eq!(seen.find(&run), None, "{start} of {length}");
            }
        }
    }
}
