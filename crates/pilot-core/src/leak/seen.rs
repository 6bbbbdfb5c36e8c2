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
        let fingerprint = window.iter().fold(0, |hash, byte| self.take_in(hash, *byte));
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
        if self.tokens.is_empty() {
            return None;
        }
        let mut hash = run.iter().take(TOKEN_BYTES_MIN).fold(0, |hash, byte| self.take_in(hash, *byte));
        let mut ends = run.iter().skip(TOKEN_BYTES_MIN);
        for (start, oldest) in run.iter().enumerate() {
            if self.filter.get(filter_word(hash)).is_some_and(|word| word & filter_bit(hash) != 0)
                && let Some(end) = self.confirm(hash, run.get(start..).unwrap_or_default())
            {
                return Some(start..start + end);
            }
            hash = self.take_in(hash, *ends.next()?).wrapping_sub(u64::from(*oldest).wrapping_mul(self.outgoing));
        }
        None
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
