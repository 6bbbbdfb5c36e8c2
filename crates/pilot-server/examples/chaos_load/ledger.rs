//! The ledger as an auditor reads it, and everything that must be true of it and of what was shown of it.

use std::collections::{HashMap, HashSet};

use pilot_evidence::merkle::{Edge, Hash};
use serde_json::Value;

use crate::clock::pause;
use crate::journal::{Acknowledged, Journal};
use crate::readers::read_checkpoint;
use crate::wire::{Connection, Request};

/// How often the nodes are asked for something before that is a failure.
const TRIES: usize = 200;
/// How often a node is asked again that does not have what another one acknowledged.
const BEHIND_TRIES: usize = 20;
const BUNDLE: u64 = 256;

/// What was read so far. It only grows; what is read later must continue it.
#[derive(Default)]
pub(crate) struct Ledger {
    edge: Edge,
    entries: Vec<Value>,
    leaves: Vec<Hash>,
    /// The root at each size, from zero on.
    roots: Vec<String>,
    /// The index of each version of each item.
    moves: HashMap<(String, u64), u64>,
    /// How many acknowledgements were looked up, and how many of those were not found.
    judged: usize,
    pub(crate) lost: usize,
}

impl Ledger {
    pub(crate) fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Reads what is new, from any node that answers. A node may be behind the one that acknowledged a write, but not
    /// for long.
    pub(crate) fn read(
        &mut self,
        journal: &Journal,
        nodes: &mut [Connection],
        token: &str,
        acknowledged: &[Acknowledged],
    ) -> Option<()> {
        if self.roots.is_empty() {
            self.roots.push(self.edge.root().to_base64());
        }
        let newest = acknowledged.iter().filter_map(Acknowledged::index).max();
        for _ in 0..BEHIND_TRIES {
            self.read_once(journal, nodes, token)?;
            if newest.is_none_or(|newest| newest < self.size()) {
                break;
            }
            pause(250);
        }
        Some(())
    }

    fn read_once(&mut self, journal: &Journal, nodes: &mut [Connection], token: &str) -> Option<()> {
        let note = fetch(nodes, "/v1/log/checkpoint", token).or_else(|| unreadable(journal, "a checkpoint"))?;
        let (size, root) = read_checkpoint(&String::from_utf8_lossy(&note))?;
        if size < self.edge.size() {
            journal.violate(format!("the ledger is at {size} entries, and was at {}", self.edge.size()));
            return None;
        }
        while self.edge.size() < size {
            let (bundle, offset) = (self.edge.size() / BUNDLE, self.edge.size() % BUNDLE);
            let width = (size - bundle * BUNDLE).min(BUNDLE);
            let partial = if width < BUNDLE { format!(".p/{width}") } else { String::new() };
            let path = format!("/v1/log/tile/entries/{}{partial}", numbered(bundle));
            let bytes = fetch(nodes, &path, token).or_else(|| unreadable(journal, &path))?;
            for entry in split(&bytes).into_iter().skip(usize::try_from(offset).unwrap_or(0)) {
                self.push(journal, entry)?;
            }
        }
        if self.roots.last() != Some(&root) {
            journal.violate(format!("the checkpoint of size {size} has the root {root}, and the entries do not"));
        }
        Some(())
    }

    fn push(&mut self, journal: &Journal, bytes: &[u8]) -> Option<()> {
        let (index, leaf) = (self.edge.size(), Hash::of_leaf(bytes));
        let Ok(entry) = serde_json::from_slice::<Value>(bytes) else {
            journal.violate(format!("entry {index} is not JSON"));
            return None;
        };
        if entry.get("index").and_then(Value::as_u64) != Some(index) {
            journal.violate(format!("the indices have a gap: {entry} is at {index}"));
        }
        if let Some(key) = move_of(&entry)
            && let Some(earlier) = self.moves.insert(key, index)
        {
            journal.violate(format!("entries {earlier} and {index} are the same version of an item: {entry}"));
        }
        self.edge.push(leaf, &mut Vec::new());
        self.leaves.push(leaf);
        self.roots.push(self.edge.root().to_base64());
        self.entries.push(entry);
        Some(())
    }

    /// Compares what was read with what the load was told and shown.
    pub(crate) fn judge(&mut self, journal: &Journal, acknowledged: &[Acknowledged]) {
        for told in acknowledged.iter().skip(self.judged) {
            let found = self.moves.get(&(told.item().to_owned(), told.version()));
            match found.and_then(|index| Some((*index, self.entries.get(usize::try_from(*index).ok()?)?))) {
                None => {
                    self.lost += 1;
                    journal.violate(format!("acknowledged, and lost: {told}"));
                }
                Some((index, entry)) => {
                    if let Some(difference) = difference(told, index, entry) {
                        journal.violate(format!("{difference} differs: {told} was acknowledged, {entry} is there"));
                    }
                }
            }
        }
        self.judged = acknowledged.len();
        for (reader, feed) in journal.feeds().iter().enumerate() {
            if let Some(index) = feed.iter().zip(&self.leaves).position(|(shown, stored)| shown != stored) {
                journal.violate(format!("reader {reader} was shown another entry {index} than is stored"));
            }
        }
        for (size, roots) in journal.checkpoints() {
            let Some(stored) = usize::try_from(size).ok().and_then(|size| self.roots.get(size)) else { continue };
            for (root, by) in roots.iter().filter(|(root, _)| *root != stored) {
                journal.violate(format!("{by} served a checkpoint of size {size} with the root {root}: a fork"));
            }
        }
    }

    /// What has to be true when nobody writes any more.
    pub(crate) fn judge_end(&self, journal: &Journal, acknowledged: &[Acknowledged]) {
        let told: HashSet<_> = acknowledged.iter().map(|told| (told.item().to_owned(), told.version())).collect();
        if told.len() != acknowledged.len() {
            journal.violate(format!("{} acknowledgements are of {} entries", acknowledged.len(), told.len()));
        }
        // Every write was repeated until it was acknowledged, so what nobody was told about was recorded twice.
        for (key, index) in self.moves.iter().filter(|(key, _)| !told.contains(*key)) {
            journal.violate(format!("entry {index}, version {} of {}, answers no request", key.1, key.0));
        }
        for (reader, feed) in journal.feeds().iter().enumerate().filter(|(_, feed)| feed.len() > self.leaves.len()) {
            journal.violate(format!(
                "reader {reader} was shown {} entries, and {} are stored",
                feed.len(),
                self.leaves.len()
            ));
        }
        for (size, roots) in journal.checkpoints().iter().filter(|(size, _)| **size > self.size()) {
            journal.violate(format!("a checkpoint of size {size} was served, past the end: {roots:?}"));
        }
    }
}

fn unreadable<T>(journal: &Journal, what: &str) -> Option<T> {
    journal.violate(format!("no node serves {what}"));
    None
}

/// Item and version of an entry that changed one.
fn move_of(entry: &Value) -> Option<(String, u64)> {
    let kind = entry.get("type")?.as_str()?;
    if !kind.starts_with("item.") || kind == "item.comment" {
        return None;
    }
    Some((entry.get("item")?.as_str()?.to_owned(), entry.get("version")?.as_u64()?))
}

/// What the acknowledgement says and the entry does not.
fn difference(told: &Acknowledged, index: u64, entry: &Value) -> Option<&'static str> {
    let answer = &told.answer;
    let is_creation = answer.get("entry").is_none();
    let pairs: &[(&str, &str)] = if is_creation {
        &[("created_at", "at"), ("content_digest", "content")]
    } else {
        &[("action", "action"), ("at", "at"), ("from", "from"), ("to", "to"), ("role", "role")]
    };
    if !is_creation && told.index() != Some(index) {
        return Some("the index");
    }
    if entry.get("actor_id").and_then(Value::as_str) != Some(&told.actor) {
        return Some("the actor");
    }
    let differs = |(shown, stored): &(&str, &str)| answer.get(shown) != entry.get(stored);
    pairs.iter().any(differs).then_some("the content")
}

fn fetch(nodes: &mut [Connection], path: &str, token: &str) -> Option<Vec<u8>> {
    let request = Request::get(path, token);
    for _ in 0..TRIES {
        for node in nodes.iter_mut() {
            if let Ok(answer) = node.ask(&request)
                && answer.status == 200
            {
                return Some(answer.body);
            }
        }
        pause(100);
    }
    None
}

/// In groups of three digits, as the specification of tiles writes it.
fn numbered(bundle: u64) -> String {
    let (thousands, rest) = (bundle / 1_000, bundle % 1_000);
    if thousands == 0 { format!("{rest:03}") } else { format!("x{thousands:03}/{rest:03}") }
}

fn split(mut bundle: &[u8]) -> Vec<&[u8]> {
    let mut entries = Vec::new();
    while let [high, low, rest @ ..] = bundle {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((entry, rest)) = rest.split_at_checked(length) else { break };
        entries.push(entry);
        bundle = rest;
    }
    entries
}
