//! What all tasks of one node share: where the database is, what is known to be durable, and how fresh that is.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pilot_core::time::Time;
use pilot_evidence::merkle::Edge;
use tokio::sync::{Notify, watch};

use tokio::time::Instant;

use super::address::Address;
use super::desk::Desk;
use super::failure::Failure;
use super::session::Server;
use super::team::{STALE, Team};
use crate::archive::{Hear, Now};
use crate::{Duty, Result, StoreError};

/// Sizes that become known within this many milliseconds are remembered as one.
const TOGETHER: u64 = 50;

pub(super) struct Node {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) build: String,
    pub(super) address: Address,
    /// What dates entries.
    pub(super) now: Now,
    /// The time of the last entry when the ledger was opened.
    pub(super) last_at: Time,
    pub(super) desk: Desk,
    /// The tree as of the last clean commit. Nothing beyond it leaves this node.
    pub(super) durable: watch::Sender<Arc<Edge>>,
    /// How many entries the service has applied.
    pub(super) applied: AtomicU64,
    pub(super) began: Instant,
    /// When the last commit began that turned out clean, in milliseconds since `began`.
    fresh_at: AtomicU64,
    /// What the service has not applied yet: ledger sizes, each with when it can have been written at the earliest, in
    /// milliseconds since `began`.
    unapplied: Mutex<VecDeque<(u64, u64)>>,
    /// Whether the service applies what others write.
    applies: AtomicBool,
    /// The server that took the last clean heartbeat. No other one is asked anything.
    server: Mutex<Server>,
    /// Whether the database waits for a second server at every commit.
    pub(super) is_replicated: AtomicBool,
    /// Told the database's time at every heartbeat.
    pub(super) hear: Hear,
    /// The entry that adopted this node's configuration, once the node has joined.
    joined: Mutex<Option<u64>>,
    trouble: Mutex<Option<String>>,
    is_damaged: AtomicBool,
    /// How long writes have been waiting, in milliseconds; 0 if not longer than allowed.
    pub(super) hanging: AtomicU64,
    pub(super) hangs: AtomicU64,
    /// Someone wrote: look now.
    pub(super) hints: Arc<Notify>,
    /// This node wrote: tell the others.
    pub(super) written: Notify,
    pub(super) is_stopping: watch::Sender<bool>,
    /// What this node leaves to others.
    declined: Mutex<BTreeSet<Duty>>,
    /// The nodes and their duties, as of the last clean beat.
    pub(super) team: watch::Sender<Arc<Team>>,
}

impl Node {
    pub(super) fn new(
        (id, name, build): (String, String, String),
        address: Address,
        (now, hear): (Now, Hear),
        (edge, last_at): (Edge, Time),
    ) -> Node {
        Node {
            id,
            name,
            build,
            address,
            now,
            last_at,
            desk: Desk::default(),
            applied: AtomicU64::new(edge.size()),
            durable: watch::Sender::new(Arc::new(edge)),
            began: Instant::now(),
            fresh_at: AtomicU64::new(0),
            unapplied: Mutex::default(),
            applies: AtomicBool::new(false),
            server: Mutex::default(),
            is_replicated: AtomicBool::new(false),
            hear,
            joined: Mutex::default(),
            trouble: Mutex::default(),
            is_damaged: AtomicBool::new(false),
            hanging: AtomicU64::new(0),
            hangs: AtomicU64::new(0),
            hints: Arc::default(),
            written: Notify::new(),
            is_stopping: watch::Sender::new(false),
            declined: Mutex::default(),
            team: watch::Sender::new(Arc::default()),
        }
    }

    pub(super) fn known(&self) -> Arc<Edge> {
        Arc::clone(&self.durable.borrow())
    }

    /// A commit that began at `sent` ended without a warning: everything up to `edge` is durable.
    pub(super) fn is_durable(&self, edge: Edge, sent: Instant) {
        self.durable.send_if_modified(|known| {
            let is_news = edge.size() > known.size();
            if is_news {
                *known = Arc::new(edge);
            }
            is_news
        });
        self.note_lag();
        self.is_fresh(sent);
    }

    /// A group of this node is durable.
    pub(super) fn has_committed(&self, edge: Edge, sent: Instant, adopted: Option<u64>) {
        if let Some(adopted) = adopted {
            self.join(adopted);
        }
        self.is_durable(edge, sent);
        self.written.notify_one();
    }

    pub(super) fn join(&self, adopted: u64) {
        *self.joined.lock().unwrap_or_else(PoisonError::into_inner) = Some(adopted);
    }

    pub(super) fn decline(&self, duty: Duty) {
        self.declined.lock().unwrap_or_else(PoisonError::into_inner).insert(duty);
    }

    /// At once, even if it still has the lease: its other duties are renewed, so the lease alone would not tell it.
    pub(super) fn declines(&self, duty: Duty) -> bool {
        self.declined.lock().unwrap_or_else(PoisonError::into_inner).contains(&duty)
    }

    /// The duties that this node would take.
    pub(super) fn wanted(&self) -> Vec<&'static str> {
        Duty::ALL.iter().filter(|duty| !self.declines(**duty)).map(|duty| duty.as_str()).collect()
    }

    /// Fails if another configuration than this node's is in force.
    pub(super) fn check_joined(&self, epoch: u64) -> std::result::Result<(), Failure> {
        let joined = *self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if joined.is_none_or(|joined| joined == epoch) {
            return Ok(());
        }
        Err(Failure::Superseded(format!(
            "another configuration was adopted with entry {epoch}; give this node the same files and restart it"
        )))
    }

    pub(super) fn is_fresh(&self, sent: Instant) {
        let millis = u64::try_from(sent.saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX);
        self.fresh_at.fetch_max(millis, Ordering::AcqRel);
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// Remembers since when there may be something to apply. Not since it is known: a node that was away for long has to
    /// apply what it missed before it lets anyone in. What was unknown when the last clean commit began was written
    /// after that.
    fn note_lag(&self) {
        let (size, since) = (self.durable.borrow().size(), self.fresh_at.load(Ordering::Acquire));
        if !self.applies.load(Ordering::Acquire) || self.applied.load(Ordering::Acquire) >= size {
            return;
        }
        let mut unapplied = self.unapplied.lock().unwrap_or_else(PoisonError::into_inner);
        match unapplied.back_mut() {
            Some((known, _)) if *known >= size => {}
            // Together with what was written a moment before: it counts from then.
            Some((known, before)) if since.saturating_sub(*before) < TOGETHER => *known = size,
            _ => unapplied.push_back((size, since)),
        }
    }

    pub(super) fn has_applied(&self, entries: u64) {
        self.applied.fetch_max(entries, Ordering::AcqRel);
        self.applies.store(true, Ordering::Release);
        let mut unapplied = self.unapplied.lock().unwrap_or_else(PoisonError::into_inner);
        while unapplied.front().is_some_and(|(size, _)| *size <= entries) {
            unapplied.pop_front();
        }
    }

    /// Since when there may be something that the service has not applied.
    fn behind_since(&self) -> Option<u64> {
        self.unapplied.lock().unwrap_or_else(PoisonError::into_inner).front().map(|(_, since)| *since)
    }

    /// Whether what this node knows, and has applied, is recent enough to let anyone in.
    pub(super) fn check_current(&self) -> Result<()> {
        self.check_trust()?;
        let age = self.age();
        if age > STALE {
            let seconds = age.as_secs();
            return Err(StoreError::Unavailable(format!("this node has not heard from the database for {seconds} s")));
        }
        let behind = self.behind_since().map(|since| Duration::from_millis(self.millis().saturating_sub(since)));
        if let Some(behind) = behind.filter(|behind| *behind > STALE) {
            let seconds = behind.as_secs();
            return Err(StoreError::Unavailable(format!(
                "this node has not applied what others wrote for {seconds} s"
            )));
        }
        Ok(())
    }

    pub(super) fn is_served_by(&self, server: &Server) {
        let mut known = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != *server {
            known.clone_from(server);
        }
    }

    /// Whether a connection is to the server that takes commits now.
    pub(super) fn is_at(&self, server: &Server) -> bool {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) == *server
    }

    /// How long ago this node last knew the state of the ledger.
    pub(super) fn age(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.fresh_at.load(Ordering::Acquire)))
    }

    pub(super) fn fail(&self, error: &StoreError) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_damaged.fetch_or(matches!(error, StoreError::Damaged(_)), Ordering::AcqRel);
        if trouble.is_none() {
            tracing::error!(cause = %error, "writing stops until the service is restarted");
            *trouble = Some(format!("writing has stopped until the service is restarted: {error}"));
        }
    }

    /// Fails once nothing that the database says can be trusted any more.
    pub(super) fn check_trust(&self) -> Result<()> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &*trouble {
            None => Ok(()),
            Some(reason) if self.is_damaged.load(Ordering::Acquire) => Err(StoreError::Damaged(reason.clone())),
            Some(reason) => Err(StoreError::Unavailable(reason.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use pilot_evidence::merkle::Hash;

    use super::*;
    use crate::postgres::address::Access;

    fn edge(size: u8) -> Edge {
        let mut edge = Edge::default();
        (0..size).for_each(|number| edge.push(Hash([number; 32]), &mut Vec::new()));
        edge
    }

    fn node() -> Node {
        let access = Access { url: "postgres://u@localhost/d".into(), ..Access::default() };
        let names = ("id".to_owned(), "name".to_owned(), "build".to_owned());
        let clock: (Now, Hear) = (Arc::new(|| Time::EPOCH), Arc::new(|_| {}));
        Node::new(names, Address::parse(&access).unwrap(), clock, (edge(1), Time::EPOCH))
    }

    #[test]
    fn a_node_that_was_away_applies_what_it_missed_before_it_lets_anyone_in() {
        let (mut node, now) = (node(), Instant::now());
        node.began = now.checked_sub(Duration::from_secs(30)).unwrap();
        node.has_applied(1);
        node.is_durable(edge(1), now.checked_sub(Duration::from_secs(20)).unwrap());
        assert!(node.check_current().is_err(), "it has not heard of the ledger for 20 s");
        node.is_durable(edge(2), now);
        assert!(node.check_current().is_err(), "the second entry may be 20 s old");
        node.has_applied(2);
        assert!(node.check_current().is_ok());
        // What was written since the last beat is at most as old as that.
        node.is_durable(edge(3), Instant::now());
        assert!(node.check_current().is_ok());
    }
}
