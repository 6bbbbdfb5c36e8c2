//! When the write-ahead log is carried into the database.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::carrier::{Carrier, carry};
use super::health::Health;
use super::read::failed;
use crate::{Result, StoreError};

/// Once the log has this many pages, 48 MiB, it is carried into the database. Pages are counted and not entries: one
/// entry alone in its commit writes several pages, and a start after a crash reads all of them.
const CARRIED_PAGES: u64 = 12_288;
/// When it has this many and is still being carried, the disk cannot keep up: everyone waits for it once.
const WAITED_PAGES: u64 = 4 * CARRIED_PAGES;
/// What the file keeps for its next use when the log begins anew; growing costs more than writing over what is there.
pub(super) const KEPT_BYTES: u64 = WAITED_PAGES * 4_096;
/// A reader held on to the log, so it could not begin anew: it is tried again after this many more.
const AGAIN_PAGES: u64 = 1_024;

pub(super) struct WriteAheadLog {
    health: Arc<Health>,
    /// The database's path and file, where the log may be carried over beside the writing.
    beside: Option<(PathBuf, Arc<File>)>,
    carrier: Option<Carrier>,
    /// See [`count_pages`].
    pages: Arc<AtomicU64>,
    /// How many there were when it was last looked at: fewer now, and the log has begun anew.
    seen: u64,
    carry_at: u64,
}

/// The number of pages in the log, as of the last commit.
pub(super) fn count_pages(connection: &mut Connection) -> Result<Arc<AtomicU64>> {
    let pages = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&pages);
    let count = move |_: &mut Wal, now| {
        counted.store(u64::try_from(now).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    };
    connection.wal_hook(Some(count)).map_err(|error| failed(&error))?;
    Ok(pages)
}

impl WriteAheadLog {
    /// `beside` must outlive the connection; without it nothing is carried beside the writing.
    pub(super) fn new(
        pages: Arc<AtomicU64>,
        beside: Option<(PathBuf, Arc<File>)>,
        health: Arc<Health>,
    ) -> WriteAheadLog {
        WriteAheadLog { health, beside, carrier: None, pages, seen: 0, carry_at: CARRIED_PAGES }
    }

    /// After each commit: has the log carried over when it has grown, the bulk beside the writing, the rest here.
    pub(super) fn tend(&mut self, connection: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.seen {
            self.carry_at = CARRIED_PAGES;
        }
        self.seen = pages;
        if pages < self.carry_at || self.health.check().is_err() {
            return;
        }
        let Some(carrier) = self.carrier.as_mut().filter(|carrier| carrier.is_busy()) else {
            return self.begin(connection);
        };
        match carrier.finished(pages > WAITED_PAGES) {
            None => {}
            Some(Ok(())) => self.carry_rest(connection),
            Some(Err(error)) => self.not_carried(&error),
        }
    }

    /// Before the connection is closed.
    pub(super) fn finish(&mut self, connection: &Connection) {
        self.carrier = None;
        self.carry_rest(connection);
    }

    fn begin(&mut self, connection: &Connection) {
        if self.carrier.is_none()
            && let Some((path, database)) = &self.beside
        {
            let started = Carrier::start(path, Arc::clone(database), Arc::clone(&self.health));
            self.carrier = started.inspect_err(warn_not_carried).ok();
        }
        if !self.carrier.as_mut().is_some_and(Carrier::begin) {
            self.carrier = None;
            self.carry_rest(connection);
        }
    }

    fn carry_rest(&mut self, connection: &Connection) {
        if self.health.check().is_err() {
            return;
        }
        match carry(connection) {
            Ok(()) => self.carry_at = self.seen + AGAIN_PAGES,
            Err(error) => self.not_carried(&error),
        }
    }

    /// When there is no room, the log simply goes on growing.
    fn not_carried(&mut self, error: &StoreError) {
        warn_not_carried(error);
        self.health.stop_if_lasting(error);
        self.carry_at = self.seen + CARRIED_PAGES;
    }
}

fn warn_not_carried(error: &StoreError) {
    tracing::warn!(cause = %error, "the write-ahead log could not be carried into the database");
}
