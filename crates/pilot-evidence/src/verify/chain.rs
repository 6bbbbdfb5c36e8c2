//! How one period's bundle follows another: what the next one must agree with, and what it need not prove again.

use super::items::OpenItems;
use super::register::Register;
use crate::checkpoint::Checkpoint;
use crate::merkle::Hash;

/// The end of a period whose bundle has no fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Predecessor {
    /// How many entries the log had at its end, and the root of their tree.
    pub end: u64,
    pub(super) root: Hash,
    /// The newest checkpoint it knew.
    pub(super) newest: Checkpoint,
    pub(super) carried: Option<Carried>,
}

/// What only a ledger that is followed from its first entry shows, as of an end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Carried {
    pub(super) register: Register,
    pub(super) open_items: OpenItems,
}

impl Predecessor {
    /// The sizes and roots that the next bundle must agree with.
    pub(super) fn roots(&self) -> [(u64, Hash); 2] {
        [(self.end, self.root), (self.newest.size, self.newest.root)]
    }
}
