//! Decides when the write-ahead log is copied into the database.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::carrier::{Carrier, carry};
use super::failure::failed;
use super::health::Health;
use super::thresholds::Thresholds;
use super::wal;
use crate::{Result, StoreError};

pub(super) struct WriteAheadLog {
    health: Arc<Health>,
    /// The database's path and file, if the log may be copied in parallel with the writer.
    beside: Option<(PathBuf, Arc<File>)>,
    carrier: Option<Carrier>,
    /// See [`count_pages`].
    pages: Arc<AtomicU64>,
    /// The number of pages at the last check. If there are fewer now, the log was restarted.
    seen: u64,
    carry_at: u64,
    thresholds: Thresholds,
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
    /// `beside` must outlive the connection; without it nothing is copied in parallel with the writer.
    pub(super) fn new(
        pages: Arc<AtomicU64>,
        beside: Option<(PathBuf, Arc<File>)>,
        health: Arc<Health>,
        thresholds: Thresholds,
    ) -> WriteAheadLog {
        let carry_at = thresholds.carried_pages;
        WriteAheadLog { health, beside, carrier: None, pages, seen: 0, carry_at, thresholds }
    }

    /// Called after each commit. When the log has grown enough, has most of it copied in parallel, and copies the rest
    /// here.
    pub(super) fn tend(&mut self, connection: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.seen {
            self.carry_at = self.thresholds.carried_pages;
        }
        self.seen = pages;
        if pages < self.carry_at || self.health.check_disk().is_err() {
            return;
        }
        let Some(carrier) = self.carrier.as_mut().filter(|carrier| carrier.is_busy()) else {
            return self.begin(connection);
        };
        match carrier.finished(pages > self.thresholds.waited_pages()) {
            None => {}
            Some(Ok(())) => self.carry_rest(connection),
            Some(Err(error)) => self.not_carried(&error),
        }
    }

    /// Called before the connection is closed; returns whether everything is in the database. After a disk error it
    /// touches nothing: what was copied before may be lost, and the log still has it.
    pub(super) fn finish(&mut self, connection: &Connection) -> bool {
        self.carrier = None;
        if self.health.check_disk().is_err() {
            return false;
        }
        carry_all(connection).inspect_err(|error| self.not_carried(error)).is_ok()
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
        if self.health.check_disk().is_err() {
            return;
        }
        match carry(connection) {
            Ok(_) => self.carry_at = self.seen + self.thresholds.again_pages(),
            Err(error) => self.not_carried(&error),
        }
    }

    /// If there is no space, the log simply keeps growing.
    fn not_carried(&mut self, error: &StoreError) {
        warn_not_carried(error);
        self.health.stop_if_lasting(error);
        self.carry_at = self.seen + self.thresholds.carried_pages;
    }
}

fn warn_not_carried(error: &StoreError) {
    tracing::warn!(cause = %error, "the write-ahead log could not be copied into the database");
}

/// What a crash left in the log may exist only in the machine's memory, whatever the disk reports now: after a failed
/// sync, the next one does not write those pages again. Copying the log into the database and syncing that puts
/// everything on disk before anyone is told about it.
pub(super) fn carry_recovered(connection: &Connection, path: &Path) -> Result<()> {
    let begin_anew = "PRAGMA wal_checkpoint(TRUNCATE)";
    let (log, carried): (i64, i64) =
        connection.query_row(begin_anew, [], |row| Ok((row.get(1)?, row.get(2)?))).map_err(|error| failed(&error))?;
    if log == carried {
        return Ok(());
    }
    tracing::warn!(
        log,
        carried,
        "another program is reading the database, so its write-ahead log stays next to it for now"
    );
    let synced = File::open(wal::beside(path)).and_then(|log| log.sync_all());
    synced.map_err(|error| StoreError::DiskFailed(error.to_string()))
}

fn carry_all(connection: &Connection) -> Result<()> {
    match carry(connection)? {
        (log, carried) if log == carried => Ok(()),
        _ => Err(StoreError::Unavailable(
            "another program is reading the database; the write-ahead log stays next to it".into(),
        )),
    }
}
