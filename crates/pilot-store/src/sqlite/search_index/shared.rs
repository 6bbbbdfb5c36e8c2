//! What the thread that makes the index shares with those that search.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use super::candidates::{Candidates, Sealed};
use super::file::SlabFile;
use super::grams;
use super::signal::Signal;
use super::slab::{Geometry, Slab};

pub(in crate::sqlite) struct SearchIndex {
    pub(super) geometry: Geometry,
    /// Not there until the file was checked.
    known: RwLock<Option<Known>>,
    signal: Arc<Signal>,
}

/// What is indexed.
pub(super) struct Known {
    /// Entries whose items and contents are covered.
    pub(super) size: u64,
    pub(super) sealed: Arc<Vec<Sealed>>,
    pub(super) file: Option<Arc<SlabFile>>,
    pub(super) open: Slab,
    /// Items in sealed slabs that have other texts since, by the entries that created them.
    pub(super) edited: BTreeSet<u64>,
}

impl Known {
    pub(super) fn nothing(geometry: Geometry) -> Known {
        let (sealed, open, edited) = (Arc::default(), Slab::new(geometry), BTreeSet::new());
        Known { size: 0, sealed, file: None, open, edited }
    }
}

impl SearchIndex {
    pub(in crate::sqlite) fn new(geometry: Geometry) -> SearchIndex {
        SearchIndex { geometry, known: RwLock::default(), signal: Arc::default() }
    }

    /// Where a text in lower case may be, as far as this is known now. Must be taken before the snapshot in which it is
    /// used begins: what comes later is not covered.
    pub(in crate::sqlite) fn candidates(&self, text: &str) -> Option<Candidates> {
        let slots = grams::slots_of(text, self.geometry.slot_bits).filter(|_| !self.signal.is_unreadable())?;
        self.see(|known| {
            let open = known.open.having(&slots);
            let sealed = (Arc::clone(&known.sealed), known.file.clone());
            Candidates::new(Arc::clone(&self.signal), slots, known.size, open, sealed, known.edited.clone())
        })
    }

    pub(in crate::sqlite) fn signal(&self) -> &Signal {
        &self.signal
    }

    pub(super) fn see<T>(&self, see: impl FnOnce(&Known) -> T) -> Option<T> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(see)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Known)) {
        if let Some(known) = &mut *self.known.write().unwrap_or_else(PoisonError::into_inner) {
            change(known);
        }
    }

    pub(super) fn set(&self, known: Option<Known>) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
    }
}
