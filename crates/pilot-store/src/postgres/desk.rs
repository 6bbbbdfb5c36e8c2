//! Writes that wait for their turn, and those who wait for an answer. Nobody waits longer than the deadline: a caller who is
//! told too late can find the outcome by the idempotency key.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pilot_core::limits::{COMMIT_DEADLINE, WRITES_WAITING_MAX};
use tokio::sync::{Notify, oneshot};

use tokio::time::Instant;

use crate::{Outcome, Result, StoreError, Write};

/// Whoever has not come again by then will not.
const BACK_WITHIN: Duration = Duration::from_millis(20);

pub(super) type Reply = oneshot::Sender<Result<Outcome>>;

/// A write with the number under which its caller waits.
pub(super) struct Queued {
    ticket: u64,
    pub(super) write: Write,
}

struct Waiting {
    since: Instant,
    reply: Reply,
    /// Whether it may have been recorded already.
    is_sent: bool,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Queued>,
    waiting: HashMap<u64, Waiting>,
    next_ticket: u64,
    is_closed: bool,
    /// The number of tickets by which most of those that were answered last will have come again.
    expected: u64,
    answered_at: Option<Instant>,
}

#[derive(Default)]
pub(super) struct Desk {
    inner: Mutex<Inner>,
    news: Notify,
    /// Wakes up a writer that waits for more.
    arrivals: Notify,
}

impl Desk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hand_in(&self, write: Write, reply: Reply) -> Result<()> {
        let mut inner = self.inner();
        if inner.is_closed {
            return Err(stopped());
        }
        if inner.queue.len() >= WRITES_WAITING_MAX {
            return Err(StoreError::Unavailable("too many writes are waiting".into()));
        }
        let ticket = inner.next_ticket;
        inner.next_ticket += 1;
        inner.waiting.insert(ticket, Waiting { since: Instant::now(), reply, is_sent: false });
        inner.queue.push_back(Queued { ticket, write });
        drop(inner);
        self.news.notify_one();
        self.arrivals.notify_waiters();
        Ok(())
    }

    /// So many were answered together. Those who write one thing after the other will be back in a moment.
    pub(super) fn expect_back(&self, answered: usize) {
        let mut inner = self.inner();
        inner.expected = inner.next_ticket + answered as u64 * 3 / 4;
        inner.answered_at = Some(Instant::now());
    }

    /// What else has queued up, after waiting a moment for those who were answered last: one commit for all of them is
    /// better than two for half of them each.
    pub(super) async fn take_more(&self, max: usize, moment: Duration) -> Vec<Queued> {
        let everyone = async {
            loop {
                let arrival = self.arrivals.notified();
                {
                    let inner = self.inner();
                    let is_long_ago = inner.answered_at.is_none_or(|at| at.elapsed() >= BACK_WITHIN);
                    if is_long_ago || inner.next_ticket >= inner.expected || inner.queue.len() >= max || inner.is_closed
                    {
                        return;
                    }
                }
                arrival.await;
            }
        };
        let _ = tokio::time::timeout(moment, everyone).await;
        self.take(max)
    }

    /// Waits for something to do; false when nobody can hand in anything more.
    pub(super) async fn has_work(&self) -> bool {
        loop {
            let news = self.news.notified();
            {
                let inner = self.inner();
                if !inner.queue.is_empty() {
                    return true;
                }
                if inner.is_closed {
                    return false;
                }
            }
            news.await;
        }
    }

    /// What has queued up.
    pub(super) fn take(&self, max: usize) -> Vec<Queued> {
        let mut inner = self.inner();
        let count = inner.queue.len().min(max);
        let group = inner.queue.drain(..count).collect();
        if !inner.queue.is_empty() {
            self.news.notify_one();
        }
        group
    }

    /// Those that did not fit into their group, to the front of the queue in their order.
    pub(super) fn put_back(&self, rest: Vec<Queued>) {
        let mut inner = self.inner();
        for queued in rest.into_iter().rev() {
            inner.queue.push_front(queued);
        }
        drop(inner);
        self.news.notify_one();
    }

    /// Only those that someone still waits for: the others were told that nothing was recorded.
    pub(super) fn still_wanted(&self, group: Vec<Queued>) -> Vec<Queued> {
        let inner = self.inner();
        group.into_iter().filter(|queued| inner.waiting.contains_key(&queued.ticket)).collect()
    }

    /// From here on the group may be recorded at any moment. In one step with leaving out those that nobody waits for any
    /// more: a caller who was told that nothing was written must never find it written.
    pub(super) fn claim(&self, group: Vec<Queued>) -> Vec<Queued> {
        let mut inner = self.inner();
        let mut claim = |queued: &Queued| match inner.waiting.get_mut(&queued.ticket) {
            Some(waiting) => {
                waiting.is_sent = true;
                true
            }
            None => false,
        };
        group.into_iter().filter(|queued| claim(queued)).collect()
    }

    /// It is certain that they were not recorded.
    pub(super) fn unclaim(&self, group: &[Queued]) {
        let mut inner = self.inner();
        for queued in group {
            if let Some(waiting) = inner.waiting.get_mut(&queued.ticket) {
                waiting.is_sent = false;
            }
        }
    }

    pub(super) fn is_waiting(&self, queued: &Queued) -> bool {
        self.inner().waiting.contains_key(&queued.ticket)
    }

    pub(super) fn answer(&self, queued: &Queued, outcome: Result<Outcome>) {
        let waiting = self.inner().waiting.remove(&queued.ticket);
        if let Some(waiting) = waiting {
            // A caller who went away can find the outcome by its idempotency key.
            let _ = waiting.reply.send(outcome);
        }
    }

    /// Tells everyone who has waited too long, and returns how long the first has been waiting.
    pub(super) fn tell_overdue(&self, now: Instant) -> Option<Duration> {
        let mut inner = self.inner();
        let longest = inner.waiting.values().map(|waiting| now.saturating_duration_since(waiting.since)).max();
        if longest.is_none_or(|longest| longest < COMMIT_DEADLINE) {
            return None;
        }
        let is_overdue = |waiting: &Waiting| now.saturating_duration_since(waiting.since) >= COMMIT_DEADLINE;
        let overdue: Vec<_> = inner.waiting.extract_if(|_, waiting| is_overdue(waiting)).collect();
        let Inner { queue, waiting, .. } = &mut *inner;
        queue.retain(|queued| waiting.contains_key(&queued.ticket));
        drop(inner);
        let seconds = COMMIT_DEADLINE.as_secs();
        for (_, waiting) in overdue {
            let _ = waiting.reply.send(Err(if waiting.is_sent {
                StoreError::Hangs(format!("the database has not confirmed this write for {seconds} s"))
            } else {
                StoreError::Unavailable(format!(
                    "the database has not taken this write for {seconds} s; it was not written"
                ))
            }));
        }
        longest
    }

    pub(super) fn close(&self) {
        self.inner().is_closed = true;
        self.news.notify_one();
    }

    /// Nothing more is written: everyone who waits is told why.
    pub(super) fn give_up(&self, why: impl Fn() -> StoreError) {
        let mut inner = self.inner();
        inner.queue.clear();
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        for (_, waiting) in waiting {
            let _ = waiting.reply.send(Err(why()));
        }
    }
}

pub(super) fn stopped() -> StoreError {
    StoreError::Unavailable("the store has stopped".into())
}
