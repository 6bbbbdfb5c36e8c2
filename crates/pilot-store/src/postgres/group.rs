//! A group of writes, decided in order on what was read under the lock. Nothing here talks to the database: what a
//! write changes is gathered, each row once, and sent afterwards.

use std::collections::{BTreeMap, HashMap};

use pilot_core::certain::Certain as _;
use pilot_core::decide::OpenItems;
use pilot_core::document::DocumentKind;
use pilot_core::item::Item;
use pilot_core::limits::{COMMENTED_ENTRIES_MAX, IDEMPOTENCY_KEY_KEPT};
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash};
use pilot_evidence::tile::Tile;

use super::failure::Failure;
use crate::row::{ItemKey, remember, remembered, to_key};
use crate::{CountOpen, Fact, Key, NoRecord, Outcome, Record, Situation, Standing, Subject, Write};

/// Entry bundles use two bytes for the length of each entry.
const ENTRY_BYTES_MAX: usize = u16::MAX as usize;

/// An item with the ledger indices that its row points to.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) standing: Standing,
    pub(super) created_entry: u64,
    pub(super) last_entry: u64,
    pub(super) content_entry: u64,
    pub(super) entries: u64,
}

/// A remembered key: the body it came with, what is remembered, and when it was recorded.
pub(super) struct KeyRow {
    pub(super) body: [u8; 32],
    pub(super) answer: Vec<u8>,
    pub(super) at: i64,
}

/// What was read under the lock, and what the group has made of it so far.
pub(super) struct Ground {
    pub(super) edge: Edge,
    pub(super) last_at: Time,
    /// The entry that adopted the configuration in force.
    pub(super) epoch: u64,
    pub(super) items: HashMap<ItemKey, Placed>,
    pub(super) keys: HashMap<[u8; 32], KeyRow>,
    pub(super) facts: HashMap<String, Vec<u8>>,
    /// Open items by creator and workflow, or of all workflows.
    pub(super) open_items: HashMap<(String, Option<String>), usize>,
}

impl Ground {
    pub(super) fn new(edge: Edge, last_at: Time, epoch: u64) -> Ground {
        let (items, keys, facts, open_items) = Default::default();
        Ground { edge, last_at, epoch, items, keys, facts, open_items }
    }
}

pub(super) struct NewEntry {
    pub(super) index: u64,
    pub(super) item: Option<(ItemKey, u64)>,
    pub(super) leaf: Hash,
    pub(super) bytes: Vec<u8>,
}

/// What the commit has to write.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) entries: Vec<NewEntry>,
    pub(super) documents: Vec<(u64, DocumentKind, Vec<u8>)>,
    pub(super) tiles: Vec<Tile>,
    /// The items that changed, each with its newest entry before the group; `None` for a new one.
    pub(super) items: BTreeMap<ItemKey, Option<u64>>,
    pub(super) keys: BTreeMap<[u8; 32], KeyRow>,
    pub(super) facts: BTreeMap<String, Option<Vec<u8>>>,
    /// The entry with which another configuration was adopted.
    pub(super) adopted: Option<u64>,
    pub(super) bytes: usize,
    /// Something already recorded was acknowledged again, so it must be durable before anyone is told.
    pub(super) acknowledges_earlier: bool,
}

impl Changes {
    /// Whether anyone is told something that a failover must not undo.
    pub(super) fn has_to_be_committed(&self) -> bool {
        !self.entries.is_empty() || !self.facts.is_empty() || self.acknowledges_earlier
    }
}

pub(super) struct Group {
    pub(super) ground: Ground,
    pub(super) changes: Changes,
}

impl Group {
    pub(super) fn on(ground: Ground) -> Group {
        Group { ground, changes: Changes::default() }
    }

    pub(super) fn settle(&mut self, write: &Write, now: Time) -> Result<Outcome, Failure> {
        let Write { subject, key, reads, decide } = write;
        let now = now.max(self.ground.last_at);
        if let Some(outcome) = key.as_ref().and_then(|key| self.recall(key, now)) {
            self.changes.acknowledges_earlier |= matches!(outcome, Outcome::Repeated(_));
            return Ok(outcome);
        }
        let ground = &self.ground;
        let (before, open_items) = match subject {
            Subject::Ledger | Subject::NewItem { count_open: None } => (None, OpenItems::default()),
            Subject::NewItem { count_open: Some(CountOpen { creator, workflow, max }) } => {
                let of = |workflow: Option<String>| ground.open_items.get(&(creator.to_string(), workflow)).copied();
                let (of_workflow, in_all) = (of(Some(workflow.clone())).unwrap_or(0), of(None).unwrap_or(0));
                (None, OpenItems { of_workflow, in_all, max: *max })
            }
            Subject::Item(id) | Subject::CountedItem(id) => match ground.items.get(&to_key(id)) {
                Some(before) => (Some(before), OpenItems::default()),
                None => return Ok(Outcome::NoSuchItem),
            },
        };
        let counts = matches!(subject, Subject::CountedItem(_));
        let count = |placed: &Placed| usize::try_from(placed.entries).unwrap_or(usize::MAX).min(COMMENTED_ENTRIES_MAX);
        let facts: Vec<_> = reads.iter().map(|name| ground.facts.get(name).cloned()).collect();
        let situation = Situation {
            item: before.map(|before| &before.standing.item),
            last_entry: before.map(|before| before.last_entry),
            entries: before.filter(|_| counts).map(count),
            open_items,
            facts: &facts,
            now,
            index: ground.edge.size(),
        };
        match decide(&situation) {
            Ok(record) => self.record(record, subject, *key, now),
            Err(NoRecord::Refused(refusal)) => Ok(Outcome::Refused(refusal)),
            Err(NoRecord::Nothing) => {
                self.changes.acknowledges_earlier = true;
                Ok(Outcome::Nothing)
            }
            Err(NoRecord::Note(facts)) => {
                self.note(facts);
                Ok(Outcome::Noted)
            }
        }
    }

    fn recall(&self, key: &Key, now: Time) -> Option<Outcome> {
        let found = self.ground.keys.get(&key.scope).filter(|found| found.at >= oldest_key(now))?;
        Some(if found.body == key.body {
            Outcome::Repeated(remembered(found.answer.clone()))
        } else {
            Outcome::KeyReused
        })
    }

    fn record(&mut self, record: Record, subject: &Subject, key: Option<Key>, now: Time) -> Result<Outcome, Failure> {
        let index = self.ground.edge.size();
        let Record { entry, documents, standing, shown, facts, adopts } = record;
        // Assertions in pairs: the rules made this entry for this index, and it is written at no other.
        if entry.index != index || entry.at < self.ground.last_at {
            return Err(Failure::Damaged(format!("entry {} at {} is out of order", entry.index, entry.at)));
        }
        let mut bytes = Vec::new();
        entry.write_to(&mut bytes).map_err(|error| Failure::Damaged(format!("an entry cannot be written: {error}")))?;
        if bytes.len() > ENTRY_BYTES_MAX {
            return Err(Failure::Damaged(format!("entry {index} is longer than the log's format allows")));
        }
        let has_content = |item: &Item| documents.iter().any(|document| document.digest == item.content_digest);
        let item = match standing {
            Some(standing) => {
                let has_content = has_content(&standing.item);
                Some(self.place(standing, subject, has_content, index)?)
            }
            None => None,
        };
        let leaf = Hash::of_leaf(&bytes);
        self.changes.bytes += bytes.len();
        self.changes.entries.push(NewEntry { index, item, leaf, bytes });
        for document in documents {
            self.changes.bytes += document.bytes.len();
            self.changes.documents.push((index, document.kind, document.bytes));
        }
        if let Some(key) = key {
            let row = || KeyRow { body: key.body, answer: remember(index), at: now.unix_micros() };
            self.ground.keys.insert(key.scope, row());
            self.changes.keys.insert(key.scope, row());
        }
        self.note(facts);
        if adopts {
            self.ground.epoch = index;
            self.changes.adopted = Some(index);
        }
        self.ground.edge.push(leaf, &mut self.changes.tiles);
        self.ground.last_at = entry.at;
        Ok(Outcome::Recorded { entry, shown })
    }

    fn note(&mut self, facts: Vec<Fact>) {
        for Fact { name, value } in facts {
            match &value {
                Some(value) => drop(self.ground.facts.insert(name.clone(), value.clone())),
                None => drop(self.ground.facts.remove(&name)),
            }
            self.changes.facts.insert(name, value);
        }
    }

    /// Notes where the item stands now. Returns its key, and which entry about it this is.
    fn place(
        &mut self,
        standing: Standing,
        subject: &Subject,
        has_content: bool,
        index: u64,
    ) -> Result<(ItemKey, u64), Failure> {
        let key = to_key(&standing.item.id);
        let before = match subject {
            Subject::Item(id) | Subject::CountedItem(id) if to_key(id) != key => {
                return Err(Failure::Damaged(format!("a write about another item gives {}", standing.item.id)));
            }
            Subject::Item(_) | Subject::CountedItem(_) => self.ground.items.remove(&key),
            Subject::Ledger | Subject::NewItem { .. } => None,
        };
        let nth = before.as_ref().map_or(1, |before| before.entries + 1);
        let was_open = before.as_ref().is_some_and(|before| before.standing.is_open);
        self.count_open(&standing, was_open);
        let last_before = before.as_ref().map(|before| before.last_entry);
        self.changes.items.entry(key).or_insert(last_before);
        let placed = Placed {
            created_entry: before.as_ref().map_or(index, |before| before.created_entry),
            content_entry: before.filter(|_| !has_content).map_or(index, |before| before.content_entry),
            standing,
            last_entry: index,
            entries: nth,
        };
        self.ground.items.insert(key, placed);
        Ok((key, nth))
    }

    fn count_open(&mut self, standing: &Standing, was_open: bool) {
        let item = &standing.item;
        let creator = item.created_by.actor_id.to_string();
        for workflow in [Some(item.workflow.name.to_string()), None] {
            let Some(count) = self.ground.open_items.get_mut(&(creator.clone(), workflow)) else { continue };
            match (was_open, standing.is_open) {
                (false, true) => *count += 1,
                (true, false) => *count = count.saturating_sub(1),
                (true, true) | (false, false) => {}
            }
        }
    }
}

/// Keys recorded before this time are no longer remembered.
pub(super) fn oldest_key(now: Time) -> i64 {
    let kept = i64::try_from(IDEMPOTENCY_KEY_KEPT.as_micros()).certain("keys are kept for days");
    now.unix_micros().saturating_sub(kept)
}
