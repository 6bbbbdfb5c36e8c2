//! A few threads with a connection each, so that reading never waits for writing.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connection::open_reader;
use crate::{Pending, Result, StoreError};

const READERS: usize = 3;

type Question = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Readers {
    /// Taken at the end, which ends the threads.
    questions: Option<mpsc::Sender<Question>>,
    threads: Vec<JoinHandle<()>>,
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
    pub(super) fn start(path: &Path) -> Result<Readers> {
        let (questions, waiting) = mpsc::channel::<Question>();
        let waiting = Arc::new(Mutex::new(waiting));
        let mut readers = Readers { questions: Some(questions), threads: Vec::new() };
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
        let question: Question = Box::new(move |connection| {
            // A caller who went away does not want the answer any more.
            let _ = reply.send(ask(connection));
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
