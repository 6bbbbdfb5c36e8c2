//! The ledger and the items, as stored: one set of operations that every engine implements natively.
//!
//! A write names its subject and brings a closure that decides. The engine calls the closure at the one point where
//! writes are ordered, with the item as it is then and the index and time the entry will have. It records what the
//! closure returns in a single transaction: entry, documents, item, idempotency key and tree. Nothing is acknowledged
//! before that transaction is on disk.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use pilot_core::actor::ActorId;
use pilot_core::decide::OpenItems;
use pilot_core::document::{Document, DocumentKind};
use pilot_core::entry::Entry;
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::SORTED_TITLE_CHARS_MAX;
use pilot_core::refusal::Refusal;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash};
use pilot_evidence::replay::Documents;
use tokio::sync::watch;

pub mod archive;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod engines;
pub mod look;
pub mod postgres;
mod row;
mod sought;
pub mod sqlite;
mod tables;
pub mod transfer;
mod tree;

#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The store refuses to start: the operator has to choose how to continue.
    #[error("{0}")]
    Refused(String),
    /// Nothing was recorded. The store may recover without help.
    #[error("the store cannot do this now: {0}")]
    Unavailable(String),
    /// The disk is full. Nothing was recorded; writes work again once there is space.
    #[error("the store cannot do this now: {0}")]
    Full(String),
    /// The disk itself failed, so nothing it reports afterwards can be trusted. What was being written may or may not
    /// be stored; only reopening the store tells.
    #[error("the disk failed: {0}")]
    DiskFailed(String),
    /// The disk does not respond. What was being written may still be recorded.
    #[error("the disk is not responding: {0}")]
    Hangs(String),
    /// The stored data contradicts itself. Continuing would make it worse.
    #[error("the store is damaged: {0}")]
    Damaged(String),
}

pub type Result<T> = std::result::Result<T, StoreError>;
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// What a write is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The service itself.
    Ledger,
    /// An item that does not exist yet. If its workflow or its creator has a limit on open items, `count_open` says
    /// which are counted.
    NewItem {
        count_open: Option<CountOpen>,
    },
    Item(ItemId),
    /// An existing item whose entries are counted too.
    CountedItem(ItemId),
}

/// Whose open items are counted before another is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountOpen {
    pub creator: ActorId,
    pub workflow: String,
    /// The most that the creator may have, if there is a limit. Counting stops there.
    pub max: Option<u32>,
}

/// What the deciding closure gets to see.
pub struct Situation<'a> {
    pub item: Option<&'a Item>,
    /// The index of the item's newest entry, which may have been decided a moment ago in the same commit.
    pub last_entry: Option<u64>,
    /// The number of entries about the item, if the write asked for a count; counting stops at the limit.
    pub entries: Option<usize>,
    pub open_items: OpenItems,
    /// The facts that the write reads, in the order of its `reads`.
    pub facts: &'a [Option<Vec<u8>>],
    /// Never earlier than the previous entry.
    pub now: Time,
    pub index: u64,
}

/// Something the service wants to find again: a named row, changed together with an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Related facts share a prefix, such as `credential/used/`.
    pub name: String,
    /// `None` deletes the fact.
    pub value: Option<Vec<u8>>,
}

/// Why a closure wants nothing recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum NoRecord {
    Refused(Refusal),
    /// There is nothing to record: what was asked for has already happened.
    Nothing,
    /// No entry, but these facts change.
    Note(Vec<Fact>),
}

impl From<Refusal> for NoRecord {
    fn from(refusal: Refusal) -> Self {
        NoRecord::Refused(refusal)
    }
}

/// What a closure wants recorded, or why it wants nothing recorded.
pub type Decided = std::result::Result<Record, NoRecord>;

/// What the deciding closure wants recorded.
pub struct Record {
    pub entry: Entry,
    pub documents: Vec<Document>,
    /// The item after the change; `None` for entries about the service itself.
    pub standing: Option<Standing>,
    /// A copy of the item, if the caller is shown all of it.
    pub shown: Option<Box<Item>>,
    /// What must be found again after a restart, or by another node.
    pub facts: Vec<Fact>,
    /// From this entry on another configuration is in force: nodes that have joined an earlier one write nothing more.
    pub adopts: bool,
}

impl Record {
    /// An entry about the service itself, and nothing else.
    pub fn of(entry: Entry) -> Record {
        Record { entry, documents: Vec::new(), standing: None, shown: None, facts: Vec::new(), adopts: false }
    }
}

/// From which end of a range something is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeEnd {
    Lowest,
    Highest,
}

impl RangeEnd {
    /// As SQL orders rows.
    pub(crate) const fn order(self) -> &'static str {
        match self {
            RangeEnd::Lowest => "ASC",
            RangeEnd::Highest => "DESC",
        }
    }
}

/// An item together with what the store needs to find it again.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub item: Item,
    pub is_open: bool,
    pub waits_for: Vec<Role>,
    pub due_at: Option<Time>,
}

/// May be called more than once: an engine that is not told whether its commit succeeded decides again.
pub type Decide = Box<dyn Fn(&Situation<'_>) -> Decided + Send>;

/// An idempotency key in its scope (actor, method and path), and the digest of the body that came with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub scope: [u8; 32],
    pub body: [u8; 32],
}

pub struct Write {
    pub subject: Subject,
    pub key: Option<Key>,
    /// Names of the facts that the closure needs.
    pub reads: Vec<String>,
    pub decide: Decide,
}

impl Write {
    pub fn new(
        subject: Subject,
        key: Option<Key>,
        decide: impl Fn(&Situation<'_>) -> Decided + Send + 'static,
    ) -> Write {
        Write { subject, key, reads: Vec::new(), decide: Box::new(decide) }
    }

    /// Gives the closure these facts as they are when it decides.
    #[must_use]
    pub fn reading(self, names: impl IntoIterator<Item = String>) -> Write {
        Write { reads: names.into_iter().collect(), ..self }
    }
}

#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// On disk and in the tree.
    Recorded {
        entry: Entry,
        /// As the closure gave it.
        shown: Option<Box<Item>>,
    },
    /// The same key and body were recorded before; nothing was recorded now.
    Repeated(Remembered),
    /// The same key came with another body.
    KeyReused,
    NoSuchItem,
    Refused(Refusal),
    /// There was nothing to record.
    Nothing,
    /// No entry was recorded, but facts were changed.
    Noted,
}

/// What is stored with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remembered {
    /// The index of the entry that the first request recorded. Together with the request, that is enough to build the
    /// answer.
    Entry(u64),
    /// The answer itself, as older programs stored it: a line with status, version and location, then the body as JSON.
    Answer(Vec<u8>),
}

/// Which items. Lists go by the order in which the ledger created the items, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub state: Option<String>,
    pub workflow: Option<String>,
    pub created_by: Option<String>,
    /// Only open items that are waiting for this role.
    pub waits_for: Option<Role>,
    /// Only items whose payload has this `risk`.
    pub risk: Option<String>,
    /// Ignoring case: a part of the title, of the creator's name or of a text in the payload, the beginning of an id, or
    /// a whole id.
    pub text: Option<String>,
    /// Only items created before this entry.
    pub before: Option<u64>,
}

/// The items found, and how far the search got.
#[derive(Debug, Default, PartialEq)]
pub struct ItemPage {
    pub items: Vec<Listed>,
    /// Where to continue, as [`Filter::before`]; `None` if everything was searched.
    pub next: Option<u64>,
}

/// An item with its place in the order of lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub item: Item,
    /// The index of the entry that created it.
    pub created_entry: u64,
}

/// An item with what else one answer about it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownItem {
    pub item: Arc<Item>,
    /// The document that its content digest is of, unless it was erased.
    pub content: Option<Vec<u8>>,
    /// The value of the fact that was asked for.
    pub fact: Option<Vec<u8>>,
}

/// What a list can be sorted by, other than creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Most recently changed first.
    Updated,
    /// Soonest deadline first; those without one come last.
    Due,
    /// By the beginning of the title, ignoring case.
    Title,
}

/// Where an item stands in a sorted list. What has the same key goes by creation, newest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub key: SortKey,
    pub created_entry: std::cmp::Reverse<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    Number(i64),
    Text(String),
}

impl SortKey {
    pub(crate) fn new(sort: Sort, last_entry: u64, due_at: Option<i64>, title: &str) -> SortKey {
        match sort {
            Sort::Updated => SortKey::Number(i64::try_from(last_entry).map_or(i64::MIN, |last_entry| -last_entry)),
            Sort::Due => SortKey::Number(due_at.unwrap_or(i64::MAX)),
            Sort::Title => SortKey::Text(title.to_lowercase().chars().take(SORTED_TITLE_CHARS_MAX).collect()),
        }
    }
}

/// The items that one visit found, without the items themselves, in no particular order.
#[derive(Debug, Default, PartialEq)]
pub struct RankPage {
    pub ranks: Vec<(Rank, ItemId)>,
    /// Where to continue, as [`Filter::before`]; `None` if everything was searched.
    pub next: Option<u64>,
}

/// The store's condition, for monitoring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pulse {
    /// Whether a second server has what is acknowledged, as far as the database says. `None` if the store is a file.
    pub is_replicated: Option<bool>,
    /// How long writes have been waiting for the disk, once that exceeds the deadline.
    pub hanging: Option<Duration>,
    /// How many times the deadline was exceeded.
    pub hangs: u64,
}

/// What only one of several nodes does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// Asks the witnesses for cosignatures.
    Witnesses,
    /// Moves items whose deadline has passed.
    Timers,
    /// Records refused attempts.
    Diary,
    /// Tells others about entries.
    Webhooks,
}

impl Duty {
    pub const ALL: [Duty; 4] = [Duty::Witnesses, Duty::Timers, Duty::Diary, Duty::Webhooks];

    pub fn as_str(self) -> &'static str {
        match self {
            Duty::Witnesses => "witnesses",
            Duty::Timers => "timers",
            Duty::Diary => "diary",
            Duty::Webhooks => "webhooks",
        }
    }
}

/// A node that shares the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// A new one at every start.
    pub id: String,
    pub name: String,
    pub build: String,
    /// Whether it is the one that was asked.
    pub is_this: bool,
    /// Whether it was heard of within the last second. One that was not answers nobody.
    pub is_alive: bool,
    /// How many entries it has applied, and how many it has not.
    pub applied: u64,
    pub lag: u64,
    pub seen_at: Option<Time>,
    pub started_at: Option<Time>,
    pub duties: Vec<String>,
}

/// An entry with those of its documents that have not been erased.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    pub index: u64,
    pub bytes: Vec<u8>,
    pub documents: Vec<(DocumentKind, Vec<u8>)>,
}

impl StoredEntry {
    /// In the form a replay takes.
    pub fn documents(&self) -> Documents<'_> {
        self.documents.iter().map(|(kind, bytes)| (*kind, bytes.as_slice())).collect()
    }
}

/// A definition as it was when items were created under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDefinition {
    pub digest: String,
    pub text: String,
}

/// The operations of a store. Reads see everything that was acknowledged before they began.
pub trait Store: Send + Sync {
    /// Decides and records, in order with every other write. The write is queued by this call, not when the future is
    /// first polled.
    fn settle(&self, write: Write) -> Pending<'_, Outcome>;

    fn item(&self, id: ItemId) -> Pending<'_, Option<Arc<Item>>>;

    /// An item with its content and one fact, in one visit.
    fn shown_item(&self, id: ItemId, fact: String) -> Pending<'_, Option<ShownItem>>;

    /// Entries about an item before an index, the newest first, without documents: at most `limit` of them.
    fn newest_entries(&self, id: ItemId, before: Option<u64>, limit: usize) -> Pending<'_, Vec<StoredEntry>>;

    /// The newest items that match, up to `limit`. However rare they are, only a limited number of rows is searched;
    /// when that limit is reached, the page has fewer items and says where to continue.
    fn items_page(&self, filter: Filter, limit: usize) -> Pending<'_, ItemPage>;

    /// Every item that matches, with its rank in a list sorted like this, among a limited number of rows.
    fn ranks_page(&self, filter: Filter, sort: Sort) -> Pending<'_, RankPage>;

    /// These items, in no particular order.
    fn items_of(&self, ids: Vec<ItemId>) -> Pending<'_, Vec<Listed>>;

    /// How many items match, if that can be known by looking at `COUNTED_ITEMS_MAX` rows. Neither text nor risk can be
    /// counted.
    fn items_count(&self, filter: Filter) -> Pending<'_, Option<u64>>;

    /// Like `items_page`, but continues until there are `limit` items or no more to find.
    fn items(&self, mut filter: Filter, limit: usize) -> Pending<'_, Vec<Listed>> {
        Box::pin(async move {
            let mut found = Vec::new();
            loop {
                let page = self.items_page(filter.clone(), limit - found.len()).await?;
                found.extend(page.items);
                match page.next {
                    Some(next) if found.len() < limit => filter.before = Some(next),
                    _ => return Ok(found),
                }
            }
        })
    }

    /// Every entry about an item, oldest first, with its documents.
    fn history(&self, id: ItemId) -> Pending<'_, Vec<StoredEntry>>;

    /// Entries about an item after an index, at most `limit` of them.
    fn history_page(&self, id: ItemId, after: Option<u64>, limit: usize) -> Pending<'_, Vec<StoredEntry>>;

    /// Entries from an index on, without documents.
    fn entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>>;

    /// Entries from an index on, with their documents: up to `limit`, but no further entry once they add up to
    /// `STORE_PAGE_BYTES_MAX`.
    fn whole_entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>>;

    /// These entries in this order, with their documents: at least the first, and within the same byte limit.
    fn whole_entries_at(&self, indices: Vec<u64>) -> Pending<'_, Vec<StoredEntry>>;

    /// The indices of the entries about an item, oldest first; empty if there is no such item.
    fn places(&self, id: ItemId) -> Pending<'_, Vec<u64>>;

    /// The indices of all entries below `first` about the items whose next entry is within `entries`.
    fn earlier_places(&self, first: u64, entries: Range<u64>) -> Pending<'_, Vec<u64>>;

    /// The hashes of entries, recomputed from what is stored: exactly `count` of them, without gaps.
    fn leaves(&self, from: u64, count: u64) -> Pending<'_, Vec<Hash>>;

    /// Items whose deadline has passed, earliest first.
    fn due(&self, now: Time, limit: usize) -> Pending<'_, Vec<ItemId>>;

    /// Items whose deadline is after `after` and not after `until`, earliest first.
    fn due_within(&self, after: Time, until: Time, limit: usize) -> Pending<'_, Vec<ItemId>>;

    /// Hashes of consecutive complete subtrees of 256^level leaves, for the service's own duties, which never queue
    /// behind a caller's query.
    fn row(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>>;

    /// The same, for a caller.
    fn tile(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>>;

    /// For each entry, the path to the root of the tree of `size` entries. What the paths share is read and hashed
    /// once.
    fn inclusions(&self, indices: Vec<u64>, size: u64) -> Pending<'_, Vec<Vec<Hash>>>;

    /// Stores definitions permanently; those already stored are left as they are.
    fn keep_definitions(&self, definitions: Vec<StoredDefinition>) -> Pending<'_, Vec<StoredDefinition>>;

    /// The value stored under this name, if any.
    fn fact(&self, name: &'static str) -> Pending<'_, Option<Vec<u8>>>;

    /// Every fact whose name begins with this prefix, ordered by name.
    fn facts(&self, beginning: &'static str) -> Pending<'_, Vec<(String, Vec<u8>)>>;

    /// Of the facts whose names are in this range, at most `limit`, taken from one end and in that order.
    fn facts_in(&self, names: Range<String>, from: RangeEnd, limit: usize) -> Pending<'_, Vec<(String, Vec<u8>)>>;

    /// The right edge of the tree as of the last commit, updated with every commit.
    fn head(&self) -> watch::Receiver<Arc<Edge>>;

    /// Whether the store accepts writes now.
    fn check(&self) -> Result<()>;

    fn pulse(&self) -> Pulse;

    /// Whether other nodes may share it.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether no other node is alive.
    fn is_alone(&self) -> bool {
        true
    }

    /// The entries from `from` to before `until` that are not about an item, without documents. For the service's own
    /// duties.
    fn service_entries(&self, _from: u64, _until: u64) -> Pending<'_, Vec<StoredEntry>> {
        Box::pin(async { Err(StoreError::Unavailable("this store has no other writers to follow".into())) })
    }

    /// Whether this node knows the ledger as it is, or as it was less than a second ago. If not, it must answer nobody:
    /// a credential may have been revoked in the meantime.
    fn check_current(&self) -> Result<()> {
        Ok(())
    }

    /// This node's configuration is the one that was adopted with this entry. Once another is adopted, it writes nothing
    /// more and answers nobody.
    fn join(&self, _adopted: u64) {}

    /// This node has nothing to do for a duty that another one may have work for. If it has the duty, it is not renewed.
    fn decline(&self, _duty: Duty) {}

    /// Whether this node is the one that does it now.
    fn holds(&self, _duty: Duty) -> bool {
        true
    }

    /// Every node that shares the ledger. None, if the store is this process's own.
    fn nodes(&self) -> Vec<NodeState> {
        Vec::new()
    }

    /// The service on this node has applied so many entries: revocations among them are in force here.
    fn has_applied(&self, _entries: u64) {}

    /// Waits until every live node has applied so many entries, or until those that have not answer nobody any more.
    fn applied_everywhere(&self, _entries: u64) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Another file on the same disk failed: from now on the store neither writes, copies nor deletes anything.
    fn distrust(&self, cause: &str);

    /// Finishes the queued writes, leaves everything tidy for the next start, and closes. It waits for the disk. An
    /// error means that the disk failed, now or earlier; then everything is left as it is, and the next start reads
    /// what is there.
    fn stop(&self) -> Result<()>;
}
