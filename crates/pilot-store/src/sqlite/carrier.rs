//! Copies the write-ahead log into the database in parallel with the writer, so that writes hardly wait for it.
//!
//! SQLite restarts the log, and syncs the database, only when all of the log has been copied, and a busy writer always
//! adds a little more. So the bulk is copied and synced here, and the writing thread copies the short rest.

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
    /// Taken to end the thread.
    asks: Option<SyncSender<()>>,
    answers: Receiver<Result<()>>,
    thread: Option<JoinHandle<()>>,
    is_busy: bool,
}

impl Drop for Carrier {
    /// Closes this connection first: the writer's must be the last.
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Carrier {
    /// `database` is the file at `path`. It must be closed after every connection to it, because closing any descriptor
    /// of a file drops the locks that SQLite holds on it.
    pub(super) fn start(path: &Path, database: Arc<File>, health: Arc<Health>) -> Result<Carrier> {
        let connection = open_carrier(path)?;
        let (asks, asked) = mpsc::sync_channel(1);
        let (answer, answers) = mpsc::channel();
        let run = move || {
            while let Ok(()) = asked.recv() {
                // After a disk error nothing is copied: the log still has what the database may have lost.
                if let Err(error) = health.check_disk() {
                    let _ = answer.send(Err(error));
                    return;
                }
                // The second pass copies what was written during the first, so that the rest is short.
                let carried =
                    carry_and_sync(&connection, &database).and_then(|()| carry_and_sync(&connection, &database));
                // At once: nothing may be acknowledged on a disk that failed.
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

    /// Returns whether it began.
    pub(super) fn begin(&mut self) -> bool {
        self.is_busy = self.asks.as_ref().is_some_and(|asks| asks.try_send(()).is_ok());
        self.is_busy
    }

    /// The result, once there is one; with `wait`, blocks until then.
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

/// Copies as much of the log as no reader needs. Returns how many pages the log has and how many of them are copied; if
/// that is all of them, the next commit restarts the log.
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
        // Syncing something that is not a file on disk fails.
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
