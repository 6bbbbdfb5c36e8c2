//! A few threads with a connection each, so that reading never waits for writing.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connection::open_reader;
use super::health::Health;
use crate::{Pending, Result, StoreError};

const READERS: usize = 3;

type Question = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Readers {
    /// Taken at the end, which ends the threads.
    questions: Option<mpsc::Sender<Question>>,
    threads: Vec<JoinHandle<()>>,
    health: Arc<Health>,
}

impl Drop for Readers {
    /// Closes the connections: the one that writes is the last, and can put everything into the database.
    fn drop(&mut self) {
        self.questions = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Readers {
    pub(super) fn start(path: &Path, health: Arc<Health>) -> Result<Readers> {
        let (questions, waiting) = mpsc::channel::<Question>();
        let waiting = Arc::new(Mutex::new(waiting));
        let mut readers = Readers { questions: Some(questions), threads: Vec::new(), health };
        for number in 0..READERS {
            let connection = open_reader(path)?;
            let waiting = Arc::clone(&waiting);
            let answer = move || {
                loop {
                    // The lock is held while waiting for a question, and let go before answering it.
                    let question = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    match question {
                        Ok(question) => question(&connection),
                        Err(mpsc::RecvError) => return,
                    }
                }
            };
            let spawned = std::thread::Builder::new().name(format!("store-reader-{number}")).spawn(answer);
            let thread =
                spawned.map_err(|error| StoreError::Unavailable(format!("no thread for a reader: {error}")))?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    pub(super) fn run<T, F>(&self, ask: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let health = Arc::clone(&self.health);
        let question: Question = Box::new(move |connection| {
            let answer = ask(connection);
            // Damage stays, whoever meets it. A disk that could not be read once may be read the next time.
            if let Err(error @ StoreError::Damaged(_)) = &answer {
                health.fail(error);
            }
            // A caller who went away does not want the answer any more.
            let _ = reply.send(answer);
        });
        let sent = self.questions.as_ref().is_some_and(|questions| questions.send(question).is_ok());
        Box::pin(async move {
            let stopped = || StoreError::Unavailable("the store has stopped".into());
            if !sent {
                return Err(stopped());
            }
            answer.await.map_err(|_| stopped())?
        })
    }
}

#[cfg(test)]
mod tests {
    use pilot_core::time::Time;

    use super::*;
    use crate::Store;
    use crate::sqlite::Sqlite;

    #[test]
    fn damage_met_while_reading_stops_the_store_and_a_passing_failure_does_not() {
        let directory = std::env::temp_dir().join(format!("pilot-reader-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let store = Sqlite::open(&directory.join("pilot.db"), Arc::new(|| Time::EPOCH)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let fail = |error| runtime.block_on(store.read::<(), _>(move |_| Err(error))).unwrap_err();
        for error in [StoreError::Unavailable("busy".into()), StoreError::DiskFailed("a read failed".into())] {
            fail(error);
            assert!(store.check().is_ok());
        }
        fail(StoreError::Damaged("a broken page".into()));
        assert!(matches!(store.check(), Err(StoreError::Damaged(reason)) if reason.contains("a broken page")));
        drop(store);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_store_that_was_seen_to_be_damaged_stays_so_when_the_disk_fails_too() {
        let health = Health::default();
        health.fail(&StoreError::Damaged("a broken page".into()));
        health.fail(&StoreError::DiskFailed("input/output error".into()));
        assert!(matches!(health.check(), Err(StoreError::Damaged(_))));
    }
}
