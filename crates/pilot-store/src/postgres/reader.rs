//! A fixed number of connections for queries. A caller's query waits for a free one; nobody waits longer than the
//! deadline.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use pilot_core::limits::{QUESTION_DEADLINE, QUESTIONS_WAITING_MAX};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::desk::stopped;
use super::failure::{self, too_long};
use super::node::Node;
use super::session::Session;
use crate::{Pending, Result, StoreError};

/// An answer in the making.
pub(super) type Asking<'s, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 's>>;

type Job = Box<dyn for<'s> FnOnce(Result<&'s Session>) -> Pin<Box<dyn Future<Output = bool> + Send + 's>> + Send>;

/// The server breaks off a query at its own deadline; if not even that answer comes, the connection is given up.
const PATIENCE: Duration = QUESTION_DEADLINE.saturating_mul(2);

pub(super) struct Readers {
    jobs: mpsc::Sender<Job>,
}

impl Readers {
    /// Must be called within the runtime that runs the queries.
    pub(super) fn start(node: &Arc<Node>, connections: usize) -> Readers {
        let (jobs, queue) = mpsc::channel::<Job>(QUESTIONS_WAITING_MAX);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..connections {
            tokio::spawn(serve(Arc::clone(node), Arc::clone(&queue)));
        }
        Readers { jobs }
    }

    pub(super) fn run<T, F>(&self, ask: F) -> Pending<'static, T>
    where
        T: Send + 'static,
        F: for<'s> FnOnce(&'s Session) -> Asking<'s, T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |session| {
            Box::pin(async move {
                if reply.is_closed() {
                    return true;
                }
                let (answer, is_usable) = match session {
                    Ok(session) => match tokio::time::timeout(PATIENCE, ask(session)).await {
                        Ok(answer) => (answer, true),
                        Err(_) => (Err(too_long()), false),
                    },
                    Err(error) => (Err(error), false),
                };
                let _ = reply.send(answer);
                is_usable
            })
        });
        let handed_in = self.jobs.try_send(job).map_err(|unsent| match unsent {
            mpsc::error::TrySendError::Full(_) => StoreError::Unavailable("too many queries are waiting".into()),
            mpsc::error::TrySendError::Closed(_) => stopped(),
        });
        Box::pin(async move {
            handed_in?;
            answer.await.map_err(|_| stopped())?
        })
    }
}

async fn serve(node: Arc<Node>, queue: Arc<Mutex<mpsc::Receiver<Job>>>) {
    let mut session: Option<Session> = None;
    loop {
        let job = queue.lock().await.recv().await;
        let Some(job) = job else { return };
        let is_usable = |session: &Session| !session.is_closed() && node.is_at(&session.server);
        if !session.as_ref().is_some_and(is_usable) {
            session = match connect(&node).await {
                Ok(session) => Some(session),
                Err(error) => {
                    job(Err(error)).await;
                    continue;
                }
            };
        }
        let Some(connected) = &session else { continue };
        if !job(Ok(connected)).await {
            session = None;
        }
    }
}

async fn connect(node: &Node) -> Result<Session> {
    // Nothing was read yet, so whatever failed, it is not the stored data.
    let failed = |error| StoreError::Unavailable(failure::describe(&error));
    let session = Session::open_for_node(&node.address, None).await.map_err(failed)?;
    if !node.is_at(&session.server) {
        // It was replaced by another, and may know less.
        return Err(StoreError::Unavailable("the database's server has just changed; try again".into()));
    }
    let deadline = format!("SET statement_timeout = {}", QUESTION_DEADLINE.as_millis());
    session.run(&deadline).await.map_err(failed)?;
    Ok(session)
}
