//! The one thread that writes. It takes whatever has queued up, decides each write in order, and commits them together:
//! one sync serves many writes, and a write waits for at most the previous commit before its own.

use std::sync::Arc;

use pilot_core::certain::Certain as _;
use pilot_core::decide::OpenItems;
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::{COMMENTED_ENTRIES_MAX, IDEMPOTENCY_KEY_KEPT};
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash};
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::watch;

use super::cache::Cache;
use super::desk::{Desk, Job, Waiting};
use super::failure;
use super::head::{HEAD_FACT, HeadBytes, HeadFile, head_bytes};
use super::health::Health;
use super::log::WriteAheadLog;
use super::opening::Opened;
use super::read::{self, Placed};
use super::statement::{Statements, TextBytes};
use crate::archive::Now;
use crate::row::{ItemKey, kind_number, remember, remembered, role_bits, to_json, to_key};
use crate::{
    Fact, Key, NoRecord, Outcome, Record, Result, Situation, Standing, StoreError, StoredDefinition, Subject, Write,
};

/// The most writes one commit takes.
const GROUP_MAX: usize = 512;
/// After this many entries, old idempotency keys are removed.
const KEYS_TENDED_EVERY: u64 = 256;
/// How many are removed at once: more than are added in between, and few enough that nobody waits long.
const KEYS_FORGOTTEN_MAX: u32 = 512;
/// Entry bundles use two bytes for the length of each entry.
const ENTRY_BYTES_MAX: usize = u16::MAX as usize;

pub(super) struct Writer<'c> {
    connection: &'c Connection,
    statements: Statements<'c>,
    /// Buffers in which an entry and an item are serialised before they are stored.
    bytes: Vec<u8>,
    json: Vec<u8>,
    edge: Arc<Edge>,
    last_at: Time,
    now: Now,
    /// Items as the current group left them.
    cache: Cache<Placed>,
    health: Arc<Health>,
    told: Told,
    log: WriteAheadLog,
    /// How large the ledger was when old keys were last removed.
    keys_tended_at: u64,
}

/// Who is told about a commit.
pub(super) struct Told {
    pub(super) head: watch::Sender<Arc<Edge>>,
    pub(super) file: HeadFile,
    pub(super) acknowledged: Acknowledged,
}

/// What a group has changed so far; the commit makes all of it permanent, or none.
struct Group {
    edge: Edge,
    last_at: Time,
    /// Facts were changed, perhaps without an entry.
    is_noted: bool,
}

/// A settled write. It is sent back whole, to be freed on the side that allocated it: memory that one thread allocates
/// and another frees costs several times as much.
struct Reply {
    outcome: Outcome,
    write: Write,
}

/// A group that is on disk, and those waiting for it: one for each reply, or nobody any more.
struct Settled {
    waiting: Vec<Waiting>,
    replies: Vec<Reply>,
}

/// Where whole groups of acknowledgements go. Waking a task from a thread outside its runtime takes a lock, and often a
/// system call; waking it from a task of the same runtime costs next to nothing.
pub(super) struct Acknowledged(Option<tokio::sync::mpsc::UnboundedSender<Settled>>);

impl Acknowledged {
    /// Through the current runtime, if there is one.
    pub(super) fn through_this_runtime() -> Acknowledged {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Acknowledged(None) };
        let (sender, mut groups) = tokio::sync::mpsc::unbounded_channel();
        runtime.spawn(async move {
            while let Some(settled) = groups.recv().await {
                tell(settled);
            }
        });
        Acknowledged(Some(sender))
    }

    fn send(&self, settled: Settled) {
        match &self.0 {
            None => tell(settled),
            // The runtime is gone, and so are most of those who were waiting.
            Some(sender) => drop(sender.send(settled).map_err(|unsent| tell(unsent.0))),
        }
    }
}

fn tell(Settled { waiting, replies }: Settled) {
    for (to, Reply { outcome, write }) in waiting.into_iter().zip(replies) {
        // A caller who went away can find the outcome by its idempotency key.
        let _ = to.send(Ok(outcome));
        drop(write);
    }
}

impl<'c> Writer<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        opened: Opened,
        now: Now,
        health: Arc<Health>,
        told: Told,
        log: WriteAheadLog,
    ) -> Writer<'c> {
        Writer {
            connection,
            statements: Statements::default(),
            bytes: Vec::new(),
            json: Vec::new(),
            keys_tended_at: opened.edge.size() / KEYS_TENDED_EVERY * KEYS_TENDED_EVERY,
            edge: Arc::new(opened.edge),
            last_at: opened.last_at,
            now,
            cache: Cache::default(),
            health,
            told,
            log,
        }
    }

    /// Runs until nobody can queue anything more. Returns whether everything is in the database then.
    pub(super) fn run(mut self, desk: &Desk) -> bool {
        while let Some(jobs) = desk.next(GROUP_MAX) {
            self.take(jobs, desk);
            self.forget_old_keys();
            self.log.tend(self.connection);
            desk.done();
        }
        self.log.finish(self.connection)
    }

    fn take(&mut self, jobs: Vec<Job>, desk: &Desk) {
        let (mut writes, mut waiting) = (Vec::with_capacity(jobs.len()), Vec::with_capacity(jobs.len()));
        for job in jobs {
            match job {
                Job::Settle { write, reply } => {
                    writes.push(write);
                    waiting.push(reply);
                }
                Job::KeepDefinitions { definitions, reply } => {
                    let kept = self.health.check_disk().and_then(|()| self.keep_definitions(&definitions));
                    if let Err(error) = &kept {
                        self.health.stop_if_lasting(error);
                    }
                    let _ = reply.send(kept);
                }
            }
        }
        if !writes.is_empty() {
            desk.hold(waiting);
            self.settle_group(writes, desk);
        }
    }

    fn settle_group(&mut self, writes: Vec<Write>, desk: &Desk) {
        let mut group = Group { edge: Edge::clone(&self.edge), last_at: self.last_at, is_noted: false };
        let mut replies: Vec<Reply> = Vec::with_capacity(writes.len());
        let mut settled = self.begin();
        if settled.is_ok() {
            for write in writes {
                match self.settle(&write, &mut group) {
                    Ok(outcome) => replies.push(Reply { outcome, write }),
                    Err(error) => {
                        settled = Err(error);
                        break;
                    }
                }
            }
        }
        let head = (group.edge.size() != self.edge.size()).then(|| head_bytes(&group.edge));
        match settled.and_then(|()| self.commit(&group, head)) {
            Ok(()) => self.acknowledge(group, head, Settled { waiting: desk.release(), replies }),
            Err(error) => self.give_up(&error, desk.release()),
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.health.check_disk()?;
        self.statements.begin.execute(self.connection, []).map(drop)
    }

    /// `head` is that of the tree if entries were added.
    fn commit(&mut self, group: &Group, head: Option<HeadBytes>) -> Result<()> {
        if head.is_none() && !group.is_noted {
            // Every write was refused: there is nothing to write, and no reason to wait for the disk.
            return self.execute("ROLLBACK");
        }
        if let Some(head) = head {
            // The root is stored with the entries: the newest have no full tile yet that would reveal a flipped bit,
            // and a wrong root must never be signed.
            self.statements.fact.run(self.connection, (HEAD_FACT, head))?;
        }
        self.statements.commit.execute(self.connection, []).map(drop)
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(drop)
            .map_err(|error| failure::failed(&error))
    }

    /// Durable now, so the tree and the callers may be told.
    fn acknowledge(&mut self, group: Group, head: Option<HeadBytes>, settled: Settled) {
        self.last_at = group.last_at;
        if let Some(head) = head {
            self.edge = Arc::new(group.edge);
            // Before anyone is told, so that it covers everything acknowledged.
            if let Err(error) = self.told.file.write(head) {
                self.health.stop_if_lasting(&error);
            }
            self.told.head.send_replace(Arc::clone(&self.edge));
        }
        self.told.acknowledged.send(settled);
    }

    fn give_up(&mut self, error: &StoreError, waiting: Vec<Waiting>) {
        tracing::error!(cause = %error, "a group of writes could not be recorded; none of them was acknowledged");
        self.cache.clear();
        let is_rolled_back = self.connection.is_autocommit() || self.execute("ROLLBACK").is_ok();
        self.health.stop_if_lasting(error);
        if !is_rolled_back {
            self.health.fail(error);
        }
        for reply in waiting {
            let _ = reply.send(Err(error.clone()));
        }
    }

    fn settle(&mut self, write: &Write, group: &mut Group) -> Result<Outcome> {
        let Write { subject, key, reads, decide } = write;
        let now = (self.now)().max(group.last_at);
        if let Some(outcome) = key.as_ref().map_or(Ok(None), |key| self.recall(key, now))? {
            return Ok(outcome);
        }
        let (mut before, open_items) = match subject {
            Subject::Ledger | Subject::NewItem { count_open: None } => (None, OpenItems::default()),
            Subject::NewItem { count_open: Some(count) } => (None, read::open_items(self.connection, count)?),
            Subject::Item(id) | Subject::CountedItem(id) => match self.load(id)? {
                Some(before) => (Some(before), OpenItems::default()),
                None => return Ok(Outcome::NoSuchItem),
            },
        };
        let index = group.edge.size();
        if let (Subject::CountedItem(_), Some(before)) = (subject, &mut before)
            && before.entries.is_none()
        {
            before.entries = Some(read::entries_of(self.connection, before.last_entry, COMMENTED_ENTRIES_MAX)?);
        }
        let (item, last_entry) = before.as_ref().map(|before| (&before.item, before.last_entry)).unzip();
        let facts = reads.iter().map(|name| read::fact(self.connection, name)).collect::<Result<Vec<_>>>()?;
        let situation = Situation {
            facts: &facts,
            entries: before.as_ref().and_then(|before| before.entries),
            item,
            last_entry,
            open_items,
            now,
            index,
        };
        let record = match decide(&situation) {
            Ok(record) => record,
            Err(no_record) => {
                if let Some(before) = before {
                    self.cache.put(before.key, before);
                }
                return match no_record {
                    NoRecord::Refused(refusal) => Ok(Outcome::Refused(refusal)),
                    NoRecord::Nothing => Ok(Outcome::Nothing),
                    NoRecord::Note(facts) => {
                        group.is_noted = true;
                        self.write_facts(facts).map(|()| Outcome::Noted)
                    }
                };
            }
        };
        self.record(record, before, *key, now, group)
    }

    fn load(&mut self, id: &ItemId) -> Result<Option<Box<Placed>>> {
        match self.cache.take(to_key(id)) {
            Some(placed) => Ok(Some(placed)),
            None => Ok(read::placed(self.connection, id)?.map(Box::new)),
        }
    }

    fn recall(&self, key: &Key, now: Time) -> Result<Option<Outcome>> {
        let sql = "SELECT body, answer FROM idempotency WHERE scope = ?1 AND at >= ?2";
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| failure::failed(&error))?;
        let found =
            statement.query_row((key.scope, oldest_key(now)), |row| Ok((row.get::<_, [u8; 32]>(0)?, row.get(1)?)));
        let found: Option<([u8; 32], Vec<u8>)> = found.optional().map_err(|error| failure::failed(&error))?;
        Ok(match found {
            Some((body, kept)) if body == key.body => Some(Outcome::Repeated(remembered(kept))),
            Some(_) => Some(Outcome::KeyReused),
            None => None,
        })
    }

    fn record(
        &mut self,
        record: Record,
        before: Option<Box<Placed>>,
        key: Option<Key>,
        now: Time,
        group: &mut Group,
    ) -> Result<Outcome> {
        let index = group.edge.size();
        // This store is written by one process, which adopts its configuration at every start.
        let Record { entry, documents, standing, shown, facts, adopts: _ } = record;
        // Assertions in pairs: the rules made this entry for this index, and it is written at no other.
        if entry.index != index || entry.at < group.last_at {
            return Err(StoreError::Damaged(format!("entry {} at {} is out of order", entry.index, entry.at)));
        }
        entry
            .write_to(&mut self.bytes)
            .map_err(|error| StoreError::Damaged(format!("an entry cannot be written: {error}")))?;
        if self.bytes.len() > ENTRY_BYTES_MAX {
            return Err(StoreError::Damaged(format!("entry {index} is longer than the log's format allows")));
        }
        let leaf = Hash::of_leaf(&self.bytes);
        let prev = before.as_ref().map(|before| number(before.last_entry));
        self.statements.entry.run(self.connection, (number(index), prev, &self.bytes))?;
        for document in &documents {
            let values = (number(index), kind_number(document.kind), &document.bytes);
            self.statements.document.run(self.connection, values)?;
        }
        if let Some(standing) = standing {
            let has_content = documents.iter().any(|document| document.digest == standing.item.content_digest);
            let content_entry = match &before {
                Some(before) if !has_content => before.content_entry,
                _ => index,
            };
            if before.as_ref().is_some_and(|before| before.item.id != standing.item.id) {
                return Err(StoreError::Damaged(format!("a write about another item gives {}", standing.item.id)));
            }
            let id = before.as_ref().map_or_else(|| to_key(&standing.item.id), |before| before.key);
            self.write_item(id, &standing, before.as_deref(), index, content_entry)?;
            let is_open = standing.is_open;
            let entries = before.as_ref().and_then(|before| before.entries).map(|entries| entries + 1);
            let after = Placed { key: id, item: standing.item, last_entry: index, content_entry, is_open, entries };
            let placed = match before {
                // Reuses the allocation: allocating and freeing in turn is cheap, in whole groups it is expensive.
                Some(mut placed) => {
                    *placed = after;
                    placed
                }
                None => Box::new(after),
            };
            self.cache.put(id, placed);
        }
        if let Some(key) = key {
            self.statements.key.run(self.connection, (key.scope, key.body, remember(index), now.unix_micros()))?;
        }
        self.write_facts(facts)?;
        let mut full = Vec::new();
        group.edge.push(leaf, &mut full);
        for tile in full {
            self.statements.tile.run(self.connection, (tile.level, number(tile.index), tile.to_bytes()))?;
        }
        group.last_at = entry.at;
        Ok(Outcome::Recorded { entry, shown })
    }

    fn write_facts(&mut self, facts: Vec<Fact>) -> Result<()> {
        for Fact { name, value } in facts {
            match value {
                Some(value) => self.statements.fact.run(self.connection, (name, value))?,
                // It may be gone already: deleting twice is not a contradiction.
                None => self.statements.forgotten.execute(self.connection, [name]).map(drop)?,
            }
        }
        Ok(())
    }

    fn write_item(
        &mut self,
        id: ItemKey,
        standing: &Standing,
        before: Option<&Placed>,
        index: u64,
        content_entry: u64,
    ) -> Result<()> {
        let item: &Item = &standing.item;
        to_json(item, &mut self.json)?;
        let data = TextBytes(&self.json);
        let version = number(item.version);
        let (waits_for, due_at) = (role_bits(&standing.waits_for), standing.due_at.map(Time::unix_micros));
        let Some(before) = before else {
            return self.statements.new_item.run(
                self.connection,
                (
                    id,
                    version,
                    &*item.state,
                    &*item.workflow.name,
                    item.created_by.actor_id.as_str(),
                    &item.title,
                    standing.is_open,
                    waits_for,
                    due_at,
                    number(index),
                    number(content_entry),
                    data,
                ),
            );
        };
        let (old_version, old_entry) = (number(before.item.version), number(before.last_entry));
        if before.is_open == standing.is_open
            && before.content_entry == content_entry
            && before.item.title == item.title
        {
            let values = (id, version, &*item.state, waits_for, due_at, number(index), data, old_version, old_entry);
            return self.statements.moved_item.swap(self.connection, values);
        }
        self.statements.changed_item.swap(
            self.connection,
            (
                id,
                version,
                &*item.state,
                &item.title,
                standing.is_open,
                waits_for,
                due_at,
                number(index),
                number(content_entry),
                data,
                old_version,
                old_entry,
            ),
        )
    }

    /// In a transaction of its own, between groups: no write fails with it, and each waits for one round at most.
    fn forget_old_keys(&mut self) {
        let size = self.edge.size();
        if size < self.keys_tended_at + KEYS_TENDED_EVERY || self.health.check_disk().is_err() {
            return;
        }
        let sql = "DELETE FROM idempotency WHERE scope IN \
                   (SELECT scope FROM idempotency WHERE at < ?1 ORDER BY at LIMIT ?2)";
        let values = (oldest_key(self.last_at), KEYS_FORGOTTEN_MAX);
        let forgotten = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        match forgotten {
            // There may be more: the next group is followed by another round.
            Ok(forgotten) if forgotten >= KEYS_FORGOTTEN_MAX as usize => {}
            Ok(_) => self.keys_tended_at = size / KEYS_TENDED_EVERY * KEYS_TENDED_EVERY,
            Err(error) => {
                self.keys_tended_at = size;
                let error = failure::failed(&error);
                tracing::error!(cause = %error, "old idempotency keys could not be removed; it will be tried again");
                self.health.stop_if_lasting(&error);
            }
        }
    }

    fn keep_definitions(&self, definitions: &[StoredDefinition]) -> Result<Vec<StoredDefinition>> {
        let failed = |error: rusqlite::Error| failure::failed(&error);
        for definition in definitions {
            let sql = "INSERT INTO definition (digest, text) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            self.connection.execute(sql, [&definition.digest, &definition.text]).map_err(failed)?;
        }
        let mut statement =
            self.connection.prepare("SELECT digest, text FROM definition ORDER BY digest").map_err(failed)?;
        let read = |row: &rusqlite::Row<'_>| Ok(StoredDefinition { digest: row.get(0)?, text: row.get(1)? });
        let rows = statement.query_map([], read).map_err(failed)?;
        rows.collect::<rusqlite::Result<_>>().map_err(failed)
    }
}

/// Keys recorded before this time are no longer remembered.
fn oldest_key(now: Time) -> i64 {
    let kept = i64::try_from(IDEMPOTENCY_KEY_KEPT.as_micros()).certain("keys are kept for days");
    now.unix_micros().saturating_sub(kept)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).certain("a ledger has fewer than 2^63 entries")
}
