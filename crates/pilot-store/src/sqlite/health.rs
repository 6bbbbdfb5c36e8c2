//! Whether the store takes writes, for whoever writes and whoever asks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{Result, StoreError};

/// Whether writes can be taken, as far as is known.
#[derive(Default)]
pub(super) struct Health {
    is_failed: AtomicBool,
    /// What is stored contradicts itself: not even reading can be trusted.
    is_damaged: AtomicBool,
    reason: Mutex<String>,
}

impl Health {
    pub(super) fn check(&self) -> Result<()> {
        if !self.is_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Err(if self.is_damaged.load(Ordering::Acquire) {
            StoreError::Damaged(reason)
        } else {
            StoreError::Unavailable(reason)
        })
    }

    /// After an error of the disk itself, what it says next cannot be trusted: only a restart reads the truth again. A
    /// full disk is no such error; it takes writes again when it has room.
    pub(super) fn stop_if_lasting(&self, error: &StoreError) {
        match error {
            StoreError::Damaged(_) | StoreError::Refused(_) | StoreError::DiskFailed(_) => self.fail(error),
            StoreError::Unavailable(_) => {}
        }
    }

    pub(super) fn fail(&self, error: &StoreError) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) =
            format!("writing has stopped until the service is restarted: {error}");
        self.is_damaged.fetch_or(matches!(error, StoreError::Damaged(_)), Ordering::AcqRel);
        self.is_failed.store(true, Ordering::Release);
    }
}
