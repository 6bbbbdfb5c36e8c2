//! What the thread that makes the search index is asked to do, and whether it still does anything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Default)]
pub(in crate::sqlite) struct Signal {
    asked: Mutex<Asked>,
    changed: Condvar,
    is_ending: AtomicBool,
    has_failed: AtomicBool,
    is_unreadable: AtomicBool,
}

#[derive(Default)]
struct Asked {
    is_waiting: bool,
    /// Whether the thread has nothing to do. For tests.
    is_idle: bool,
}

impl Signal {
    /// Has the thread index what is new.
    pub(in crate::sqlite) fn bring_up_to_date(&self) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = Asked { is_waiting: true, is_idle: self.is_ending() };
        drop(asked);
        self.changed.notify_all();
    }

    /// From here on nothing more is indexed, until the next start.
    pub(super) fn fail(&self, cause: &dyn std::fmt::Display) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            tracing::warn!(cause = %cause, "the search index failed; until the next start, searches are slower");
        }
        self.end();
    }

    /// From here on searches do without the index.
    pub(super) fn cannot_be_read(&self, error: &std::io::Error) {
        self.is_unreadable.store(true, Ordering::Relaxed);
        self.fail(error);
    }

    pub(super) fn is_unreadable(&self) -> bool {
        self.is_unreadable.load(Ordering::Relaxed)
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Waits until there is something to do; false if nothing more will be done.
    pub(super) fn wait(&self) -> bool {
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
    pub(super) fn rest(&self) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).is_idle = true;
        self.changed.notify_all();
    }

    pub(super) fn end(&self) {
        // Under the lock: otherwise the thread could miss it between its check and its wait.
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_ending.store(true, Ordering::Relaxed);
        drop(asked);
        self.changed.notify_all();
    }

    /// Waits until everything is indexed.
    #[cfg(test)]
    pub(in crate::sqlite) fn until_idle(&self) {
        let mut asked = self.asked.lock().unwrap();
        while !asked.is_idle {
            asked = self.changed.wait(asked).unwrap();
        }
    }
}
