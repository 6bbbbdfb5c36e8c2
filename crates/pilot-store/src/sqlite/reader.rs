//! Reading threads with a connection each, so that reads never wait for writes. Queries wait in a queue of bounded
//! length; a query nobody is waiting for is dropped, and one that takes too long is interrupted.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pilot_core::limits::{COMMIT_DEADLINE, QUESTION_DEADLINE};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connection::open_reader;
use super::failure::too_long;
use super::health::Health;
use crate::{Pending, Result, StoreError};

/// How many steps SQLite's virtual machine runs between two checks whether the answer is still wanted: a fraction of a
/// millisecond.
const STEPS: i32 = 10_000;

type GiveUp = Box<dyn FnOnce(StoreError) + Send>;
type Ask = Box<dyn FnOnce(&Connection, &Ticket) + Send>;
type UnderWay = Option<(Arc<Ticket>, Duration)>;

/// A caller waiting for an answer.
#[derive(Default)]
pub(super) struct Ticket {
    is_gone: AtomicBool,
    is_late: AtomicBool,
    /// Tells the waiting caller that there will be no answer. The answer takes it.
    give_up: Mutex<Option<GiveUp>>,
}

impl Ticket {
    /// Nobody is waiting for the answer, or it is too late.
    pub(super) fn is_void(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed) || self.is_late.load(Ordering::Relaxed)
    }

    /// Called between the parts of a long answer.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_void() { Err(too_long()) } else { Ok(()) }
    }

    fn give_up(&self, error: StoreError) {
        let give_up = self.give_up.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(give_up) = give_up {
            give_up(error);
        }
    }
}

/// Marks the ticket when the caller goes away.
struct Gone(Arc<Ticket>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.is_gone.store(true, Ordering::Relaxed);
    }
}

struct Question {
    ticket: Arc<Ticket>,
    ask: Ask,
}

#[derive(Default)]
struct Waiting {
    questions: VecDeque<Question>,
    is_closed: bool,
}

/// The queue of a few threads, and what each of them is doing.
pub(super) struct Line {
    waiting: Mutex<Waiting>,
    grown: Condvar,
    waiting_max: usize,
    /// For each thread, the query it is answering and for how long.
    under_way: Vec<Mutex<UnderWay>>,
}

impl Line {
    fn new(threads: usize, waiting_max: usize) -> Line {
        let under_way = (0..threads).map(|_| Mutex::default()).collect();
        Line { waiting: Mutex::default(), grown: Condvar::new(), waiting_max, under_way }
    }

    fn put(&self, question: Question) -> Result<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_closed {
            return Err(stopped());
        }
        if waiting.questions.len() >= self.waiting_max {
            // Queries whose callers have gone make room for the others.
            waiting.questions.retain(|question| !question.ticket.is_void());
        }
        if waiting.questions.len() >= self.waiting_max {
            return Err(StoreError::Unavailable("too many queries are waiting".into()));
        }
        waiting.questions.push_back(question);
        drop(waiting);
        self.grown.notify_one();
        Ok(())
    }

    /// The next query somebody is waiting for; `None` when the line is closed.
    fn next(&self) -> Option<Question> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if waiting.is_closed {
                return None;
            }
            match waiting.questions.pop_front() {
                Some(question) if question.ticket.is_void() => {}
                Some(question) => return Some(question),
                None => waiting = self.grown.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn at(&self, thread: usize, ticket: Option<&Arc<Ticket>>) {
        if let Some(place) = self.under_way.get(thread) {
            let begun = ticket.map(|ticket| (Arc::clone(ticket), Duration::ZERO));
            *place.lock().unwrap_or_else(PoisonError::into_inner) = begun;
        }
    }

    fn close(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.is_closed = true;
        waiting.questions.clear();
        drop(waiting);
        self.grown.notify_all();
    }

    /// Called at intervals: interrupts queries that take too long, and answers callers whose query is stuck on the
    /// disk.
    pub(super) fn look(&self, passed: Duration) {
        let mut stuck = 0;
        for place in &self.under_way {
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((ticket, since)) = &mut *place else { continue };
            *since += passed;
            if *since >= QUESTION_DEADLINE {
                ticket.is_late.store(true, Ordering::Relaxed);
            }
            // SQLite does the interrupting, and cannot while it waits for the disk.
            if *since >= COMMIT_DEADLINE {
                ticket.give_up(StoreError::Hangs("it was asked for what it holds".into()));
                stuck += 1;
            }
        }
        if stuck == self.under_way.len() {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            for question in waiting.questions.drain(..) {
                question.ticket.give_up(StoreError::Hangs("nobody is free to ask it".into()));
            }
        }
    }
}

pub(super) struct Readers {
    line: Arc<Line>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    health: Arc<Health>,
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.close();
    }
}

impl Readers {
    pub(super) fn start(
        path: &Path,
        name: &str,
        threads: usize,
        waiting_max: usize,
        health: Arc<Health>,
    ) -> Result<Readers> {
        let line = Arc::new(Line::new(threads, waiting_max));
        let readers = Readers { line: Arc::clone(&line), threads: Mutex::default(), health };
        for number in 0..threads {
            let (connection, line) = (open_reader(path)?, Arc::clone(&line));
            let answer = move || answer(&line, number, connection);
            let spawned = std::thread::Builder::new().name(format!("store-{name}-{number}")).spawn(answer);
            let thread =
                spawned.map_err(|error| StoreError::Unavailable(format!("cannot start a reader thread: {error}")))?;
            readers.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(readers)
    }

    pub(super) fn line(&self) -> Arc<Line> {
        Arc::clone(&self.line)
    }

    /// Closes these connections first: the writer's must be the last, so that it can copy everything into the database.
    pub(super) fn close(&self) {
        self.line.close();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // The store's last owner may be an answer; its thread cannot join itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }

    pub(super) fn run<T, F>(&self, ask: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Ticket) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let ticket = Arc::new(Ticket::default());
        let reply = Arc::new(Mutex::new(Some(reply)));
        let (unanswered, health) = (Arc::clone(&reply), Arc::clone(&self.health));
        let send = |reply: &Mutex<Option<oneshot::Sender<Result<T>>>>, answer| {
            if let Some(reply) = reply.lock().unwrap_or_else(PoisonError::into_inner).take() {
                // A caller who went away no longer wants the answer.
                let _ = reply.send(answer);
            }
        };
        *ticket.give_up.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Box::new(move |error| send(&unanswered, Err(error))));
        let ask = move |connection: &Connection, ticket: &Ticket| {
            let answer = ask(connection, ticket);
            // Damage is permanent, whichever thread finds it; so is a read error reported by the disk.
            if let Err(error) = &answer {
                health.stop_if_lasting(error);
            }
            send(&reply, answer);
        };
        let put = self.line.put(Question { ticket: Arc::clone(&ticket), ask: Box::new(ask) });
        let gone = Gone(ticket);
        Box::pin(async move {
            let _gone = gone;
            put?;
            answer.await.map_err(|_| stopped())?
        })
    }
}

fn answer(line: &Line, number: usize, mut connection: Connection) {
    while let Some(Question { ticket, ask }) = line.next() {
        let watched = Arc::clone(&ticket);
        // Fails only if the connection is gone.
        let _ = connection.progress_handler(STEPS, Some(move || watched.is_void()));
        line.at(number, Some(&ticket));
        ask(&connection, &ticket);
        line.at(number, None);
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the store has stopped".into())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use pilot_core::time::Time;
    use tempfile::TempDir;

    use super::*;
    use crate::Store;
    use crate::sqlite::Sqlite;

    fn open(directory: &TempDir) -> Sqlite {
        Sqlite::open(&directory.path().join("pilot.db"), Arc::new(|| Time::EPOCH)).unwrap()
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn damage_and_a_failed_disk_met_while_reading_stop_the_store_and_a_passing_failure_does_not() {
        let scratch = tempfile::tempdir().unwrap();
        for (error, word) in [
            (StoreError::Unavailable("busy".into()), None),
            (StoreError::DiskFailed("a read failed".into()), Some("a read failed")),
            (StoreError::Damaged("a broken page".into()), Some("a broken page")),
        ] {
            let store = open(&scratch);
            let is_damage = matches!(error, StoreError::Damaged(_));
            runtime().block_on(store.read::<(), _>(move |_| Err(error))).unwrap_err();
            match (store.check(), word) {
                (Ok(()), None) => assert!(store.stop().is_ok()),
                (Err(found), Some(word)) => {
                    assert!(found.to_string().contains(word), "{found}");
                    assert_eq!(matches!(found, StoreError::Damaged(_)), is_damage);
                    assert!(store.stop().is_err(), "whoever stops it is told");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_store_that_was_seen_to_be_damaged_stays_so_when_the_disk_fails_too() {
        let health = Health::default();
        health.fail(&StoreError::Damaged("a broken page".into()));
        health.fail(&StoreError::DiskFailed("input/output error".into()));
        assert!(matches!(health.check(), Err(StoreError::Damaged(_))));
    }

    /// Keeps one thread busy until it is released.
    fn held(readers: &Readers) -> (Pending<'_, ()>, mpsc::Sender<()>) {
        let ((begun, has_begun), (go, gone)) = (mpsc::channel(), mpsc::channel::<()>());
        let pending = readers.run(move |_, _| {
            begun.send(()).unwrap();
            let _ = gone.recv();
            Ok(())
        });
        has_begun.recv().unwrap();
        (pending, go)
    }

    #[test]
    fn a_question_is_dropped_when_its_asker_has_gone_and_refused_when_too_many_wait() {
        let scratch = tempfile::tempdir().unwrap();
        drop(open(&scratch));
        let readers = Readers::start(&scratch.path().join("pilot.db"), "test", 1, 2, Arc::default()).unwrap();
        let (busy, go) = held(&readers);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let note = |number| {
            let asked = Arc::clone(&asked);
            readers.run(move |_, _| {
                asked.lock().unwrap().push(number);
                Ok(number)
            })
        };
        let (first, second) = (note(1), note(2));
        let refused = runtime().block_on(note(3)).unwrap_err();
        assert!(refused.to_string().contains("too many queries"), "{refused}");
        drop(first);
        // The query of a caller who went away makes room.
        let fourth = note(4);
        go.send(()).unwrap();
        runtime().block_on(async {
            busy.await.unwrap();
            assert_eq!((second.await.unwrap(), fourth.await.unwrap()), (2, 4));
        });
        assert_eq!(*asked.lock().unwrap(), [2, 4], "nobody waited for the others");
    }

    const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

    #[test]
    fn a_question_that_takes_too_long_is_broken_off_and_so_is_one_whose_asker_goes() {
        let scratch = tempfile::tempdir().unwrap();
        drop(open(&scratch));
        let readers = Readers::start(&scratch.path().join("pilot.db"), "test", 1, 8, Arc::default()).unwrap();
        let (begun, has_begun) = mpsc::channel();
        let endless = || {
            let begun = begun.clone();
            readers.run(move |connection, _| {
                begun.send(()).unwrap();
                connection
                    .query_row(ENDLESS, [], |row| row.get::<_, i64>(0))
                    .map_err(|error| crate::sqlite::failure::failed(&error))
            })
        };
        let late = endless();
        has_begun.recv().unwrap();
        readers.line().look(QUESTION_DEADLINE);
        let error = runtime().block_on(late).unwrap_err();
        assert!(matches!(&error, StoreError::Unavailable(reason) if reason.contains("longer than")), "{error}");
        let abandoned = endless();
        has_begun.recv().unwrap();
        drop(abandoned);
        // The only thread is free again, so the query was interrupted.
        assert_eq!(runtime().block_on(readers.run(|_, _| Ok(7))).unwrap(), 7);
    }

    #[test]
    fn whoever_waits_for_a_disk_that_does_not_answer_is_told_so() {
        let scratch = tempfile::tempdir().unwrap();
        drop(open(&scratch));
        let readers = Readers::start(&scratch.path().join("pilot.db"), "test", 1, 8, Arc::default()).unwrap();
        let (stuck, go) = held(&readers);
        let behind = readers.run(|_, _| Ok(()));
        readers.line().look(COMMIT_DEADLINE);
        for pending in [stuck, behind] {
            assert!(matches!(runtime().block_on(pending), Err(StoreError::Hangs(_))));
        }
        go.send(()).unwrap();
        assert_eq!(runtime().block_on(readers.run(|_, _| Ok(7))).unwrap(), 7, "and answers when it does");
    }
}
