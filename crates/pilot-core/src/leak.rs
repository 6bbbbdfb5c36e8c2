//! The leak guard: finds clear tokens in text that is about to be written, sent on or stored.
//!
//! No single way of looking finds every token, so there are four nets:
//! 1. a generated token carries a prefix and a checksum, and is found anywhere, even when it is not live yet;
//! 2. a token that has been used is found anywhere by a keyed rolling fingerprint, kept in memory only, and confirmed
//!    by its digest;
//! 3. a token that is live but was never used is found where it stands as a word, by the digest of that word. Once
//!    every live token was used, the second net finds all that this one would, and it rests;
//! 4. with an identity provider, a token it may have signed is found anywhere by its shape; see [`find_signed`].
//!
//! A token holds no space and has at least 32 bytes, so text without a run that long is passed over at once.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

use crate::access_token::find_signed;
use crate::credentials::{Credential, Credentials};
use crate::digest::Digest;
use crate::json;
use crate::limits::{TOKEN_BYTES_MAX, TOKEN_BYTES_MIN};
use crate::token::{self, find_generated};

/// What stands in the place of a token that was found.
pub const WITHHELD: &str = "[token withheld]";

/// Up to this many pieces of a run are also tried joined, for tokens that contain punctuation themselves.
const JOINED_PIECES_MAX: usize = 8;

/// So many signed tokens of one URL are handed on. Each costs a signature check for someone who is not known yet, and
/// whoever hides a live token behind false ones harms nobody but its holder.
const SIGNED_IN_URL_MAX: usize = 2;

pub struct LeakGuard {
    live: Credentials,
    seen: RwLock<Seen>,
    looks_for_signed: bool,
    /// Some live token was never used, so words have to be hashed.
    looks_at_words: AtomicBool,
}

impl LeakGuard {
    /// `key` makes the fingerprints useless to anyone who reads the process's memory of another run.
    pub fn new(live: Credentials, key: u64) -> LeakGuard {
        let looks_at_words = AtomicBool::new(!live.entries().is_empty());
        LeakGuard { live, seen: RwLock::new(Seen::new(key)), looks_for_signed: false, looks_at_words }
    }

    /// Looks for tokens with the shape identity providers give them, too.
    #[must_use]
    pub fn with_signed_tokens(self) -> LeakGuard {
        LeakGuard { looks_for_signed: true, ..self }
    }

    /// For programs that hold no credentials: net 1 alone works.
    pub fn for_generated_tokens() -> LeakGuard {
        LeakGuard::new(Credentials::none(), 0)
    }

    /// Remembers the fingerprint of a token that was just used. Call once per credential.
    pub fn remember(&self, token: &[u8], digest: Digest) {
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        seen.add(token, digest);
        let is_seen = |credential: &Credential| seen.tokens.iter().any(|seen| seen.digest.matches(&credential.digest));
        if self.live.entries().iter().all(is_seen) {
            self.looks_at_words.store(false, Ordering::Release);
        }
    }

    /// The first token in `text`, wherever it stands.
    pub fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        runs(text).find_map(|run| {
            let found = self.find_in_run(text.get(run.clone())?)?;
            Some(run.start + found.start..run.start + found.end)
        })
    }

    /// `text` with every token replaced. Text that hides a token behind escapes is withheld as a whole.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        while let Some(found) = self.find(clean.as_bytes()) {
            clean.to_mut().replace_range(found, WITHHELD);
        }
        if self.is_hidden_in(&clean) { Cow::Borrowed(WITHHELD) } else { clean }
    }

    /// True when text, also after undoing escapes of quotes and backslashes, contains a token.
    pub fn is_in(&self, text: &str) -> bool {
        self.find(text.as_bytes()).is_some() || self.is_hidden_in(text)
    }

    fn is_hidden_in(&self, text: &str) -> bool {
        let mut text = Cow::Borrowed(text);
        // Twice: a debug rendering inside of a JSON string escapes two times.
        for _ in 0..2 {
            if !text.contains('\\') {
                return false;
            }
            text = Cow::Owned(without_one_level_of_escapes(&text));
            if self.find(text.as_bytes()).is_some() {
                return true;
            }
        }
        false
    }

    /// The credential whose token a request target carries, percent-encoded or not.
    pub fn find_live_in_url(&self, target: &str) -> Option<&Credential> {
        if target.len() < TOKEN_BYTES_MIN {
            return None;
        }
        // What is not encoded is part of the target as it stands, where the first two nets find a token anywhere.
        if !target.contains('%') && !self.looks_at_words.load(Ordering::Acquire) {
            return self.live_in(target.as_bytes());
        }
        // Encoded delimiters belong to a value, so the values are taken apart before they are decoded.
        let values = target
            .split(['/', '?', '&', '#'])
            .flat_map(|part| [part, part.split_once('=').map_or("", |(_, value)| value)]);
        // Decoding only shortens, and the whole is another text only when something in it is encoded.
        let long = values.filter(|value| value.len() >= TOKEN_BYTES_MIN);
        let whole = Some(target).filter(|target| target.contains('%'));
        let decoded = long.chain(whole).map(|value| percent_decoded(value.as_bytes()));
        self.live_in(target.as_bytes()).or_else(|| decoded.into_iter().find_map(|text| self.live_in(&text)))
    }

    /// The first signed tokens a request target carries, percent-encoded or not. Whether one is live is for others to
    /// say.
    pub fn find_signed_in_url(&self, target: &str) -> Vec<Vec<u8>> {
        if !self.looks_for_signed || target.len() < TOKEN_BYTES_MIN {
            return Vec::new();
        }
        let decoded = percent_decoded(target.as_bytes());
        let mut rest = decoded.as_slice();
        let mut found = Vec::new();
        while found.len() < SIGNED_IN_URL_MAX
            && let Some(range) = find_signed(rest)
        {
            found.push(rest.get(range.clone()).unwrap_or_default().to_vec());
            rest = rest.get(range.end..).unwrap_or_default();
        }
        found
    }

    fn live_in(&self, text: &[u8]) -> Option<&Credential> {
        let mut rest = text;
        while let Some(found) = self.find(rest) {
            let token = rest.get(found.clone()).unwrap_or_default();
            if let Some((_, credential)) = self.live.find(&Digest::of(token)) {
                return Some(credential);
            }
            rest = rest.get(found.start + 1..).unwrap_or_default();
        }
        None
    }

    /// The places in a JSON document where a token stands.
    pub fn find_in_json(&self, value: &Value) -> Vec<String> {
        let mut pointers = Vec::new();
        json::for_each_text(value, &mut |pointer, text| {
            if self.is_in(text) {
                pointers.push(self.redact(pointer).into_owned());
            }
        });
        pointers
    }

    fn find_in_run(&self, run: &[u8]) -> Option<Range<usize>> {
        let signed = || if self.looks_for_signed { find_signed(run) } else { None };
        find_generated(run, 0).or_else(signed).or_else(|| self.find_seen(run)).or_else(|| self.find_word(run))
    }

    fn find_seen(&self, run: &[u8]) -> Option<Range<usize>> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner).find(run)
    }

    fn find_word(&self, run: &[u8]) -> Option<Range<usize>> {
        if !self.looks_at_words.load(Ordering::Acquire) {
            return None;
        }
        let is_live = |range: &Range<usize>| {
            let word = run.get(range.clone()).unwrap_or_default();
            token::is_well_formed(word) && self.live.find(&Digest::of(word)).is_some()
        };
        words(run).into_iter().find(is_live)
    }
}

/// Stretches of token bytes that are long enough to hold a token. Looks at the end of each place where one could stand
/// first: most text has a space there, and is passed over in large steps.
fn runs(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let place = text.get(at..at + TOKEN_BYTES_MIN)?;
            if let Some(gap) = place.iter().rposition(|byte| !byte.is_ascii_graphic()) {
                at += gap + 1;
                continue;
            }
            let rest = text.get(at..)?;
            let length = rest.iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(rest.len());
            let run = at..at + length;
            at += length + 1;
            return Some(run);
        }
    })
}

/// Where one word ends and the next begins, besides white space: the punctuation of JSON, URLs, shells and headers. The
/// dot, the hyphen and the underscore belong to words.
fn is_delimiter(byte: u8) -> bool {
    byte.is_ascii_punctuation() && !matches!(byte, b'.' | b'-' | b'_')
}

/// The words of a run that could be a token: the whole, each piece between delimiters, and, where there are few
/// pieces, those next to each other joined.
fn words(run: &[u8]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, byte) in run.iter().enumerate() {
        if is_delimiter(*byte) {
            pieces.push(start..at);
            start = at + 1;
        }
    }
    pieces.push(start..run.len());
    let whole = 0..run.len();
    let mut words = Vec::from([whole.clone()]);
    let joined_max = if pieces.len() <= JOINED_PIECES_MAX { pieces.len() } else { 1 };
    for (index, first) in pieces.iter().enumerate() {
        for last in pieces.iter().skip(index).take(joined_max) {
            if (first.start..last.end) != whole {
                words.push(first.start..last.end);
            }
            // A delimiter may itself be the token's first or last character.
            if joined_max > 1 && last.end < run.len() {
                words.push(first.start..last.end + 1);
            }
        }
    }
    words.retain(|word| (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&word.len()));
    words
}

fn without_one_level_of_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    plain
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let escaped = text.get(at + 1..at + 3).filter(|_| *byte == b'%').and_then(|hex| {
            let hex = std::str::from_utf8(hex).ok().filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
            u8::from_str_radix(hex, 16).ok()
        });
        decoded.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    decoded
}

/// Fingerprints of the first 32 bytes of each token that was used: a polynomial over a secret base, which can be
/// rolled along a text in two multiplications a byte.
struct Seen {
    base: u64,
    /// `base` to the power of the window, to take the oldest byte out again.
    outgoing: u64,
    tokens: Vec<SeenToken>,
    /// One bit for the top bits of each fingerprint, so that most positions cost one look into a small table.
    filter: Vec<u64>,
}

struct SeenToken {
    fingerprint: u64,
    length: usize,
    digest: Digest,
}

const FILTER_BITS: u32 = 16;

impl Seen {
    fn new(key: u64) -> Seen {
        let base = key | 1;
        let outgoing = (0..TOKEN_BYTES_MIN).fold(1_u64, |power, _| power.wrapping_mul(base));
        Seen { base, outgoing, tokens: Vec::new(), filter: vec![0; (1 << FILTER_BITS) / 64] }
    }

    fn add(&mut self, token: &[u8], digest: Digest) {
        let Some(window) = token.get(..TOKEN_BYTES_MIN) else { return };
        let fingerprint = window.iter().fold(0, |hash, byte| self.take_in(hash, *byte));
        if let Some(word) = self.filter.get_mut(filter_word(fingerprint)) {
            *word |= filter_bit(fingerprint);
        }
        let at = self.tokens.partition_point(|token| token.fingerprint < fingerprint);
        self.tokens.insert(at, SeenToken { fingerprint, length: token.len(), digest });
    }

    fn find(&self, run: &[u8]) -> Option<Range<usize>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{actor::Actor, credentials::Schema, role::Role, token::Token};

    const HANDMADE: &str = "correct/horse\"battery\\staple=2026!";

    fn guard(live: &[&str], used: &[&str]) -> LeakGuard {
        let actor = Actor { actor_id: "ana".parse().unwrap(), role: Role::Auditor };
        let entry = |token: &&str| Credential::plain(actor.clone(), Digest::of(token.as_bytes()));
        let guard =
            LeakGuard::new(Credentials::new(Schema::One, live.iter().map(entry).collect()), 0x9E37_79B9_7F4A_7C15);
        for token in used {
            guard.remember(token.as_bytes(), Digest::of(token.as_bytes()));
        }
        guard
    }

    fn check(guard: &LeakGuard, text: &str, expected: &str) {
        assert_eq!(guard.redact(text), expected, "{text}");
    }

    #[test]
    fn a_generated_token_is_found_anywhere_even_when_it_is_not_live() {
        let token = Token::generate(&[3; 32]).hand_over();
        let token = token.as_str();
        let guard = LeakGuard::for_generated_tokens();
        check(&guard, &format!("{{\"token\":\"{token}\"}}"), "{\"token\":\"[token withheld]\"}");
        check(&guard, &format!("x{token}x {token}"), "x[token withheld]x [token withheld]");
        check(&guard, "pilot_notatoken and a plain sentence", "pilot_notatoken and a plain sentence");
    }

    #[test]
    fn a_used_token_is_found_inside_of_any_text() {
        let token = "abcdefghijklmnopqrstuvwxyz0123456789";
        let guard = guard(&[token], &[token]);
        check(&guard, &format!("before{token}after"), "before[token withheld]after");
        check(&guard, &format!("?t={token}&u={token}"), "?t=[token withheld]&u=[token withheld]");
        check(&guard, &token[..35], &token[..35]);
    }

    #[test]
    fn a_live_token_that_was_never_used_is_found_as_a_word() {
        let token = "abcdefghijklmnopqrstuvwxyz0123456789";
        let guard = guard(&[token, HANDMADE], &[]);
        check(&guard, &format!("Bearer {token}"), "Bearer [token withheld]");
        check(&guard, &format!("{{\"token\":\"{token}\"}}"), "{\"token\":\"[token withheld]\"}");
        check(&guard, &format!("/v1/session?t={token}"), "/v1/session?t=[token withheld]");
        check(&guard, HANDMADE, "[token withheld]");
    }

    #[test]
    fn once_every_live_token_was_used_each_is_still_found_and_until_then_the_unused_ones_are() {
        let [first, second] = ["abcdefghijklmnopqrstuvwxyz0123456789", HANDMADE];
        let encoded: String = HANDMADE.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for used in [&[first][..], &[second], &[first, second]] {
            let guard = guard(&[first, second], used);
            for token in [first, second] {
                check(&guard, &format!("see {token} there"), "see [token withheld] there");
            }
            for token in [first, &encoded] {
                assert!(guard.find_live_in_url(&format!("/v1/session?t={token}")).is_some(), "{used:?} {token}");
            }
        }
    }

    #[test]
    fn a_token_behind_escapes_withholds_the_whole_text() {
        let guard = guard(&[HANDMADE], &[HANDMADE]);
        let once = serde_json::to_string(HANDMADE).unwrap();
        let twice = serde_json::to_string(&once).unwrap();
        check(&guard, &format!("{{\"a\": {once}}}"), WITHHELD);
        check(&guard, &format!("{{\"a\": {twice}}}"), WITHHELD);
    }

    #[test]
    fn a_live_token_in_a_url_is_found_also_percent_encoded_and_a_dead_one_is_not() {
        let token = "abcdefghijklmnopqrstuvwxyz0123456789";
        let guard = guard(&[token, HANDMADE], &[]);
        let encoded: String = HANDMADE.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for target in [format!("/v1/session?access_token={token}"), format!("/{token}"), format!("/x?y={encoded}")] {
            assert!(guard.find_live_in_url(&target).is_some(), "{target}");
        }
        let dead = Token::generate(&[1; 32]).hand_over();
        for target in [format!("/v1/session?t={}", *dead), "/v1/session?q=an+ordinary+search+of+some+length".to_owned()]
        {
            assert!(guard.find_live_in_url(&target).is_none(), "{target}");
        }
        assert!(guard.find_live_in_url(&format!("/?a={}&b={token}", *dead)).is_some());
    }

    #[test]
    fn a_token_in_json_is_reported_by_its_place_never_by_its_value() {
        let token = "abcdefghijklmnopqrstuvwxyz0123456789";
        let guard = guard(&[token], &[]);
        let value = serde_json::json!({"a": [{"b": format!("see {token}")}], (token): {"c": token}});
        let places = guard.find_in_json(&value);
        assert_eq!(places, ["/a/0/b", "", "/[token withheld]/c"]);
    }

    #[test]
    fn a_signed_token_is_found_only_when_an_identity_provider_signs_them() {
        let token = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl";
        let text = format!("see \"{token}\" and {token}.");
        check(&guard(&[], &[]), &text, &text);
        let guard = guard(&[], &[]).with_signed_tokens();
        check(&guard, &text, "see \"[token withheld]\" and [token withheld].");
        assert_eq!(guard.find_in_json(&serde_json::json!({"a": text, "b": "ordinary"})), ["/a"]);
        let encoded = token.replace('.', "%2e");
        for target in [format!("/v1/session?access_token={token}"), format!("/{encoded}/x"), format!("//{token}@host/")]
        {
            assert_eq!(guard.find_signed_in_url(&target), [token.as_bytes()], "{target}");
        }
        assert_eq!(guard.find_signed_in_url("/v1/items?q=nothing.of.that.kind.is.in.here"), [b""; 0]);
    }

    #[test]
    fn a_url_full_of_signed_tokens_gives_no_more_than_two_of_them_to_check() {
        let token = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl";
        let guard = guard(&[], &[]).with_signed_tokens();
        for (count, found) in [(1, 1), (2, 2), (3, 2), (100, 2)] {
            let target = format!("/{}", vec![token; count].join("/"));
            assert_eq!(guard.find_signed_in_url(&target).len(), found, "{count}");
        }
    }

    #[test]
    fn every_position_and_length_of_a_used_token_is_found() {
        for length in [32, 33, 64, 255, 256] {
            let token: String = ('!'..='~').cycle().step_by(7).take(length).collect();
            let guard = guard(&[], &[&token]);
            for lead in [0, 1, 31, 32, 33] {
                let text = format!("{}{token}{}", "x".repeat(lead), "y".repeat(lead));
                assert_eq!(guard.find(text.as_bytes()), Some(lead..lead + length), "{length} {lead}");
            }
        }
    }
}
