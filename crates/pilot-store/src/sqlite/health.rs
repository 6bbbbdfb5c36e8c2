//! Whether the store accepts writes, for writers and for health checks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::{Pulse, Result, StoreError};

/// Whether writes can be accepted, as far as is known.
#[derive(Default)]
pub(super) struct Health {
    is_failed: AtomicBool,
    /// The stored data contradicts itself, so not even reads can be trusted.
    is_damaged: AtomicBool,
    reason: Mutex<String>,
    /// Milliseconds that writes have been waiting for the disk; 0 if they are not.
    hanging: AtomicU64,
    hangs: AtomicU64,
}

impl Health {
    pub(super) fn check(&self) -> Result<()> {
        self.check_disk()?;
        match self.hanging.load(Ordering::Acquire) {
            0 => Ok(()),
            millis => Err(StoreError::Hangs(format!("writes have been waiting for {} s", millis / 1_000))),
        }
    }

    /// Fails once the disk has failed: from then on nothing is copied or deleted, whatever happens.
    pub(super) fn check_disk(&self) -> Result<()> {
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

    /// After a disk error, nothing the disk reports can be trusted; only a restart reads the true state again. A full
    /// disk is not such an error: it accepts writes again when there is space.
    pub(super) fn stop_if_lasting(&self, error: &StoreError) {
        match error {
            StoreError::Damaged(_) | StoreError::Refused(_) | StoreError::DiskFailed(_) => self.fail(error),
            StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Hangs(_) => {}
        }
    }

    pub(super) fn fail(&self, error: &StoreError) {
        let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = !self.is_failed.load(Ordering::Acquire);
        // The first error is the one the operator has to look for.
        if is_news || matches!(error, StoreError::Damaged(_)) {
            *reason = format!("writing has stopped until the service is restarted: {error}");
        }
        self.is_damaged.fetch_or(matches!(error, StoreError::Damaged(_)), Ordering::AcqRel);
        self.is_failed.store(true, Ordering::Release);
        drop(reason);
        if is_news {
            tracing::error!(
                cause = %error,
                "writing stops until the service is restarted; the write-ahead log is left as it is, and the next start reads it"
            );
        }
    }

    /// Writes have waited for the disk longer than allowed.
    pub(super) fn hangs(&self, since: Duration) {
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX).max(1);
        if self.hanging.swap(millis, Ordering::AcqRel) == 0 {
            self.hangs.fetch_add(1, Ordering::Relaxed);
            tracing::error!(
                seconds = since.as_secs(),
                "the disk is not responding; writes are refused until it does, and only then is it known whether those in progress were recorded"
            );
        }
    }

    pub(super) fn goes_on(&self) {
        if self.hanging.swap(0, Ordering::AcqRel) != 0 {
            tracing::info!("the disk responds again; writing resumes");
        }
    }

    pub(super) fn pulse(&self) -> Pulse {
        let hanging = Some(self.hanging.load(Ordering::Acquire)).filter(|millis| *millis > 0);
        Pulse {
            is_replicated: None,
            hanging: hanging.map(Duration::from_millis),
            hangs: self.hangs.load(Ordering::Relaxed),
        }
    }
}
