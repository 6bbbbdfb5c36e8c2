//! Watches the threads of the store: a disk that does not respond must not keep callers waiting without an answer.
//!
//! It counts its own ticks and reads no clock: on a busy machine ticks take longer, so no request is given up too
//! early.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use pilot_core::limits::COMMIT_DEADLINE;

use super::desk::Desk;
use super::health::Health;
use super::reader::Line;
use crate::{Result, StoreError};

const TICK: Duration = Duration::from_millis(250);

/// What the last check saw.
struct Watcher {
    desk: Arc<Desk>,
    lines: Vec<Arc<Line>>,
    health: Arc<Health>,
    turn: u64,
    since: Duration,
}

impl Watcher {
    fn look(&mut self, passed: Duration) {
        let turn = self.desk.turn();
        if turn == self.turn && turn % 2 == 1 {
            self.since += passed;
        } else {
            (self.turn, self.since) = (turn, Duration::ZERO);
        }
        if self.since >= COMMIT_DEADLINE {
            self.health.hangs(self.since);
            self.desk.give_up(self.since);
        } else {
            self.health.goes_on();
        }
        for line in &self.lines {
            line.look(passed);
        }
    }
}

/// Runs the thread until dropped.
pub(super) struct Watch {
    /// Dropping it ends the thread.
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start(desk: Arc<Desk>, lines: Vec<Arc<Line>>, health: Arc<Health>) -> Result<Watch> {
        let (end, ended) = mpsc::channel::<()>();
        let mut watcher = Watcher { desk, lines, health, turn: 0, since: Duration::ZERO };
        let run = move || {
            while ended.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                watcher.look(TICK);
            }
        };
        let spawned = std::thread::Builder::new().name("store-watch".into()).spawn(run);
        let thread =
            spawned.map_err(|error| StoreError::Unavailable(format!("cannot start the watching thread: {error}")))?;
        Ok(Watch { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::sqlite::desk::Job;
    use crate::{Subject, Write};

    fn write() -> Write {
        Write::new(Subject::Ledger, None, |_| unreachable!("nobody decides here"))
    }

    #[test]
    fn a_disk_that_does_not_answer_is_noticed_and_so_is_one_that_does_again() {
        let (jobs, queue) = mpsc::sync_channel(8);
        let (desk, health) = (Arc::new(Desk::new(queue)), Arc::new(Health::default()));
        let mut watcher = Watcher {
            desk: Arc::clone(&desk),
            lines: Vec::new(),
            health: Arc::clone(&health),
            turn: 0,
            since: Duration::ZERO,
        };
        let hand_in = || {
            let (reply, answer) = oneshot::channel();
            jobs.send(Job::Settle { write: write(), reply }).unwrap();
            answer
        };
        let mut first = hand_in();
        let waiting = desk.next(8).unwrap().into_iter().map(|job| match job {
            Job::Settle { reply, .. } => reply,
            Job::KeepDefinitions { .. } => unreachable!(),
        });
        desk.hold(waiting.collect());
        let mut behind = hand_in();
        watcher.look(Duration::ZERO);
        watcher.look(COMMIT_DEADLINE.checked_sub(TICK).unwrap());
        assert!(health.check().is_ok() && first.try_recv().is_err(), "it has its time");
        watcher.look(TICK);
        assert!(matches!(first.try_recv().unwrap(), Err(StoreError::Hangs(_))), "it may be recorded yet");
        assert!(matches!(behind.try_recv().unwrap(), Err(StoreError::Unavailable(_))), "it never will be");
        assert!(matches!(health.check(), Err(StoreError::Hangs(_))));
        watcher.look(Duration::from_secs(20));
        let pulse = health.pulse();
        assert_eq!((pulse.hanging, pulse.hangs), (Some(COMMIT_DEADLINE + Duration::from_secs(20)), 1));
        // The disk responds after all, but nobody is waiting any more.
        assert!(desk.release().is_empty());
        desk.done();
        watcher.look(TICK);
        assert!(health.check().is_ok());
        assert_eq!((health.pulse().hanging, health.pulse().hangs), (None, 1));
    }

    #[test]
    fn many_short_turns_are_no_long_one() {
        let (jobs, queue) = mpsc::sync_channel(8);
        let (desk, health) = (Arc::new(Desk::new(queue)), Arc::new(Health::default()));
        let mut watcher = Watcher {
            desk: Arc::clone(&desk),
            lines: Vec::new(),
            health: Arc::clone(&health),
            turn: 0,
            since: Duration::ZERO,
        };
        for _ in 0..8 {
            jobs.send(Job::Settle { write: write(), reply: oneshot::channel().0 }).unwrap();
            let _ = desk.next(8).unwrap();
            watcher.look(COMMIT_DEADLINE.checked_sub(TICK).unwrap());
            desk.done();
        }
        assert!(health.check().is_ok());
        watcher.look(10 * COMMIT_DEADLINE);
        assert!(health.check().is_ok(), "who has nothing to do does not hang");
    }
}
