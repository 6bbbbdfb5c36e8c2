//! Where the ledger and the items are kept: one set of verbs, native to each engine.
//!
//! A write names its subject and brings a closure that decides. The engine calls it at the one place where writes are
//! in order, with the item as it is then and the index and time the entry will have, and records what it returns in
//! the same transaction: entry, documents, item, idempotency key and tree. Nothing is acknowledged before that
//! transaction is on disk.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use pilot_core::actor::ActorId;
use pilot_core::document::{Document, DocumentKind};
use pilot_core::entry::Entry;
use pilot_core::item::{Item, ItemId};
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
pub mod sqlite;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The start is refused: the operator has to choose.
    #[error("{0}")]
    Refused(String),
    /// Nothing was recorded; it may work again by itself, for example when the disk has room.
    #[error("the store cannot do this now: {0}")]
    Unavailable(String),
    /// The disk has no room. Nothing was recorded; it works again when there is room.
    #[error("the store cannot do this now: {0}")]
    Full(String),
    /// The disk itself failed. After that its word cannot be trusted: what was being written may or may not be there,
    /// and only opening the store again tells.
    #[error("the disk failed: {0}")]
    DiskFailed(String),
    /// The disk does not respond. What was being written may still be recorded.
    #[error("the disk is not responding: {0}")]
    Hangs(String),
    /// What is stored contradicts itself. Going on would make it worse.
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
    /// An item that does not exist yet, and, when its workflow limits them, whose open items are to be counted.
    NewItem {
        count_open: Option<(ActorId, String)>,
    },
    Item(ItemId),
    /// The same, where it matters how much has happened to the item already.
    CountedItem(ItemId),
}

/// What the deciding closure is told.
pub struct Situation<'a> {
    pub item: Option<&'a Item>,
    /// The item's newest entry: it may have been decided a moment ago, in the same commit.
    pub last_entry: Option<u64>,
    /// How many entries there are about the item, when they were to be counted: up to the bound, and not beyond.
    pub entries: Option<usize>,
    pub open_items: usize,
    /// The facts that the write reads, in its order.
    pub facts: &'a [Option<Vec<u8>>],
    /// Never earlier than the entry before.
    pub now: Time,
    pub index: u64,
}

/// Something the service wants to find again: a row with a name, changed together with an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What belongs together has a beginning in common, such as `credential/used/`.
    pub name: String,
    /// None forgets it.
    pub value: Option<Vec<u8>>,
}

/// Why a closure wants nothing recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum NoRecord {
    Refused(Refusal),
    /// There is nothing to record: what was to happen has happened already.
    Nothing,
}

impl From<Refusal> for NoRecord {
    fn from(refusal: Refusal) -> Self {
        NoRecord::Refused(refusal)
    }
}

/// What a closure wants recorded, or why nothing.
pub type Decided = std::result::Result<Record, NoRecord>;

/// What the deciding closure wants recorded.
pub struct Record {
    pub entry: Entry,
    pub documents: Vec<Document>,
    /// The item as it is afterwards; absent for entries of the service itself.
    pub standing: Option<Standing>,
    /// The same item once more, where the caller is shown all of it.
    pub shown: Option<Box<Item>>,
    /// What is to be found again after a restart, or by another node.
    pub facts: Vec<Fact>,
}

impl Record {
    /// An entry about the service itself, with nothing beside it.
    pub fn of(entry: Entry) -> Record {
        Record { entry, documents: Vec::new(), standing: None, shown: None, facts: Vec::new() }
    }
}

/// An item with what the store needs to find it again.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub item: Item,
    pub is_open: bool,
    pub waits_for: Vec<Role>,
    pub due_at: Option<Time>,
}

pub type Decide = Box<dyn FnMut(&Situation<'_>) -> Decided + Send>;

/// An idempotency key in its scope (actor, method and path), and the digest of the body that came with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub scope: [u8; 32],
    pub body: [u8; 32],
}

pub struct Write {
    pub subject: Subject,
    pub key: Option<Key>,
    /// Names of facts that the closure needs.
    pub reads: Vec<String>,
    pub decide: Decide,
}

impl Write {
    pub fn new(
        subject: Subject,
        key: Option<Key>,
        decide: impl FnMut(&Situation<'_>) -> Decided + Send + 'static,
    ) -> Write {
        Write { subject, key, reads: Vec::new(), decide: Box::new(decide) }
    }

    /// The closure is told these facts as they are when it decides.
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
}

/// What is kept with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remembered {
    /// The entry that the first request recorded: with the request itself, all that an answer needs.
    Entry(u64),
    /// The answer itself, as programs before this one kept it: a line with status, version and place, then what was
    /// shown, as JSON.
    Answer(Vec<u8>),
}

/// Which items, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub state: Option<String>,
    pub workflow: Option<String>,
    pub created_by: Option<String>,
    /// Only open items that wait for this role.
    pub waits_for: Option<Role>,
    /// Part of a title, in any letter case, or an item's id.
    pub text: Option<String>,
    /// Only items older than this one.
    pub before: Option<ItemId>,
}

/// Items that were found, and how far the search came.
#[derive(Debug, Default, PartialEq)]
pub struct ItemPage {
    pub items: Vec<Item>,
    /// Where to continue, as [`Filter::before`]; none if everything was searched.
    pub next: Option<ItemId>,
}

/// How the store is doing, for those who watch it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pulse {
    /// How long the disk has kept the writing waiting, once that is longer than it may.
    pub hanging: Option<Duration>,
    /// How often that has happened.
    pub hangs: u64,
}

/// An entry with the documents that were not erased.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    pub index: u64,
    pub bytes: Vec<u8>,
    pub documents: Vec<(DocumentKind, Vec<u8>)>,
}

impl StoredEntry {
    /// What a replay asks for.
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

/// The verbs of a store. Reads see everything that was acknowledged before they began.
pub trait Store: Send + Sync {
    /// Decides and records, in order with every other write. It is handed in at once, not when it is first waited for.
    fn settle(&self, write: Write) -> Pending<'_, Outcome>;

    fn item(&self, id: ItemId) -> Pending<'_, Option<Arc<Item>>>;

    /// The newest items that match, as many as were asked for. However rare they are, only a limited number of rows is
    /// searched: then there are fewer items, and a place to continue.
    fn items_page(&self, filter: Filter, limit: usize) -> Pending<'_, ItemPage>;

    /// The same, looking on until there are as many as were asked for, or no more.
    fn items(&self, mut filter: Filter, limit: usize) -> Pending<'_, Vec<Item>> {
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

    /// The same after an index, at most this many.
    fn history_page(&self, id: ItemId, after: Option<u64>, limit: usize) -> Pending<'_, Vec<StoredEntry>>;

    /// Entries from an index on, without documents.
    fn entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>>;

    /// Entries from an index on, with their documents: as many as are asked for, or fewer when these have
    /// `STORE_PAGE_BYTES_MAX` together.
    fn whole_entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>>;

    /// These entries in this order, with their documents; at least the first, and fewer than all of them as above.
    fn whole_entries_at(&self, indices: Vec<u64>) -> Pending<'_, Vec<StoredEntry>>;

    /// Where the entries about an item are, oldest first; none when there is no such item.
    fn places(&self, id: ItemId) -> Pending<'_, Vec<u64>>;

    /// Where the entries below `first` are about items that have their next one among `entries`.
    fn earlier_places(&self, first: u64, entries: Range<u64>) -> Pending<'_, Vec<u64>>;

    /// The hashes of entries, recomputed from what is stored: exactly as many as requested, without a gap.
    fn leaves(&self, from: u64, count: u64) -> Pending<'_, Vec<Hash>>;

    /// Items whose deadline has passed, the earliest first.
    fn due(&self, now: Time, limit: usize) -> Pending<'_, Vec<ItemId>>;

    /// Hashes of complete subtrees of 256^level leaves, side by side: for the service's own duties, which wait for no
    /// caller's question.
    fn row(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>>;

    /// The same for a caller.
    fn tile(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>>;

    /// For each entry, the path to the root of the tree of `size` entries. What they share is read and hashed once.
    fn inclusions(&self, indices: Vec<u64>, size: u64) -> Pending<'_, Vec<Vec<Hash>>>;

    /// Keeps definitions for as long as the ledger; known ones are left alone.
    fn keep_definitions(&self, definitions: Vec<StoredDefinition>) -> Pending<'_, Vec<StoredDefinition>>;

    /// What is kept under this name, if anything is.
    fn fact(&self, name: &'static str) -> Pending<'_, Option<Vec<u8>>>;

    /// Every fact whose name begins so, in the order of their names.
    fn facts(&self, beginning: &'static str) -> Pending<'_, Vec<(String, Vec<u8>)>>;

    /// The right edge of the tree as of the last commit; it changes with every commit.
    fn head(&self) -> watch::Receiver<Arc<Edge>>;

    /// Whether the store takes writes now.
    fn check(&self) -> Result<()>;

    fn pulse(&self) -> Pulse;

    /// Something else on its disk has failed: from now on nothing is written, carried over or deleted.
    fn distrust(&self, cause: &str);

    /// Finishes what was handed in, puts it in order for the next start and closes. It waits for the disk. An error says
    /// that the disk failed, now or earlier: then everything is left as it is, and the next start reads what is there.
    fn stop(&self) -> Result<()>;
}
