//! Moves the write-ahead log into the database beside the writing, so that nobody who writes waits for it.
//!
//! SQLite begins the log anew only when all of it was moved, and beside a busy writer there is always a little more. So
//! the bulk is moved here, and the writing thread moves the short rest itself.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::connection::open_mover;
use super::read;
use crate::{Result, StoreError};

pub(super) struct Mover {
    /// Taken at the end, which ends the thread.
    asks: Option<SyncSender<()>>,
    answers: Receiver<Result<()>>,
    thread: Option<JoinHandle<()>>,
    is_moving: bool,
}

impl Drop for Mover {
    /// Closes its connection: the one that writes is the last.
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Mover {
    pub(super) fn start(path: &Path) -> Result<Mover> {
        let connection = open_mover(path)?;
        let (asks, asked) = mpsc::sync_channel(1);
        let (answer, answers) = mpsc::channel();
        let run = move || {
            while let Ok(()) = asked.recv() {
                // The second time what was written during the first: then the rest is short.
                let moved = move_log(&connection).and_then(|()| move_log(&connection));
                if answer.send(moved).is_err() {
                    return;
                }
            }
        };
        let spawned = std::thread::Builder::new().name("store-mover".into()).spawn(run);
        let thread = spawned.map_err(|error| StoreError::Unavailable(format!("no thread for the mover: {error}")))?;
        Ok(Mover { asks: Some(asks), answers, thread: Some(thread), is_moving: false })
    }

    pub(super) fn is_moving(&self) -> bool {
        self.is_moving
    }

    /// Whether it began.
    pub(super) fn begin(&mut self) -> bool {
        self.is_moving = self.asks.as_ref().is_some_and(|asks| asks.try_send(()).is_ok());
        self.is_moving
    }

    /// What became of it, once it is done; when told to, waits until it is.
    pub(super) fn finished(&mut self, wait: bool) -> Option<Result<()>> {
        let answer = if wait { self.answers.recv().ok() } else { self.answers.try_recv().ok() };
        self.is_moving &= answer.is_none() && !wait;
        answer
    }
}

/// As much of the log as there is and no reader needs.
pub(super) fn move_log(connection: &Connection) -> Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(|error| read::failed(&error))
}
