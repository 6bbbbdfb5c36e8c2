//! The writing thread's queue and current group, shared so that others can answer when the thread is stuck.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::{Outcome, Result, StoreError, StoredDefinition, Write};

pub(super) enum Job {
    Settle { write: Write, reply: oneshot::Sender<Result<Outcome>> },
    KeepDefinitions { definitions: Vec<StoredDefinition>, reply: oneshot::Sender<Result<Vec<StoredDefinition>>> },
}

pub(super) type Waiting = oneshot::Sender<Result<Outcome>>;

/// The queue and the current group of the writing thread.
pub(super) struct Desk {
    queue: Mutex<mpsc::Receiver<Job>>,
    /// Those waiting for the current group, in the order of its writes.
    in_hand: Mutex<Vec<Waiting>>,
    /// Odd while the thread works; incremented at every change.
    turn: AtomicU64,
}

impl Desk {
    pub(super) fn new(queue: mpsc::Receiver<Job>) -> Desk {
        Desk { queue: Mutex::new(queue), in_hand: Mutex::default(), turn: AtomicU64::new(0) }
    }

    /// Waits until something is queued and takes it; `None` when nobody can queue anything more.
    pub(super) fn next(&self, max: usize) -> Option<Vec<Job>> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let first = queue.recv().ok()?;
        let mut jobs = vec![first];
        jobs.extend(queue.try_iter().take(max - 1));
        self.turn.fetch_add(1, Ordering::AcqRel);
        Some(jobs)
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    pub(super) fn done(&self) {
        self.turn.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn hold(&self, waiting: Vec<Waiting>) {
        *self.in_hand.lock().unwrap_or_else(PoisonError::into_inner) = waiting;
    }

    /// Takes everyone who is still waiting; a second call finds nobody.
    pub(super) fn release(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.in_hand.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers everyone in place of the writing thread.
    pub(super) fn give_up(&self, since: Duration) {
        for waiting in self.release() {
            let _ =
                waiting.send(Err(StoreError::Hangs(format!("this write has been waiting for {} s", since.as_secs()))));
        }
        // The thread holds the queue only while it waits for work.
        let Ok(queue) = self.queue.try_lock() else { return };
        for job in queue.try_iter() {
            let unwritten = || StoreError::Unavailable("the disk is not responding; this was not written".into());
            match job {
                Job::Settle { reply, .. } => drop(reply.send(Err(unwritten()))),
                Job::KeepDefinitions { reply, .. } => drop(reply.send(Err(unwritten()))),
            }
        }
    }
}
