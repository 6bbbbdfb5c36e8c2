//! The store for several nodes: one PostgreSQL database that all of them write.
//!
//! Every write locks the row at the end of the ledger, so all nodes share one order. A node knows what is durable by
//! its own clean commits, of which a heartbeat makes at least four a second; nothing beyond that leaves the node.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use pilot_core::item::{Item, ItemId};
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash};
use tokio::sync::{oneshot, watch};

use tokio::time::Instant;

use crate::archive::{Hear, Now};
use crate::tree::UpperRoots;
use crate::{
    Duty, Filter, ItemPage, Listed, NodeState, Outcome, Pending, Pulse, RangeEnd, RankPage, Result, ShownItem, Sort,
    Store, StoreError, StoredDefinition, StoredEntry, Write,
};

mod address;
mod archive;
mod desk;
mod erase;
mod examine;
mod failure;
mod filling;
mod flight;
mod follower;
mod group;
mod hold;
mod native;
mod node;
mod opening;
mod pipeline;
mod read;
mod reader;
mod reserved;
mod search;
mod session;
mod snapshot;
mod staged;
mod team;
mod tender;
mod tiles;
mod tls;
mod writer;

use address::Address;
use follower::Follower;
use node::Node;
use reader::{Asking, Readers};
use session::Session;
use writer::Writer;

pub use address::Access;
pub use archive::LedgerDatabase;
pub(crate) use filling::Filling;
pub(crate) use snapshot::Snapshot;
pub use snapshot::reach;

/// For callers, and separate ones for the service's own duties.
const READERS: usize = 4;
const DUTY_READERS: usize = 1;

/// What a node tells the others about itself.
#[derive(Debug, Clone)]
pub struct Identity {
    pub name: String,
    pub build: String,
}

pub struct Postgres {
    node: Arc<Node>,
    readers: Readers,
    duties: Readers,
    head: watch::Receiver<Arc<Edge>>,
    upper_roots: Arc<UpperRoots>,
    writing: Mutex<Option<JoinHandle<()>>>,
    /// Dropped to end the thread that reads.
    reading: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end();
    }
}

impl Postgres {
    /// Opens the ledger, or creates its tables in an empty database. `listener` is told the
    /// database's time at every heartbeat.
    pub fn open(access: &Access, identity: Identity, now: Now, listener: Hear) -> Result<Postgres> {
        let address = Address::parse(access)?;
        let (opened, has_opened) = mpsc::channel();
        let write = move || write_until_closed(address, identity, (now, listener), &opened);
        let writing = spawn("store-writer", write)?;
        let node = has_opened.recv().map_err(|_| desk::stopped())??;
        let (readers, duties, reading) = start_reading(Arc::clone(&node))?;
        let head = node.durable.subscribe();
        let (writing, reading) = (Mutex::new(Some(writing)), Mutex::new(Some(reading)));
        Ok(Postgres { node, readers, duties, head, upper_roots: Arc::default(), writing, reading })
    }

    /// The time of the last entry when the ledger was opened; 1970 if there was none.
    pub fn last_at(&self) -> Time {
        self.node.last_at
    }

    fn end(&self) {
        self.node.desk.close();
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The store's last owner may be a write in the queue; the writing thread cannot join itself.
        let other = |thread: &JoinHandle<()>| thread.thread().id() != std::thread::current().id();
        if let Some(writing) = writing.filter(other) {
            let _ = writing.join();
        }
        let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, reading)) = reading {
            drop(stop);
            if other(&reading) {
                let _ = reading.join();
            }
        }
    }

    fn durable_size(&self) -> u64 {
        self.head.borrow().size()
    }

    /// For a caller.
    fn read<T, F>(&self, ask: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: for<'s> FnOnce(&'s Session) -> Asking<'s, T> + Send + 'static,
    {
        self.readers.run(ask)
    }

    /// For the service itself.
    fn read_on_duty<T, F>(&self, ask: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: for<'s> FnOnce(&'s Session) -> Asking<'s, T> + Send + 'static,
    {
        self.duties.run(ask)
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn(run);
    spawned.map_err(|error| StoreError::Unavailable(format!("cannot start the thread {name}: {error}")))
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| StoreError::Unavailable(format!("cannot start the store's runtime: {error}")))
}

/// The thread that writes: opens the ledger, says so, and works until the desk is closed.
fn write_until_closed(address: Address, identity: Identity, clocks: Clocks, opened: &mpsc::Sender<Result<Arc<Node>>>) {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let (node, follower) = match runtime.block_on(open_ledger(address, identity, clocks)) {
        Ok(started) => started,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let _ = opened.send(Ok(Arc::clone(&node)));
    let work = runtime.block_on(async {
        let done = catch_unwind(AssertUnwindSafe(|| work(Arc::clone(&node), follower)));
        match done {
            Ok(work) => tokio::spawn(work).await.is_ok(),
            Err(_) => false,
        }
    });
    if !work {
        // It is unknown what was being written, so this node writes nothing more.
        let panicked = || StoreError::Damaged("the writing thread has panicked".into());
        node.fail(&panicked());
        node.desk.close();
        node.desk.give_up(panicked);
    }
}

async fn open_ledger(address: Address, identity: Identity, clocks: Clocks) -> Result<(Arc<Node>, Follower)> {
    let place = address.place();
    let unreachable = |error: tokio_postgres::Error| {
        StoreError::Unavailable(format!("{place}: cannot be reached: {}", failure::describe(&error)))
    };
    let session = Session::open(&address).await.map_err(unreachable)?;
    opening::check_server(&session).await?;
    opening::ensure_schema(&session).await?;
    opening::check_room(&session).await?;
    let (edge, last_at) = opening::load(&session).await?;
    // Not a secret: it only has to differ from that of every other node.
    let id = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
    let node = Arc::new(Node::new((id, identity.name, identity.build), address, clocks, (edge, last_at)));
    let mut follower = Follower::new(Arc::clone(&node));
    follower.beat().await.map_err(|failure| match failure {
        failure::Failure::Damaged(cause) => StoreError::Damaged(cause),
        other => StoreError::Unavailable(other.into_cause()),
    })?;
    Ok((node, follower))
}

/// Until nobody can hand in a write any more, and all are answered.
async fn work(node: Arc<Node>, follower: Follower) {
    let writing = tokio::spawn(Writer::new(Arc::clone(&node)).run());
    let following = tokio::spawn(follower.run());
    let tending = tokio::spawn(tender::run(Arc::clone(&node)));
    let watching = tokio::spawn(tender::watch(Arc::clone(&node)));
    if writing.await.is_err() {
        let panicked = || StoreError::Damaged("the writing thread has panicked".into());
        node.fail(&panicked());
        node.desk.close();
        node.desk.give_up(panicked);
    }
    node.is_stopping.send_replace(true);
    let _ = following.await;
    tending.abort();
    watching.abort();
}

/// What dates entries, and who is told the database's time.
type Clocks = (Now, Hear);

type Reading = (oneshot::Sender<()>, JoinHandle<()>);

fn start_reading(node: Arc<Node>) -> Result<(Readers, Readers, Reading)> {
    let (stop, stopped) = oneshot::channel::<()>();
    let (started, has_started) = mpsc::channel();
    let read = move || {
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => return drop(started.send(Err(error))),
        };
        runtime.block_on(async {
            let readers = (Readers::start(&node, READERS), Readers::start(&node, DUTY_READERS));
            let _ = started.send(Ok(readers));
            let _ = stopped.await;
        });
    };
    let thread = spawn("store-reader", read)?;
    let (readers, duties) = has_started.recv().map_err(|_| desk::stopped())??;
    Ok((readers, duties, (stop, thread)))
}

impl Store for Postgres {
    fn settle(&self, write: Write) -> Pending<'_, Outcome> {
        let (reply, answer) = oneshot::channel();
        match self.node.check_trust().and_then(|()| self.node.desk.hand_in(write, reply)) {
            Ok(()) => Box::pin(async { answer.await.map_err(|_| desk::stopped())? }),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn item(&self, id: ItemId) -> Pending<'_, Option<Arc<Item>>> {
        self.read(move |session| Box::pin(async move { Ok(read::item(session, &id).await?.map(Arc::new)) }))
    }

    fn shown_item(&self, id: ItemId, fact: String) -> Pending<'_, Option<ShownItem>> {
        self.read(move |session| Box::pin(async move { read::shown_item(session, &id, &fact).await }))
    }

    fn newest_entries(&self, id: ItemId, before: Option<u64>, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |session| Box::pin(async move { read::newest_entries(session, &id, before, limit).await }))
    }

    fn items_page(&self, filter: Filter, limit: usize) -> Pending<'_, ItemPage> {
        self.read(move |session| Box::pin(async move { search::items(session, &filter, limit).await }))
    }

    fn ranks_page(&self, filter: Filter, sort: Sort) -> Pending<'_, RankPage> {
        self.read(move |session| Box::pin(async move { search::ranks(session, &filter, sort).await }))
    }

    fn items_of(&self, ids: Vec<ItemId>) -> Pending<'_, Vec<Listed>> {
        self.read(move |session| Box::pin(async move { search::items_of(session, &ids).await }))
    }

    fn items_count(&self, filter: Filter) -> Pending<'_, Option<u64>> {
        self.read(move |session| Box::pin(async move { search::count(session, &filter).await }))
    }

    fn history(&self, id: ItemId) -> Pending<'_, Vec<StoredEntry>> {
        self.history_page(id, None, usize::MAX)
    }

    fn history_page(&self, id: ItemId, after: Option<u64>, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |session| Box::pin(async move { read::history(session, &id, after, limit).await }))
    }

    fn entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        let end = self.durable_size();
        self.read(move |session| Box::pin(read::entries(session, from, limit, end)))
    }

    fn whole_entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        let end = self.durable_size();
        self.read(move |session| Box::pin(read::whole_entries(session, from, limit, end)))
    }

    fn whole_entries_at(&self, indices: Vec<u64>) -> Pending<'_, Vec<StoredEntry>> {
        self.read(move |session| Box::pin(async move { read::whole_entries_at(session, &indices).await }))
    }

    fn places(&self, id: ItemId) -> Pending<'_, Vec<u64>> {
        self.read(move |session| Box::pin(async move { read::places(session, &id).await }))
    }

    fn earlier_places(&self, first: u64, entries: Range<u64>) -> Pending<'_, Vec<u64>> {
        self.read(move |session| Box::pin(async move { read::earlier_places(session, first, &entries).await }))
    }

    fn leaves(&self, from: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        self.read_on_duty(move |session| Box::pin(read::leaves(session, from, count)))
    }

    fn due(&self, now: Time, limit: usize) -> Pending<'_, Vec<ItemId>> {
        self.read_on_duty(move |session| Box::pin(read::due(session, now, limit)))
    }

    fn due_within(&self, after: Time, until: Time, limit: usize) -> Pending<'_, Vec<ItemId>> {
        self.read_on_duty(move |session| Box::pin(read::due_within(session, after, until, limit)))
    }

    fn row(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        let head = self.node.known();
        self.read_on_duty(move |session| {
            Box::pin(async move { tiles::with_tree(session, &head, |mut tree| tree.row(level, start, count)).await })
        })
    }

    fn tile(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        let head = self.node.known();
        self.read(move |session| {
            Box::pin(async move { tiles::with_tree(session, &head, |mut tree| tree.row(level, start, count)).await })
        })
    }

    fn inclusions(&self, indices: Vec<u64>, size: u64) -> Pending<'_, Vec<Vec<Hash>>> {
        let (head, upper) = (self.node.known(), Arc::clone(&self.upper_roots));
        self.read(move |session| {
            Box::pin(async move { tiles::inclusions(session, (&head, &upper), &indices, size).await })
        })
    }

    fn keep_definitions(&self, definitions: Vec<StoredDefinition>) -> Pending<'_, Vec<StoredDefinition>> {
        self.read_on_duty(move |session| {
            Box::pin(async move {
                let sql = "INSERT INTO definition (digest, text) SELECT * FROM unnest($1::text[], $2::text[]) \
                           ON CONFLICT DO NOTHING";
                let (digests, texts): (Vec<_>, Vec<_>) =
                    definitions.iter().map(|definition| (&*definition.digest, &*definition.text)).unzip();
                let failed = |error| failure::of_query(&error);
                session.execute(sql, &[&digests, &texts]).await.map_err(failed)?;
                if session.take_warning() {
                    return Err(StoreError::Unavailable("PostgreSQL warned at the commit".into()));
                }
                read::definitions(session).await
            })
        })
    }

    fn fact(&self, name: &'static str) -> Pending<'_, Option<Vec<u8>>> {
        self.read_on_duty(move |session| Box::pin(read::fact(session, name)))
    }

    fn facts(&self, beginning: &'static str) -> Pending<'_, Vec<(String, Vec<u8>)>> {
        self.read_on_duty(move |session| Box::pin(read::facts(session, beginning)))
    }

    fn facts_in(&self, names: Range<String>, from: RangeEnd, limit: usize) -> Pending<'_, Vec<(String, Vec<u8>)>> {
        self.read(move |session| Box::pin(async move { read::facts_in(session, &names, from, limit).await }))
    }

    fn head(&self) -> watch::Receiver<Arc<Edge>> {
        self.head.clone()
    }

    fn check(&self) -> Result<()> {
        self.node.check_trust()?;
        match self.node.hanging.load(Ordering::Acquire) {
            0 => {}
            millis => return Err(StoreError::Hangs(format!("writes have been waiting for {} s", millis / 1_000))),
        }
        self.check_current()
    }

    fn pulse(&self) -> Pulse {
        let hanging = Some(self.node.hanging.load(Ordering::Acquire)).filter(|millis| *millis > 0);
        let hangs = self.node.hangs.load(Ordering::Relaxed);
        let is_replicated = Some(self.node.is_replicated.load(Ordering::Relaxed));
        Pulse { is_replicated, hanging: hanging.map(Duration::from_millis), hangs }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_alone(&self) -> bool {
        self.node.team.borrow().is_only_alive(&self.node.id)
    }

    fn service_entries(&self, from: u64, until: u64) -> Pending<'_, Vec<StoredEntry>> {
        let until = until.min(self.durable_size());
        self.read_on_duty(move |session| Box::pin(read::service_entries(session, from, until)))
    }

    fn check_current(&self) -> Result<()> {
        self.node.check_current()
    }

    fn join(&self, adopted: u64) {
        self.node.join(adopted);
    }

    fn decline(&self, duty: Duty) {
        self.node.decline(duty);
    }

    fn holds(&self, duty: Duty) -> bool {
        !self.node.declines(duty) && self.node.team.borrow().fence(duty, &self.node.id).is_some()
    }

    fn nodes(&self) -> Vec<NodeState> {
        self.node.team.borrow().states(&self.node.id, self.durable_size())
    }

    fn has_applied(&self, entries: u64) {
        self.node.has_applied(entries);
        if !self.node.team.borrow().is_alone(&self.node.id) {
            // The others may be waiting for it.
            self.node.hints.notify_one();
        }
    }

    fn applied_everywhere(&self, entries: u64) -> Pending<'_, ()> {
        Box::pin(async move {
            let until = Instant::now() + team::STALE;
            let mut team = self.node.team.subscribe();
            loop {
                let is_done = {
                    let team = team.borrow_and_update();
                    team.applied().is_some_and(|applied| applied >= entries)
                };
                if is_done {
                    return Ok(());
                }
                self.node.hints.notify_one();
                // Past this, every node that has not applied it has stopped answering.
                let Ok(Ok(())) = tokio::time::timeout_at(until, team.changed()).await else { return Ok(()) };
            }
        })
    }

    fn distrust(&self, cause: &str) {
        tracing::warn!(cause, "a file of this node cannot be written; the database is not concerned");
    }

    fn stop(&self) -> Result<()> {
        self.end();
        self.node.check_trust()
    }
}
