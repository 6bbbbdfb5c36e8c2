//! The leak guard: finds clear tokens in text that is about to be written, sent on or stored.
//!
//! No single method finds every token, so there are four nets:
//! 1. a generated token carries a prefix and a checksum, and is found anywhere, even before it is live;
//! 2. a token that has been used is found anywhere by a keyed rolling fingerprint, kept in memory only, and confirmed
//!    by its digest;
//! 3. a token that is live but was never used is found by digest: in content, anywhere in a run of usual length; in
//!    longer runs, where it is a word. Once every live token has been used, this net rests, because the second one
//!    finds everything it would;
//! 4. with an identity provider, a token it may have signed is found anywhere by its shape; see [`find_signed`].
//!
//! A token contains no space and has at least 32 bytes, so text without a run that long is skipped immediately.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

use crate::access_token::find_signed;
use crate::credentials::{Credential, Credentials};
use crate::digest::Digest;
use crate::json;
use crate::limits::{FAULTS_MAX, POINTER_BYTES_MAX, TOKEN_BYTES_MIN};
use crate::scan::first;
use crate::token::find_generated;

use cleared::Cleared;
use decoded::{percent_decoded, readings};
use seen::Seen;
use words::Budget;

mod cleared;
mod decoded;
mod seen;
mod sweep;
#[cfg(test)]
mod tests;
mod words;

pub use sweep::Sweep;

/// What replaces a token that was found.
pub const WITHHELD: &str = "[token withheld]";

/// How many signed tokens of one URL are passed on. Each costs a signature check, for an unauthenticated caller; and
/// hiding a live token behind false ones harms only its holder.
const SIGNED_IN_URL_MAX: usize = 2;

pub struct LeakGuard {
    live: Credentials,
    seen: RwLock<Seen>,
    cleared: Cleared,
    looks_for_signed: bool,
    /// How many live tokens were never used. As long as there are some, words have to be hashed.
    unused: AtomicUsize,
}

impl LeakGuard {
    /// `key` makes fingerprints and marks useless to anyone who has read the process's memory in another run.
    pub fn new(live: Credentials, key: u64) -> LeakGuard {
        let unused = AtomicUsize::new(live.entries().len());
        LeakGuard {
            live,
            seen: RwLock::new(Seen::new(key)),
            cleared: Cleared::new(key),
            looks_for_signed: false,
            unused,
        }
    }

    /// Also looks for tokens with the shape that identity providers give them.
    #[must_use]
    pub fn with_signed_tokens(self) -> LeakGuard {
        LeakGuard { looks_for_signed: true, ..self }
    }

    /// For programs without credentials: only net 1 works.
    pub fn for_generated_tokens() -> LeakGuard {
        LeakGuard::new(Credentials::none(), 0)
    }

    /// Remembers the fingerprint of a token that was just used.
    pub fn remember(&self, token: &[u8], digest: Digest) {
        let is_live = self.live.find(&digest).is_some();
        let is_new = self.seen.write().unwrap_or_else(PoisonError::into_inner).add(token, digest);
        if is_live && is_new {
            self.unused.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The first token in `text`. For tokens that were never used, only words are tried: this is for text that was
    /// already searched when it was written.
    pub fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        self.search(Budget::of_words()).find(text)
    }

    /// `text` with every token replaced. Text that hides a token behind escapes is withheld completely.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.search(Budget::of_content()).redact(text)
    }

    /// Whether text contains a token, even behind escaped quotes and backslashes or percent-encoding.
    pub fn is_in(&self, text: &str) -> bool {
        self.search(Budget::of_content()).is_in(text)
    }

    /// The places in a JSON document that contain a token; only the first few.
    pub fn find_in_json(&self, value: &Value) -> Vec<String> {
        let mut search = self.search(Budget::of_content());
        let mut pointers = Vec::new();
        json::for_each_text(value, &mut |pointer, text| {
            if pointers.len() < FAULTS_MAX && search.is_in(text) {
                let is_short = pointer.len() <= POINTER_BYTES_MAX;
                pointers.push(if is_short { search.redact(pointer).into_owned() } else { WITHHELD.to_owned() });
            }
        });
        pointers
    }

    /// The credential of the first live token in a JSON document in which [`LeakGuard::find_in_json`] found one.
    pub fn find_live_in_json(&self, value: &Value) -> Option<&Credential> {
        let mut search = self.search(Budget::of_content());
        let mut found = None;
        json::for_each_text(value, &mut |_, text| {
            if found.is_none() {
                let text = text.as_bytes();
                found = search.live(text).or_else(|| search.live_in_stretch(text));
                found = found.or_else(|| search.live_when_decoded(text));
            }
        });
        found
    }

    /// The first signed tokens in a JSON document. The caller has to find out whether one is live.
    pub fn find_signed_in_json(&self, value: &Value) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        json::for_each_text(value, &mut |_, text| {
            if found.len() < SIGNED_IN_URL_MAX {
                found.extend(self.find_signed_in_url(text));
            }
        });
        found.truncate(SIGNED_IN_URL_MAX);
        found
    }

    /// The credential whose token a request target contains, percent-encoded up to twice or not at all.
    pub fn find_live_in_url(&self, target: &str) -> Option<&Credential> {
        let mut search = self.search(Budget::of_url(target.len()));
        // Encoded delimiters belong to a value, so the target is split into values before decoding.
        let mut values = values(target).map(str::as_bytes).filter(|value| value.len() >= TOKEN_BYTES_MIN);
        let found = search.live(target.as_bytes()).or_else(|| search.live_when_decoded(target.as_bytes()));
        found.or_else(|| {
            values.find_map(|value| search.live_in_stretch(value).or_else(|| search.live_when_decoded(value)))
        })
    }

    /// The first signed tokens in a request target, percent-encoded or not. The caller has to find out whether one is
    /// live.
    pub fn find_signed_in_url(&self, target: &str) -> Vec<Vec<u8>> {
        if !self.looks_for_signed || target.len() < TOKEN_BYTES_MIN {
            return Vec::new();
        }
        let decoded = percent_decoded(target.as_bytes());
        let mut rest = decoded.as_deref().unwrap_or(target.as_bytes());
        let mut found = Vec::new();
        while found.len() < SIGNED_IN_URL_MAX
            && let Some(range) = find_signed(rest)
        {
            found.push(rest.get(range.clone()).unwrap_or_default().to_vec());
            rest = rest.get(range.end..).unwrap_or_default();
        }
        found
    }

    fn search(&self, budget: Budget) -> Search<'_> {
        let looks_for_unused = self.unused.load(Ordering::Acquire) > 0;
        Search { guard: self, budget, looks_for_unused }
    }

    fn find_seen(&self, run: &[u8]) -> Option<Range<usize>> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner).find(run)
    }

    fn credential(&self, token: &[u8]) -> Option<&Credential> {
        self.live.find(&Digest::of(token)).map(|(_, credential)| credential)
    }

    /// Whether a word is a live token. Stretches do not come here: there are too many to remember.
    fn is_live(&self, word: &[u8]) -> bool {
        let mark = self.cleared.mark(word);
        if self.cleared.has(mark) {
            return false;
        }
        let is_live = self.credential(word).is_some();
        if !is_live {
            self.cleared.note(mark);
        }
        is_live
    }
}

/// One search of one text, or of all the texts of one document.
struct Search<'g> {
    guard: &'g LeakGuard,
    budget: Budget,
    looks_for_unused: bool,
}

impl<'g> Search<'g> {
    fn find(&mut self, text: &[u8]) -> Option<Range<usize>> {
        self.find_with_run(text).map(|(_, found)| found)
    }

    /// Where the run that contains the first token begins, and the token.
    fn find_with_run(&mut self, text: &[u8]) -> Option<(usize, Range<usize>)> {
        runs(text).find_map(|run| {
            let found = self.find_in_run(text.get(run.clone())?)?;
            Some((run.start, run.start + found.start..run.start + found.end))
        })
    }

    fn redact<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let clean = match self.find_with_run(text.as_bytes()) {
            None => Cow::Borrowed(text),
            first => {
                let mut clean = String::with_capacity(text.len());
                self.redact_into(&mut clean, text, first);
                Cow::Owned(clean)
            }
        };
        if self.is_hidden_in(clean.as_bytes()) { Cow::Borrowed(WITHHELD) } else { clean }
    }

    /// Piece by piece, so that a text full of tokens costs no more than one with few.
    fn redact_into(&mut self, clean: &mut String, text: &str, first: Option<(usize, Range<usize>)>) {
        let (mut rest, mut next) = (text, first);
        while let Some((run, found)) = next {
            clean.push_str(rest.get(..run).unwrap_or_default());
            // The nets are tried in turn: before what one has found, there may be something for the next.
            let before = rest.get(run..found.start).unwrap_or_default();
            let other = self.find_with_run(before.as_bytes());
            self.redact_into(clean, before, other);
            clean.push_str(WITHHELD);
            rest = rest.get(found.end..).unwrap_or_default();
            next = self.find_with_run(rest.as_bytes());
        }
        clean.push_str(rest);
    }

    fn is_in(&mut self, text: &str) -> bool {
        self.find(text.as_bytes()).is_some() || self.is_hidden_in(text.as_bytes())
    }

    fn is_hidden_in(&mut self, text: &[u8]) -> bool {
        if !text.iter().any(|byte| matches!(byte, b'\\' | b'%')) {
            return false;
        }
        runs(text).filter_map(|run| text.get(run)).any(|run| readings(run).any(|reading| self.find(&reading).is_some()))
    }

    fn find_in_run(&mut self, run: &[u8]) -> Option<Range<usize>> {
        let known = self.known(run);
        if known.is_some() || !self.looks_for_unused { known } else { self.find_unused(run) }
    }

    /// A token that was used or is recognised by its shape.
    fn known(&self, run: &[u8]) -> Option<Range<usize>> {
        let guard = self.guard;
        let signed = || if guard.looks_for_signed { find_signed(run) } else { None };
        find_generated(run, 0).or_else(signed).or_else(|| guard.find_seen(run))
    }

    /// A live token that was never used.
    fn find_unused(&mut self, run: &[u8]) -> Option<Range<usize>> {
        // What is not searched any further is not let through.
        if self.budget.is_spent() {
            return Some(0..run.len());
        }
        let guard = self.guard;
        match words::stretches(run, &mut self.budget) {
            Some(mut stretches) => {
                stretches.find(|range| run.get(range.clone()).is_some_and(|part| guard.credential(part).is_some()))
            }
            None => words::find_word(run, &mut self.budget, |word| guard.is_live(word)),
        }
    }

    /// The live credential whose token is a word of `text`, or was used and is anywhere in it.
    fn live(&mut self, text: &[u8]) -> Option<&'g Credential> {
        runs(text).filter_map(|run| text.get(run)).find_map(|run| self.live_in_run(run))
    }

    fn live_in_run(&mut self, run: &[u8]) -> Option<&'g Credential> {
        let guard = self.guard;
        let credential = |range: Range<usize>| guard.credential(run.get(range)?);
        let generated = || {
            let next = |found: &Range<usize>| find_generated(run, found.start + 1);
            std::iter::successors(find_generated(run, 0), next).find_map(credential)
        };
        let unused = || words::find_word(run, &mut self.budget, |word| guard.is_live(word)).and_then(credential);
        let used = || guard.find_seen(run).and_then(credential);
        generated().or_else(used).or_else(|| self.looks_for_unused.then(unused).flatten())
    }

    /// As [`Search::live`] and [`Search::live_in_stretch`], with percent-encoding undone.
    fn live_when_decoded(&mut self, value: &[u8]) -> Option<&'g Credential> {
        let mut decoded = std::iter::successors(percent_decoded(value), |text| percent_decoded(text)).take(2);
        decoded.find_map(|text| self.live(&text).or_else(|| self.live_in_stretch(&text)))
    }

    /// The same for a token that was never used, anywhere in `text`.
    fn live_in_stretch(&mut self, text: &[u8]) -> Option<&'g Credential> {
        let guard = self.guard;
        if !self.looks_for_unused {
            return None;
        }
        runs(text).filter_map(|run| text.get(run)).find_map(|run| {
            let mut stretches = words::stretches(run, &mut self.budget)?;
            stretches.find_map(|range| guard.credential(run.get(range)?))
        })
    }
}

/// The parts of a request target that someone may have filled in: path segments, query values, and what follows a `#`.
/// A name that could be a token is one of them.
fn values(target: &str) -> impl Iterator<Item = &str> {
    let (path, rest) = target.split_once(['?', '#']).unwrap_or((target, ""));
    let value = |member| match str::split_once(member, '=') {
        Some((name, value)) if name.len() < TOKEN_BYTES_MIN => value,
        _ => member,
    };
    path.split('/').chain(rest.split(['&', '#', '?']).map(value))
}

/// Runs of token bytes that are long enough to contain a token. At each position it first checks the end of the
/// shortest possible token: most text has a space there, and is skipped in large steps.
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
            let length = first(rest, |byte| !byte.is_ascii_graphic()).unwrap_or(rest.len());
            let run = at..at + length;
            at += length + 1;
            return Some(run);
        }
    })
}
