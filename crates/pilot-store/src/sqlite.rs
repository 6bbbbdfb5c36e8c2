//! The embedded store: one SQLite file, one writing thread, a few reading ones, and one that carries the log over.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use pilot_core::item::{Item, ItemId};
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash};
use tokio::sync::{oneshot, watch};

use crate::{Filter, Outcome, Pending, Result, Store, StoreError, StoredDefinition, StoredEntry, Write};

mod cache;
mod carrier;
mod connection;
pub mod copy;
pub mod erase;
pub mod fsck;
mod health;
mod log;
mod read;
mod reader;
mod row;
mod statement;
mod writer;

use health::Health;
use log::WriteAheadLog;
use reader::Readers;
use writer::Job;

/// Gives the time to the writing thread; the store reads no clock of its own.
pub type Now = Arc<dyn Fn() -> Time + Send + Sync>;

pub struct Sqlite {
    /// Taken when the store is dropped: then the writing thread finishes what it was given, and ends.
    jobs: Option<mpsc::SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
    /// Dropped first, and in every case before the writing thread closes the file.
    readers: Option<Readers>,
    head: watch::Receiver<Arc<Edge>>,
    health: Arc<Health>,
    last_at: Time,
}

impl Drop for Sqlite {
    /// Waits until everything that was handed in is on disk and the file is closed, so that it can be opened again.
    fn drop(&mut self) {
        self.readers = None;
        self.jobs = None;
        let Some(writer) = self.writer.take() else { return };
        // The last one to hold the store may be a write in the queue; its thread cannot wait for itself.
        if writer.thread().id() != std::thread::current().id() {
            let _ = writer.join();
        }
    }
}

/// Writes that may wait for the writing thread; beyond it callers are told to come back.
const WAITING_WRITES_MAX: usize = 4_096;

impl Sqlite {
    /// Opens or makes the store, and makes sure that what is there is whole.
    pub fn open(path: &Path, now: Now) -> Result<Sqlite> {
        let lock = lock(path)?;
        Sqlite::start(path, now, lock, connection::open_writer(path)?)
    }

    /// To fill a large store for a measurement. Nothing waits for the disk: when the machine stops, what was acknowledged
    /// may be gone.
    #[cfg(feature = "conformance")]
    pub fn open_to_fill(path: &Path, now: Now) -> Result<Sqlite> {
        let lock = lock(path)?;
        let connection = connection::open_writer(path)?;
        connection.execute_batch("PRAGMA synchronous = OFF").map_err(|error| read::failed(&error))?;
        Sqlite::start(path, now, lock, connection)
    }

    fn start(path: &Path, now: Now, lock: File, mut connection: rusqlite::Connection) -> Result<Sqlite> {
        let opened = connection::load(&connection)?;
        let pages = log::count_pages(&mut connection)?;
        let (jobs, queue) = mpsc::sync_channel(WAITING_WRITES_MAX);
        let (head_sender, head) = watch::channel(Arc::new(opened.edge.clone()));
        let health = Arc::new(Health::default());
        let last_at = opened.last_at;
        let of_writer = Arc::clone(&health);
        let acknowledged = writer::Acknowledged::through_this_runtime();
        let file = path.to_owned();
        let spawned = std::thread::Builder::new().name("store-writer".into()).spawn(move || {
            // Dropped in the reverse order: the lock is given up when the connection is closed, and so are, with any
            // descriptor of the file, those that SQLite holds on it.
            let _lock = lock;
            let database = File::open(&file).ok().map(Arc::new);
            let connection = connection;
            let log =
                WriteAheadLog::new(pages, database.clone().map(|database| (file, database)), Arc::clone(&of_writer));
            writer::Writer::new(&connection, opened, now, head_sender, of_writer, acknowledged, log).run(&queue);
        });
        let writer = spawned.map_err(|error| StoreError::Unavailable(format!("no thread for the writer: {error}")))?;
        let readers = Readers::start(path, Arc::clone(&health))?;
        Ok(Sqlite { jobs: Some(jobs), writer: Some(writer), readers: Some(readers), head, health, last_at })
    }

    /// The time of the last entry there was when the store was opened; without any, 1970.
    pub fn last_at(&self) -> Time {
        self.last_at
    }
}

impl Sqlite {
    fn read<T, F>(&self, ask: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&rusqlite::Connection) -> Result<T> + Send + 'static,
    {
        match &self.readers {
            Some(readers) => readers.run(ask),
            None => Box::pin(async { Err(stopped()) }),
        }
    }

    fn jobs(&self) -> Result<&mpsc::SyncSender<Job>> {
        self.jobs.as_ref().ok_or_else(stopped)
    }

    fn hand_in(&self, job: Job) -> Result<()> {
        self.health.check()?;
        self.jobs()?.try_send(job).map_err(|unsent| match unsent {
            mpsc::TrySendError::Full(_) => StoreError::Unavailable("too many writes are waiting".into()),
            mpsc::TrySendError::Disconnected(_) => stopped(),
        })
    }
}

/// A second process on the same file would number its entries the same: it must not start.
pub fn lock(path: &Path) -> Result<File> {
    let beside: PathBuf = path.with_extension("lock");
    let failed = |error| StoreError::Unavailable(format!("{}: {error}", beside.display()));
    let file = File::options().write(true).create(true).truncate(false).open(&beside).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::Refused(format!(
            "{}: another process has this store open; only one service may use it (stop the other one first)",
            path.display()
        ))),
        Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

impl Store for Sqlite {
    fn settle(&self, write: Write) -> Pending<'_, Outcome> {
        let (reply, answer) = oneshot::channel();
        // Handed in before anyone waits: what waits then is small.
        match self.hand_in(Job::Settle { write, reply }) {
            Ok(()) => Box::pin(async { answer.await.map_err(|_| stopped())? }),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn item(&self, id: ItemId) -> Pending<'_, Option<Arc<Item>>> {
        self.read(move |connection| read::item(connection, &id).map(|item| item.map(Arc::new)))
    }

    fn items(&self, filter: Filter, limit: usize) -> Pending<'_, Vec<Item>> {
        self.read(move |connection| read::items(connection, &filter, limit))
    }

    fn history(&self, id: ItemId) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |connection| read::history(connection, &id))
    }

    fn entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |connection| read::entries(connection, from, limit))
    }

    fn whole_entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |connection| read::whole_entries(connection, from, limit))
    }

    fn whole_entries_at(&self, indices: Vec<u64>) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |connection| read::whole_entries_at(connection, &indices))
    }

    fn places(&self, id: ItemId) -> Pending<'_, Vec<u64>> {
        self.read(move |connection| read::places(connection, &id))
    }

    fn earlier_places(&self, first: u64, entries: Range<u64>) -> Pending<'_, Vec<u64>> {
        self.read(move |connection| read::earlier_places(connection, first, &entries))
    }

    fn leaves(&self, from: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        self.read(move |connection| read::leaves(connection, from, count))
    }

    fn due(&self, now: Time, limit: usize) -> Pending<'_, Vec<ItemId>> {
        self.read(move |connection| read::due(connection, now, limit))
    }

    fn row(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        self.read(move |connection| read::row(connection, level, start, count))
    }

    fn keep_definitions(&self, definitions: Vec<StoredDefinition>) -> Pending<'_, Vec<StoredDefinition>> {
        Box::pin(async move {
            let (reply, kept) = oneshot::channel();
            self.jobs()?.try_send(Job::KeepDefinitions { definitions, reply }).map_err(|_| stopped())?;
            kept.await.map_err(|_| stopped())?
        })
    }

    fn fact(&self, name: &'static str) -> Pending<'_, Option<Vec<u8>>> {
        self.read(move |connection| read::fact(connection, name))
    }

    fn head(&self) -> watch::Receiver<Arc<Edge>> {
        self.head.clone()
    }

    fn check(&self) -> Result<()> {
        let is_writing = self.writer.as_ref().is_some_and(|writer| !writer.is_finished());
        if is_writing { self.health.check() } else { Err(stopped()) }
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the store has stopped".into())
}
