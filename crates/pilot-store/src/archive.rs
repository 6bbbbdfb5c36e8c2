//! What operators do with a ledger, apart from the service that writes it.

use std::path::Path;
use std::sync::Arc;

use pilot_core::item::ItemId;
use pilot_core::time::Time;
use pilot_evidence::merkle::Hash;
use serde::Serialize;

use crate::{Result, Store};

/// What dates entries.
pub type Now = Arc<dyn Fn() -> Time + Send + Sync>;

/// Takes another clock's time.
pub type Hear = Arc<dyn Fn(Time) + Send + Sync>;

/// A ledger at rest, or next to its service. What changes it is refused while a service has it open, unless the store
/// is shared: there it is ordered with the writes of the nodes.
pub trait Archive {
    /// Where it is, for people.
    fn place(&self) -> String;

    fn exists(&self) -> bool;

    /// Reads everything. An error means that it could not be read at all; whatever is wrong inside is in the report.
    fn examine(&self, progress: &mut dyn FnMut(Progress)) -> Result<Report>;

    /// A copy in a file of its own, as of one moment, made while a service may be writing.
    fn copy(&self, to: &Path) -> Result<()>;

    /// What was acknowledged last, as far as that is known.
    fn acknowledged(&self) -> Result<Option<Head>>;

    /// The tree's root when it had so many entries; none when it never had.
    fn root_at(&self, size: u64) -> Result<Option<Hash>>;

    fn fact(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Every fact whose name begins so, in the order of their names.
    fn facts(&self, beginning: &str) -> Result<Vec<(String, Vec<u8>)>>;

    /// How many documents an item has. Refused while it is open: decisions still rest on them.
    fn erasable(&self, id: &ItemId) -> Result<u64>;

    /// Erases what people wrote about an item, and whatever else repeats it.
    fn erase(&self, id: &ItemId) -> Result<u64>;

    /// To write an operator's entry.
    fn open(&self, now: Now) -> Result<Arc<dyn Store>>;

    /// No service can open it while this is held.
    fn hold(&self) -> Result<Box<dyn Send>>;

    /// Whether another ledger can take its place. If not, the refusal says what to do instead.
    fn check_replaceable(&self) -> Result<()> {
        Ok(())
    }

    /// A copy of `from` next to this ledger, to take its place. What an interrupted restore left there is removed.
    fn stage(&self, from: &dyn Archive) -> Result<Box<dyn Staged>>;

    /// What stores it, and in which version, for people.
    fn engine(&self) -> String;
}

/// A ledger that is to take the place of another. Nothing uses it until then.
pub trait Staged {
    fn open(&self, now: Now) -> Result<Arc<dyn Store>>;

    /// Once nobody has it open. The ledger that was there before is kept; `stamp` is part of its new name.
    fn put_in_place(self: Box<Self>, stamp: &str) -> Result<()>;

    fn discard(self: Box<Self>);
}

/// The size and root of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub size: u64,
    pub root: Hash,
}

/// Something that is inconsistent, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredFault {
    pub place: String,
    pub what: String,
}

/// What was read, and what was wrong with it.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub entries: u64,
    pub documents: u64,
    /// Documents that were erased on purpose: their proofs stay valid.
    pub erased: u64,
    pub tiles: u64,
    pub items: u64,
    /// Items whose moves cannot be decided again, because what they depended on was erased.
    pub items_not_replayed: u64,
    pub definitions: u64,
    /// Answers that are remembered for clients who lost them.
    pub answers: u64,
    /// The root over the entries, in base64, when there is one for all of them.
    pub root: Option<String>,
    pub faults: Vec<StoredFault>,
}

/// The progress of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub step: &'static str,
    pub done: u64,
    pub of: u64,
}

impl Report {
    pub(crate) fn fault(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.faults.push(StoredFault { place: place.into(), what: what.into() });
    }
}
