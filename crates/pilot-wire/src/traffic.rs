//! What a listener counts.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::caps::Caps;

#[derive(Default)]
pub struct Traffic {
    open: AtomicU64,
    total: AtomicU64,
    expired: AtomicU64,
    handshakes_failed: AtomicU64,
    pub caps: Caps,
}

impl Traffic {
    pub fn connection_opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    pub fn connection_closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn connection_expired(&self) {
        self.expired.fetch_add(1, Ordering::Relaxed);
    }

    pub fn handshake_failed(&self) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections open now.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections accepted so far.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Connections closed because the peer was too slow.
    pub fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    pub fn handshakes_failed(&self) -> u64 {
        self.handshakes_failed.load(Ordering::Relaxed)
    }
}
