//! What the load saw: every acknowledgement, every feed, every checkpoint. Nothing is forgotten; the ledger is compared
//! with it later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pilot_evidence::merkle::Hash;
use serde_json::Value;

use crate::clock::millis;

pub(crate) const NODES: usize = 3;

/// A write that was answered with 201.
#[derive(Clone)]
pub(crate) struct Acknowledged {
    pub(crate) actor: String,
    pub(crate) answer: Value,
    /// Where and when, for evidence.
    pub(crate) node: usize,
    pub(crate) at: u64,
    pub(crate) attempts: usize,
}

impl Acknowledged {
    pub(crate) fn item(&self) -> &str {
        let text = |name: &str| self.answer.get(name).and_then(Value::as_str);
        text("item_id").or(text("id")).unwrap_or_default()
    }

    /// Its place in the ledger, if the answer names it.
    pub(crate) fn index(&self) -> Option<u64> {
        self.answer.get("entry").and_then(Value::as_u64)
    }

    pub(crate) fn version(&self) -> u64 {
        self.answer.get("version").and_then(Value::as_u64).unwrap_or_default()
    }
}

impl fmt::Display for Acknowledged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Acknowledged { actor, answer, node, at, attempts } = self;
        write!(f, "node{} to {actor} at {at} ms, attempt {attempts}: {answer}", node + 1)
    }
}

/// Acknowledgements by one node, in milliseconds.
#[derive(Default, Clone, Copy)]
pub(crate) struct Pulse {
    pub(crate) last: u64,
    /// The longest time between two of them since the mark.
    pub(crate) longest: u64,
}

#[derive(Default, Clone)]
pub(crate) struct Counts {
    pub(crate) acknowledged: u64,
    pub(crate) unavailable: u64,
    pub(crate) unknown: u64,
    /// Of writes that were begun while no write could be acknowledged.
    pub(crate) in_silence: u64,
    pub(crate) pulses: [Pulse; NODES],
}

#[derive(Default)]
struct Inner {
    acknowledged: Vec<Acknowledged>,
    counts: Counts,
    silence_from: Option<u64>,
    /// The leaves that each reader received, from the first entry on.
    feeds: Vec<Vec<Hash>>,
    /// By size: each root that was served, with who served it first.
    checkpoints: BTreeMap<u64, BTreeMap<String, String>>,
    violations: BTreeSet<String>,
}

#[derive(Default)]
pub(crate) struct Journal {
    inner: Mutex<Inner>,
    stop: AtomicBool,
}

impl Journal {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    pub(crate) fn acknowledge(&self, acknowledged: Acknowledged, sent: u64) {
        let mut inner = self.inner();
        let now = millis();
        inner.counts.acknowledged += 1;
        if inner.silence_from.is_some_and(|from| sent >= from) {
            inner.counts.in_silence += 1;
            let what = format!("a write was acknowledged that nobody can have replicated: {acknowledged}");
            inner.violations.insert(what);
        }
        if let Some(pulse) = inner.counts.pulses.get_mut(acknowledged.node) {
            pulse.longest = pulse.longest.max(now - pulse.last);
            pulse.last = now;
        }
        inner.acknowledged.push(acknowledged);
    }

    pub(crate) fn unavailable(&self) {
        self.inner().counts.unavailable += 1;
    }

    pub(crate) fn unknown(&self) {
        self.inner().counts.unknown += 1;
    }

    /// Counts begin again.
    pub(crate) fn mark(&self) {
        let mut inner = self.inner();
        let now = millis();
        let pulses = inner.counts.pulses.map(|pulse| Pulse { last: pulse.last.max(now), longest: 0 });
        inner.counts = Counts { pulses, ..Counts::default() };
    }

    /// From now on, or no longer, a write that is begun cannot be acknowledged.
    pub(crate) fn silence(&self, begins: bool) {
        self.inner().silence_from = begins.then(millis);
    }

    /// As of now, with pauses that have not ended.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = self.inner().counts.clone();
        let now = millis();
        for pulse in &mut counts.pulses {
            pulse.longest = pulse.longest.max(now - pulse.last);
        }
        counts
    }

    pub(crate) fn reader(&self) -> usize {
        let mut inner = self.inner();
        inner.feeds.push(Vec::new());
        inner.feeds.len() - 1
    }

    pub(crate) fn received(&self, reader: usize, leaf: Hash) {
        if let Some(feed) = self.inner().feeds.get_mut(reader) {
            feed.push(leaf);
        }
    }

    pub(crate) fn served(&self, size: u64, root: String, node: usize) {
        let by = format!("node{} at {} ms", node + 1, millis());
        self.inner().checkpoints.entry(size).or_default().entry(root).or_insert(by);
    }

    pub(crate) fn violate(&self, what: String) {
        eprintln!("load: at {} ms: {what}", millis());
        self.inner().violations.insert(what);
    }

    pub(crate) fn violations(&self) -> BTreeSet<String> {
        self.inner().violations.clone()
    }

    pub(crate) fn acknowledged(&self) -> Vec<Acknowledged> {
        self.inner().acknowledged.clone()
    }

    pub(crate) fn feeds(&self) -> Vec<Vec<Hash>> {
        self.inner().feeds.clone()
    }

    pub(crate) fn checkpoints(&self) -> BTreeMap<u64, BTreeMap<String, String>> {
        self.inner().checkpoints.clone()
    }
}
