//! The embedded store: one SQLite file, one writing thread, a few reading threads, one that copies the write-ahead log,
//! one that makes the search index, and one that watches the others.

use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use pilot_core::item::{Item, ItemId};
use pilot_core::limits::{QUESTIONS_WAITING_MAX, WRITES_WAITING_MAX};
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash};
use tokio::sync::{oneshot, watch as watch_channel};

use crate::tree::{Tree, UpperRoots};
use crate::{
    Filter, ItemPage, Listed, Outcome, Pending, Pulse, RangeEnd, RankPage, Result, ShownItem, Sort, Store, StoreError,
    StoredDefinition, StoredEntry, Write,
};

mod archive;
mod beside;
mod cache;
mod carrier;
mod connection;
pub mod copy;
mod desk;
pub mod erase;
mod failure;
mod fresh;
pub mod fsck;
pub mod head;
mod health;
mod lock;
mod log;
mod opening;
mod overwrite;
mod pages;
mod read;
mod reader;
mod schema;
mod search;
mod search_index;
mod staged;
mod statement;
mod thresholds;
mod upgrade;
mod wal;
mod watch;
mod writer;

use desk::{Desk, Job};
use head::HeadFile;
use health::Health;
use log::WriteAheadLog;
use reader::{Readers, Ticket};
use search_index::{Geometry, Indexer, SearchIndex};
use thresholds::Thresholds;
use watch::Watch;

pub use crate::archive::Now;
pub use archive::LedgerFile;
pub(crate) use fresh::FreshFile;
pub(crate) use lock::{Lock, lock};
pub(crate) use pages::Pages;

/// Readers for callers, and separate ones for the service's own duties: timers, signer and witnesses never wait for a
/// search.
const READERS: usize = 3;
const DUTY_READERS: usize = 1;

pub struct Sqlite {
    /// Taken when the store stops, which makes the writing thread finish its queue and end.
    jobs: Mutex<Option<mpsc::SyncSender<Job>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    readers: Readers,
    duties: Readers,
    indexer: Indexer,
    watch: Mutex<Option<Watch>>,
    head: watch_channel::Receiver<Arc<Edge>>,
    health: Arc<Health>,
    upper_roots: Arc<UpperRoots>,
    last_at: Time,
}

impl Drop for Sqlite {
    /// Waits until every queued write is on disk and the file is closed, so that it can be opened again.
    fn drop(&mut self) {
        self.end();
    }
}

impl Sqlite {
    /// Opens or creates the store, and checks that its contents are intact.
    pub fn open(path: &Path, now: Now) -> Result<Sqlite> {
        let lock = lock(path)?;
        opening::refuse_damaged_log(path)?;
        Sqlite::start(path, now, lock, connection::open_writer(path)?, Geometry::FULL)
    }

    /// With a search index of small parts.
    #[cfg(test)]
    fn open_with(path: &Path, now: Now, geometry: Geometry) -> Result<Sqlite> {
        Sqlite::start(path, now, lock(path)?, connection::open_writer(path)?, geometry)
    }

    /// For filling a large store before a measurement. Nothing waits for the disk: if the machine stops, acknowledged
    /// writes may be lost.
    #[cfg(feature = "conformance")]
    pub fn open_to_fill(path: &Path, now: Now) -> Result<Sqlite> {
        let lock = lock(path)?;
        let connection = connection::open_writer(path)?;
        connection.execute_batch("PRAGMA synchronous = OFF").map_err(|error| failure::failed(&error))?;
        Sqlite::start(path, now, lock, connection, Geometry::FULL)
    }

    fn start(
        path: &Path,
        now: Now,
        lock: Lock,
        connection: rusqlite::Connection,
        geometry: Geometry,
    ) -> Result<Sqlite> {
        let mut connection = upgrade::upgraded(connection, path)?;
        let opened = opening::whole(&connection, path)?;
        log::carry_recovered(&connection, path)?;
        let head_file = HeadFile::open(path, &opened.edge)?;
        let pages = log::count_pages(&mut connection)?;
        let (jobs, queue) = mpsc::sync_channel(WRITES_WAITING_MAX);
        let desk = Arc::new(Desk::new(queue));
        let (head_sender, head) = watch_channel::channel(Arc::new(opened.edge.clone()));
        let health = Arc::new(Health::default());
        let last_at = opened.last_at;
        let (of_writer, on_desk) = (Arc::clone(&health), Arc::clone(&desk));
        let acknowledged = writer::Acknowledged::through_this_runtime();
        let file = path.to_owned();
        let write = move || {
            // Dropped in reverse order, connection first. Closing any descriptor of the file also drops the locks that
            // SQLite holds on it, so `database` must outlive the connection; our own lock goes last.
            let lock = lock;
            let database = File::open(&file).ok().map(Arc::new);
            let connection = connection;
            let thresholds = Thresholds::at(&file);
            let beside = database.clone().map(|database| (file.clone(), database));
            let log = WriteAheadLog::new(pages, beside, Arc::clone(&of_writer), thresholds);
            let told = writer::Told { head: head_sender, file: head_file, acknowledged };
            let health = Arc::clone(&of_writer);
            let writer = writer::Writer::new(&connection, opened, now, of_writer, told, log);
            match catch_unwind(AssertUnwindSafe(|| writer.run(&on_desk))) {
                Ok(true) => {
                    connection::close_carried(connection);
                    head::forget(&file);
                }
                Ok(false) => {}
                Err(_) => {
                    // It is unknown what was being written, so nobody may write any more: tell everyone, and keep the
                    // lock until the process ends.
                    std::mem::forget(lock);
                    let panicked = || StoreError::Damaged("the writing thread has panicked".into());
                    health.fail(&panicked());
                    on_desk.done();
                    for waiting in on_desk.release() {
                        let _ = waiting.send(Err(panicked()));
                    }
                }
            }
        };
        let spawned = std::thread::Builder::new().name("store-writer".into()).spawn(write);
        let writer =
            spawned.map_err(|error| StoreError::Unavailable(format!("cannot start the writer thread: {error}")))?;
        let readers = Readers::start(path, "reader", READERS, QUESTIONS_WAITING_MAX, Arc::clone(&health))?;
        let duties = Readers::start(path, "duty", DUTY_READERS, QUESTIONS_WAITING_MAX, Arc::clone(&health))?;
        let search_index = Arc::new(SearchIndex::new(geometry));
        let indexer = Indexer::start(path, search_index, head.clone())?;
        let watch = Watch::start(desk, vec![readers.line(), duties.line()], Arc::clone(&health))?;
        Ok(Sqlite {
            jobs: Mutex::new(Some(jobs)),
            writer: Mutex::new(Some(writer)),
            readers,
            duties,
            indexer,
            watch: Mutex::new(Some(watch)),
            head,
            health,
            upper_roots: Arc::default(),
            last_at,
        })
    }

    /// The time of the last entry when the store was opened; 1970 if there was none.
    pub fn last_at(&self) -> Time {
        self.last_at
    }

    /// Readers first: in every case the writing thread must be the last to close the file.
    fn end(&self) {
        self.readers.close();
        self.duties.close();
        self.indexer.close();
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The store's last owner may be a write in the queue; the writing thread cannot join itself.
        if let Some(writer) = writer.filter(|writer| writer.thread().id() != std::thread::current().id())
            && writer.join().is_err()
        {
            self.health.fail(&StoreError::Damaged("the writing thread has panicked".into()));
        }
        drop(self.watch.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Sqlite {
    /// For a caller.
    fn read<T, F>(&self, ask: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&rusqlite::Connection) -> Result<T> + Send + 'static,
    {
        self.readers.run(move |connection, _: &Ticket| ask(connection))
    }

    /// For the service itself.
    fn read_on_duty<T, F>(&self, ask: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&rusqlite::Connection) -> Result<T> + Send + 'static,
    {
        self.duties.run(move |connection, _: &Ticket| ask(connection))
    }

    fn hand_in(&self, job: Job) -> Result<()> {
        self.health.check().map_err(|error| match error {
            // Never queued, so certainly not written.
            StoreError::Hangs(_) => StoreError::Unavailable(error.to_string()),
            other => other,
        })?;
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs = jobs.as_ref().ok_or_else(stopped)?;
        jobs.try_send(job).map_err(|unsent| match unsent {
            mpsc::TrySendError::Full(_) => StoreError::Unavailable("too many writes are waiting".into()),
            mpsc::TrySendError::Disconnected(_) => stopped(),
        })
    }
}

impl Store for Sqlite {
    fn settle(&self, write: Write) -> Pending<'_, Outcome> {
        let (reply, answer) = oneshot::channel();
        // Queued before anyone waits, which keeps the future small.
        match self.hand_in(Job::Settle { write, reply }) {
            Ok(()) => Box::pin(async { answer.await.map_err(|_| stopped())? }),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn item(&self, id: ItemId) -> Pending<'_, Option<Arc<Item>>> {
        self.read(move |connection| read::item(connection, &id).map(|item| item.map(Arc::new)))
    }

    fn shown_item(&self, id: ItemId, fact: String) -> Pending<'_, Option<ShownItem>> {
        self.read(move |connection| read::shown_item(connection, &id, &fact))
    }

    fn newest_entries(&self, id: ItemId, before: Option<u64>, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |connection| read::newest_entries(connection, &id, before, limit))
    }

    fn items_page(&self, filter: Filter, limit: usize) -> Pending<'_, ItemPage> {
        let search_index = Arc::clone(self.indexer.index());
        self.read(move |connection| search::items(connection, &filter, limit, &search_index))
    }

    fn ranks_page(&self, filter: Filter, sort: Sort) -> Pending<'_, RankPage> {
        let search_index = Arc::clone(self.indexer.index());
        self.read(move |connection| search::ranks(connection, &filter, sort, &search_index))
    }

    fn items_of(&self, ids: Vec<ItemId>) -> Pending<'_, Vec<Listed>> {
        self.read(move |connection| search::items_of(connection, &ids))
    }

    fn items_count(&self, filter: Filter) -> Pending<'_, Option<u64>> {
        self.read(move |connection| search::count(connection, &filter))
    }

    fn history(&self, id: ItemId) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |connection| read::history(connection, &id, None, usize::MAX))
    }

    fn history_page(&self, id: ItemId, after: Option<u64>, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |connection| read::history(connection, &id, after, limit))
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
        self.read_on_duty(move |connection| read::leaves(connection, from, count))
    }

    fn due(&self, now: Time, limit: usize) -> Pending<'_, Vec<ItemId>> {
        self.read_on_duty(move |connection| read::due(connection, Time::from_unix_micros(i64::MIN), now, limit))
    }

    fn due_within(&self, after: Time, until: Time, limit: usize) -> Pending<'_, Vec<ItemId>> {
        self.read_on_duty(move |connection| read::due(connection, after, until, limit))
    }

    fn row(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        let head = Arc::clone(&self.head.borrow());
        self.read_on_duty(move |connection| Tree::new(read::Stored(connection), &head).row(level, start, count))
    }

    fn tile(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        let head = Arc::clone(&self.head.borrow());
        self.read(move |connection| Tree::new(read::Stored(connection), &head).row(level, start, count))
    }

    fn inclusions(&self, indices: Vec<u64>, size: u64) -> Pending<'_, Vec<Vec<Hash>>> {
        let (head, upper_roots) = (Arc::clone(&self.head.borrow()), Arc::clone(&self.upper_roots));
        self.readers.run(move |connection, ticket| {
            let mut tree = Tree::new(read::Stored(connection), &head).sharing(&upper_roots);
            let prove = |index| ticket.check().and_then(|()| tree.inclusion(index, size));
            indices.into_iter().map(prove).collect()
        })
    }

    fn keep_definitions(&self, definitions: Vec<StoredDefinition>) -> Pending<'_, Vec<StoredDefinition>> {
        Box::pin(async move {
            let (reply, kept) = oneshot::channel();
            self.hand_in(Job::KeepDefinitions { definitions, reply })?;
            kept.await.map_err(|_| stopped())?
        })
    }

    fn fact(&self, name: &'static str) -> Pending<'_, Option<Vec<u8>>> {
        self.read_on_duty(move |connection| read::fact(connection, name))
    }

    fn facts(&self, beginning: &'static str) -> Pending<'_, Vec<(String, Vec<u8>)>> {
        self.read_on_duty(move |connection| read::facts(connection, beginning))
    }

    fn facts_in(&self, names: Range<String>, from: RangeEnd, limit: usize) -> Pending<'_, Vec<(String, Vec<u8>)>> {
        self.read(move |connection| read::facts_in(connection, &names, from, limit))
    }

    fn head(&self) -> watch_channel::Receiver<Arc<Edge>> {
        self.head.clone()
    }

    fn check(&self) -> Result<()> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_writing = writer.as_ref().is_some_and(|writer| !writer.is_finished());
        drop(writer);
        self.health.check_disk()?;
        if is_writing { self.health.check() } else { Err(stopped()) }
    }

    fn pulse(&self) -> Pulse {
        self.health.pulse()
    }

    fn distrust(&self, cause: &str) {
        self.health.fail(&StoreError::DiskFailed(cause.to_owned()));
    }

    fn stop(&self) -> Result<()> {
        self.end();
        self.health.check_disk()
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the store has stopped".into())
}
