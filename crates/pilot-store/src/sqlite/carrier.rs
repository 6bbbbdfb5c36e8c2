//! Copies the write-ahead log into the database in parallel with the writer, so that writes hardly wait for it.
//!
//! SQLite restarts the log, and syncs the database, only when all of the log was copied; next to a busy writer there is
//! always a little more. So the bulk is carried and synced here, and the writing thread carries the short rest.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::connection::open_carrier;
use super::failure::failed;
use super::health::Health;
use crate::{Result, StoreError};

pub(super) struct Carrier {
    /// Taken at the end, which ends the thread.
    asks: Option<SyncSender<()>>,
    answers: Receiver<Result<()>>,
    thread: Option<JoinHandle<()>>,
    is_busy: bool,
}

impl Drop for Carrier {
    /// Closes its connection: the one that writes is the last.
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Carrier {
    /// `database` is the file at `path`, to be closed after every connection to it: closing any descriptor of a file gives
    /// up the locks that SQLite holds on it.
    pub(super) fn start(path: &Path, database: Arc<File>, health: Arc<Health>) -> Result<Carrier> {
        let connection = open_carrier(path)?;
        let (asks, asked) = mpsc::sync_channel(1);
        let (answer, answers) = mpsc::channel();
        let run = move || {
            while let Ok(()) = asked.recv() {
                // After a disk error nothing is copied: the log has what the database may have lost.
                if let Err(error) = health.check_disk() {
                    let _ = answer.send(Err(error));
                    return;
                }
                // The second time what was written during the first: then the rest is short.
                let carried =
                    carry_and_sync(&connection, &database).and_then(|()| carry_and_sync(&connection, &database));
                // Immediately: nothing may be acknowledged on a disk that failed.
                if let Err(error) = &carried {
                    health.stop_if_lasting(error);
                }
                if answer.send(carried).is_err() {
                    return;
                }
            }
        };
        let spawned = std::thread::Builder::new().name("store-carrier".into()).spawn(run);
        let thread =
            spawned.map_err(|error| StoreError::Unavailable(format!("cannot start the carrier thread: {error}")))?;
        Ok(Carrier { asks: Some(asks), answers, thread: Some(thread), is_busy: false })
    }

    pub(super) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Whether it began.
    pub(super) fn begin(&mut self) -> bool {
        self.is_busy = self.asks.as_ref().is_some_and(|asks| asks.try_send(()).is_ok());
        self.is_busy
    }

    /// What became of it, once it is done; when told to, waits until it is.
    pub(super) fn finished(&mut self, wait: bool) -> Option<Result<()>> {
        let answer = if wait { self.answers.recv().ok() } else { self.answers.try_recv().ok() };
        self.is_busy &= answer.is_none() && !wait;
        answer
    }
}

fn carry_and_sync(connection: &Connection, database: &File) -> Result<()> {
    carry(connection)?;
    database.sync_data().map_err(|error| StoreError::DiskFailed(error.to_string()))
}

/// As much of the log as there is and no reader needs: how many pages it has, and how many of them were carried. When
/// that is all of it, the next commit restarts the log.
pub(super) fn carry(connection: &Connection) -> Result<(i64, i64)> {
    let carried = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)));
    carried.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::open_writer;

    #[test]
    fn a_disk_that_fails_stops_the_writing_before_anybody_asks_what_became_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pilot.db");
        let writer = open_writer(&path).unwrap();
        // Something that is not a file on disk cannot be synced.
        for (database, is_failed) in [(path.as_path(), false), (Path::new("/dev/null"), true)] {
            let (database, health) = (Arc::new(File::open(database).unwrap()), Arc::new(Health::default()));
            let mut carrier = Carrier::start(&path, Arc::clone(&database), Arc::clone(&health)).unwrap();
            assert!(carrier.begin() && carrier.is_busy());
            let answer = carrier.finished(true).unwrap();
            assert_eq!(matches!(answer, Err(StoreError::DiskFailed(_))), is_failed, "{answer:?}");
            assert_eq!(health.check().is_err(), is_failed);
            assert!(!carrier.is_busy());
        }
        drop(writer);
    }
}
