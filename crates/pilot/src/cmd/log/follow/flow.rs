//! Entries as they come, handed on in batches. Nothing is kept in memory beyond one batch and what the feed holds ready:
//! the ledger is the buffer, and after a failure entries are read from it again.

use std::future::pending;
use std::time::Duration;

use pilot_core::leak::LeakGuard;
use pilot_evidence::merkle::Hash;
use pilot_wire::clock::Stopwatch;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::continuity::{Broken, parse};
use super::cursor::{Cursor, Reached, State};
use super::destination::Destination;
use super::figures::Figures;
use crate::client::feed::{Event, Feed};
use crate::client::{Ask, Client};
use crate::exit::Failure;

const BATCH_ENTRIES_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// How often the ledger is asked for its size, which is what the lag is measured by.
const LOOK_EVERY: Duration = Duration::from_secs(15);
const LOOK_PATIENCE: Duration = Duration::from_secs(10);

pub(super) enum Ended {
    ByFeed,
    BySignal,
}

pub(super) struct Flow<'f, 'a> {
    pub(super) client: &'f Client,
    pub(super) state: &'f State,
    pub(super) destination: &'f mut Destination,
    pub(super) stop: &'f mut Stop,
    pub(super) figures: &'f mut Figures<'a>,
    pub(super) cursor: &'f mut Cursor,
}

impl Flow<'_, '_> {
    /// From the cursor on, until the feed ends. Everything that was sent has arrived then.
    pub(super) async fn run(mut self, has_begun: &mut bool) -> Result<Ended, Broken> {
        self.destination.prepare().await?;
        let after = self.cursor.reached.next.checked_sub(1);
        let mut entries = Entries::of(self.client.feed(after).await?);
        if !*has_begun {
            self.figures.check()?;
        }
        self.figures.ledger_has(self.cursor.seen.size);
        *has_begun = true;
        let mut sent = self.cursor.reached;
        let mut looked = Stopwatch::start();
        loop {
            let wait = self.due_in(sent).unwrap_or(LOOK_EVERY).min(LOOK_EVERY);
            let ended = tokio::select! {
                () = self.stop.requested() => Some(Ended::BySignal),
                entry = entries.receiver.recv() => match entry {
                    None => Some(Ended::ByFeed),
                    Some(entry) => {
                        let batch = entries.batch(entry);
                        sent = self.send(batch, sent).await?;
                        None
                    }
                },
                () = tokio::time::sleep(wait) => None,
            };
            if ended.is_some() || self.due_in(sent).is_some_and(|wait| wait.is_zero()) {
                self.settle(sent).await?;
            }
            if let Some(ended) = ended {
                return Ok(ended);
            }
            if self.figures.is_wanted() && looked.elapsed() >= LOOK_EVERY {
                looked = Stopwatch::start();
                self.look().await;
            }
        }
    }

    fn due_in(&self, sent: Reached) -> Option<Duration> {
        self.destination.due_in(sent != self.cursor.reached)
    }

    async fn send(&mut self, mut batch: Vec<Event>, mut sent: Reached) -> Result<Reached, Broken> {
        // The service lets no token into an entry. This is the last chance to notice if one did.
        let guard = LeakGuard::for_generated_tokens();
        for entry in &mut batch {
            if entry.index != sent.next {
                let (expected, came) = (sent.next, entry.index);
                let why = "does the credential's role still see every entry?";
                let what = format!("entry {came} came in place of entry {expected}; {why}");
                return Err(Broken::ForGood(Failure::Refused(what)));
            }
            sent = Reached { next: entry.index + 1, last: Some(Hash::of_leaf(entry.data.as_bytes())) };
            if guard.is_in(&entry.data) {
                entry.data = guard.redact(&entry.data).into_owned();
            }
        }
        match self.destination.send(&batch).await {
            Ok(()) => Ok(sent),
            Err(failure) if self.destination.can_recover() => Err(Broken::ForNow(failure)),
            Err(failure) => Err(Broken::ForGood(failure)),
        }
    }

    /// The cursor moves only now: before, an entry may not have arrived.
    async fn settle(&mut self, sent: Reached) -> Result<(), Broken> {
        self.destination.settle().await?;
        if sent != self.cursor.reached {
            self.cursor.reached = sent;
            self.state.save(self.cursor)?;
            self.figures.delivered(sent.next);
        }
        Ok(())
    }

    /// If the service cannot say how long the ledger is, the feed ends too, and that is told.
    async fn look(&mut self) {
        let asked = self.client.ask(Ask::get("/v1/log/checkpoint").within(LOOK_PATIENCE)).await;
        if let Ok(checkpoint) = asked.and_then(|reply| reply.text()).and_then(|text| parse(&text)) {
            self.figures.ledger_has(checkpoint.size);
        }
    }
}

/// The feed, read ahead by at most one batch.
struct Entries {
    receiver: mpsc::Receiver<Event>,
    reading: JoinHandle<()>,
}

impl Entries {
    fn of(mut feed: Feed) -> Entries {
        let (sender, receiver) = mpsc::channel(BATCH_ENTRIES_MAX);
        let reading = tokio::spawn(async move {
            while let Some(entry) = feed.next().await {
                if sender.send(entry).await.is_err() {
                    return;
                }
            }
        });
        Entries { receiver, reading }
    }

    /// This entry and those that are there already.
    fn batch(&mut self, first: Event) -> Vec<Event> {
        let mut bytes = first.data.len();
        let mut batch = vec![first];
        while batch.len() < BATCH_ENTRIES_MAX && bytes < BATCH_BYTES_MAX {
            let Ok(entry) = self.receiver.try_recv() else { break };
            bytes += entry.data.len();
            batch.push(entry);
        }
        batch
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// SIGTERM and Ctrl-C. Only a syslog server has something left to be done then; the others are complete at any moment,
/// and a pipe whose reader sleeps could not be left otherwise.
pub(super) struct Stop(Option<[Signal; 2]>);

impl Stop {
    pub(super) fn new(destination: &Destination) -> Result<Stop, Failure> {
        let failed = |error| Failure::environment("signals", error);
        let listen = |kind| signal(kind).map_err(failed);
        match destination {
            Destination::File(_) | Destination::Stdout => Ok(Stop(None)),
            Destination::Syslog(_) => {
                Ok(Stop(Some([listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?])))
            }
        }
    }

    async fn requested(&mut self) {
        match &mut self.0 {
            None => pending().await,
            Some([terminate, interrupt]) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
        }
    }

    /// Whether it was requested within this time.
    pub(super) async fn within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.requested()).await.is_ok()
    }
}
