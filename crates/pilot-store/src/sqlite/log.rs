//! When the write-ahead log is copied into the database.

use std::fs::File;
use std::path::{Path, PathBuf};
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
const CARRIED_PAGES_MAX: u64 = 12_288;
/// However small the disk is, carrying costs a sync, and is not worth it for less.
const CARRIED_PAGES_MIN: u64 = 64;
/// Of a small disk, the log takes about this part before it is carried: as much as is kept free for carrying it.
const PART: u64 = 16;
const PAGE_BYTES: u64 = 4_096;

/// When the log is carried, by the size of the disk it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thresholds {
    carried_pages: u64,
}

impl Thresholds {
    /// For the disk that holds this file. A disk whose size is unknown is treated as large: then the log only grows
    /// longer.
    pub(super) fn at(path: &Path) -> Thresholds {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let size = rustix::fs::statvfs(directory).map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        Thresholds::of_disk(if size == 0 { u64::MAX } else { size })
    }

    fn of_disk(bytes: u64) -> Thresholds {
        Thresholds { carried_pages: (bytes / PART / PAGE_BYTES).clamp(CARRIED_PAGES_MIN, CARRIED_PAGES_MAX) }
    }

    /// When it has this many and is still being carried, the disk cannot keep up: everyone waits for it once.
    fn waited_pages(self) -> u64 {
        4 * self.carried_pages
    }

    /// How much of the file is kept for reuse when the log is restarted; growing costs more than overwriting.
    pub(super) fn kept_bytes(self) -> u64 {
        self.waited_pages() * PAGE_BYTES
    }

    /// A reader held on to the log, so it could not be restarted: it is tried again after this many more.
    fn again_pages(self) -> u64 {
        self.carried_pages / 12
    }
}

pub(super) struct WriteAheadLog {
    health: Arc<Health>,
    /// The database's path and file, if the log may be copied in parallel with the writer.
    beside: Option<(PathBuf, Arc<File>)>,
    carrier: Option<Carrier>,
    /// See [`count_pages`].
    pages: Arc<AtomicU64>,
    /// How many there were at the last check: if there are fewer now, the log was restarted.
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

    /// After each commit: has the log copied when it has grown, most of it in parallel, the rest here.
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

    /// Before the connection is closed: whether everything is in the database. After an error of the disk nothing is
    /// touched, because what was copied before it may be lost, and the log still has it.
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

/// What a crash left in the log may be only in the machine's memory, whatever the disk reports now: a sync that failed
/// is not repeated by the next one. Written into the database and synced, it is on the disk before anyone is told of
/// it.
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
    let mut beside = path.as_os_str().to_owned();
    beside.push("-wal");
    let synced = File::open(beside).and_then(|log| log.sync_all());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sixteenth_of_a_disk_is_logged_before_it_is_carried_and_never_more_than_48_mib() {
        const MIB: u64 = 1024 * 1024;
        let pages = |bytes| Thresholds::of_disk(bytes).carried_pages;
        assert_eq!(pages(40 * MIB), 640);
        assert_eq!(pages(1 << 40), 12_288);
        assert_eq!(pages(u64::MAX), 12_288);
        assert_eq!(pages(1), 64);
    }
}
