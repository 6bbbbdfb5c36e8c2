//! The items that one search has to look at, found out as far as it gets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::file::SlabFile;
use super::signal::Signal;
use super::slab::{Bits, Span, spans};

/// The blocks of a slab in the file, oldest first.
pub(super) type Sealed = Arc<[Span]>;

/// Where an item that may match is, at or before some place in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Place {
    At(u64),
    Nowhere,
    /// Nothing is known of what was created before this entry, because enough was read already.
    Unknown(u64),
}

pub(in crate::sqlite) struct Candidates {
    signal: Arc<Signal>,
    slots: Vec<usize>,
    /// All items that were created by this entry or later are candidates.
    size: u64,
    /// In the slab in memory.
    open: Vec<Span>,
    sealed: Arc<Vec<Sealed>>,
    file: Option<Arc<SlabFile>>,
    /// Candidates whatever the index says.
    others: BTreeSet<u64>,
    /// By slab, as far as they were read.
    found: BTreeMap<usize, Vec<Span>>,
    slabs_left: usize,
}

impl Candidates {
    pub(super) fn new(
        signal: Arc<Signal>,
        slots: Vec<usize>,
        size: u64,
        open: Vec<Span>,
        (sealed, file): (Arc<Vec<Sealed>>, Option<Arc<SlabFile>>),
        others: BTreeSet<u64>,
    ) -> Candidates {
        let found = BTreeMap::new();
        Candidates { signal, slots, size, open, sealed, file, others, found, slabs_left: 0 }
    }

    /// So many more slabs may be read. Where a search looks in several indexes of the database, this is so for each:
    /// otherwise one could leave nothing for the next, and the search would not get on.
    pub(in crate::sqlite) fn allow(&mut self, slabs: usize) {
        self.slabs_left = slabs;
    }

    /// The number of entries that the index covers.
    pub(in crate::sqlite) fn size(&self) -> u64 {
        self.size
    }

    pub(in crate::sqlite) fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Adds an item, by the entry that created it.
    pub(in crate::sqlite) fn add(&mut self, created_entry: u64) {
        self.others.insert(created_entry);
    }

    /// The newest candidate that was created by this entry or before.
    pub(in crate::sqlite) fn at_or_before(&mut self, entry: u64) -> Place {
        if entry >= self.size {
            return Place::At(entry);
        }
        let other = self.others.range(..=entry).next_back().copied();
        if let Some(found) = newest(&self.open, entry) {
            return Place::At(found.max(other.unwrap_or(0)));
        }
        let begun = |slab: &Sealed| slab.first().is_some_and(|block| block.first <= entry);
        for number in (0..self.sealed.partition_point(begun)).rev() {
            let Some(slab) = self.sealed.get(number).map(Arc::clone) else { break };
            if let Some(other) = other.filter(|other| slab.last().is_some_and(|block| block.last <= *other)) {
                return Place::At(other);
            }
            if !self.read(number, &slab) {
                let beyond = slab.last().map_or(0, |block| block.last + 1);
                return Place::Unknown(beyond);
            }
            let found = self.found.get(&number).and_then(|spans| newest(spans, entry));
            if let Some(found) = found {
                return Place::At(found.max(other.unwrap_or(0)));
            }
        }
        other.map_or(Place::Nowhere, Place::At)
    }

    /// False if no more slabs may be read.
    fn read(&mut self, number: usize, blocks: &Sealed) -> bool {
        if self.found.contains_key(&number) {
            return true;
        }
        let Some(slabs_left) = self.slabs_left.checked_sub(1) else { return false };
        self.slabs_left = slabs_left;
        let having = self.file.as_ref().map_or(Ok(Bits::MAX), |file| file.having(number as u64, &self.slots));
        // Every block of a slab that cannot be read may have the text.
        let having = having.unwrap_or_else(|error| {
            self.signal.cannot_be_read(&error);
            Bits::MAX
        });
        self.found.insert(number, spans(having, blocks));
        true
    }
}

/// In spans from the newest to the oldest.
fn newest(spans: &[Span], entry: u64) -> Option<u64> {
    let later = spans.partition_point(|span| span.first > entry);
    spans.get(later).map(|span| span.last.min(entry))
}
