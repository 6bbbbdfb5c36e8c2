//! Where a search need not look. The index says of each block of items which texts cannot be in it; whatever may be is
//! looked at, so a search finds the same with it and without it.
//!
//! One thread makes it, after the store was opened and when a search asks for it: no write pays for it. What it does not
//! cover yet, a search looks at.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

mod candidates;
mod file;
mod grams;
mod indexer;
mod slab;

pub(super) use candidates::{Candidates, Place};
#[cfg(test)]
pub(super) use file::beside;
pub(super) use file::destroy;
pub(super) use indexer::Indexer;
pub(super) use slab::Geometry;

use candidates::Sealed;
use file::SlabFile;
use slab::Slab;

/// What the thread that makes the index shares with those that search.
pub(super) struct SearchIndex {
    geometry: Geometry,
    /// Not there until the file was checked, and after a failure.
    known: RwLock<Option<Known>>,
    asked: Mutex<Asked>,
    changed: Condvar,
    is_ending: AtomicBool,
    has_failed: AtomicBool,
}

/// What is indexed.
struct Known {
    /// Entries whose items and contents are covered.
    size: u64,
    sealed: Arc<Vec<Sealed>>,
    file: Option<Arc<SlabFile>>,
    open: Slab,
    /// Items in sealed slabs that have other texts since, by the entries that created them.
    edited: BTreeSet<u64>,
}

impl Known {
    fn nothing(geometry: Geometry) -> Known {
        let (sealed, open, edited) = (Arc::default(), Slab::new(geometry), BTreeSet::new());
        Known { size: 0, sealed, file: None, open, edited }
    }
}

#[derive(Default)]
struct Asked {
    is_waiting: bool,
    /// Whether the thread has nothing to do. For tests.
    is_idle: bool,
}

impl SearchIndex {
    pub(super) fn new(geometry: Geometry) -> SearchIndex {
        SearchIndex {
            geometry,
            known: RwLock::default(),
            asked: Mutex::default(),
            changed: Condvar::new(),
            is_ending: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Where a text in lower case may be, as far as this is known now. Must be taken before the snapshot in which it is
    /// used begins: what comes later is not covered.
    pub(super) fn candidates(self: &Arc<Self>, text: &str) -> Option<Candidates> {
        let slots = grams::slots_of(text, self.geometry.slot_bits)?;
        self.see(|known| {
            let open = known.open.having(&slots);
            let sealed = (Arc::clone(&known.sealed), known.file.clone());
            Candidates::new(Arc::clone(self), slots, known.size, open, sealed, known.edited.clone())
        })
    }

    /// Has the thread index what is new.
    pub(super) fn bring_up_to_date(&self) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = Asked { is_waiting: true, is_idle: self.is_ending() };
        drop(asked);
        self.changed.notify_all();
    }

    fn see<T>(&self, see: impl FnOnce(&Known) -> T) -> Option<T> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(see)
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        if let Some(known) = &mut *self.known.write().unwrap_or_else(PoisonError::into_inner) {
            change(known);
        }
    }

    fn set(&self, known: Option<Known>) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// From here on nothing more is indexed, until the next start.
    fn fail(&self, cause: &dyn std::fmt::Display) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            tracing::warn!(cause = %cause, "the search index failed; until the next start, searches are slower");
        }
        self.is_ending.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn cannot_be_read(&self, error: &io::Error) {
        self.fail(error);
        self.set(None);
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Waits until there is something to do; false if nothing more will be done.
    fn wait(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        while !asked.is_waiting && !self.is_ending() {
            asked.is_idle = true;
            self.changed.notify_all();
            asked = self.changed.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
        *asked = Asked::default();
        !self.is_ending()
    }

    /// The thread has ended.
    fn rest(&self) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).is_idle = true;
        self.changed.notify_all();
    }

    fn end(&self) {
        // Under the lock: otherwise the thread could miss it between its check and its wait.
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_ending.store(true, Ordering::Relaxed);
        drop(asked);
        self.changed.notify_all();
    }

    /// Waits until everything is indexed.
    #[cfg(test)]
    pub(super) fn until_idle(&self) {
        let mut asked = self.asked.lock().unwrap();
        while !asked.is_idle {
            asked = self.changed.wait(asked).unwrap();
        }
    }
}
