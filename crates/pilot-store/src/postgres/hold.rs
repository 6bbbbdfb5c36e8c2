//! An operator's command has the ledger for itself. A row is locked for as long as it runs: a service that wants to open
//! the ledger finds the lock and refuses to start. If the command dies, the lock goes with its connection.

use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::address::Access;
use super::failure::failed;
use super::reserved::{self, HOLD};
use super::session::Session;
use super::snapshot::connect;
use super::{opening, runtime, spawn};
use crate::{Result, StoreError};

pub(super) struct Held {
    /// Dropped to let go.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Held {
    /// Refused while a service uses the ledger. In an empty database it creates the tables.
    pub(super) fn take(access: Access) -> Result<Held> {
        let (stop, stopped) = oneshot::channel::<()>();
        let (taken, is_taken) = mpsc::channel();
        let keep = move || {
            let runtime = match runtime() {
                Ok(runtime) => runtime,
                Err(error) => return drop(taken.send(Err(error))),
            };
            runtime.block_on(async {
                match lock(&access).await {
                    Ok(session) => {
                        let _ = taken.send(Ok(()));
                        let _ = stopped.await;
                        let _ = session.run("ROLLBACK").await;
                    }
                    Err(error) => drop(taken.send(Err(error))),
                }
            });
        };
        let thread = spawn("store-hold", keep)?;
        let held = Held { stop: Some(stop), thread: Some(thread) };
        let is_taken = is_taken.recv().map_err(|_| StoreError::Unavailable("the store's thread has ended".into()))?;
        is_taken.map(|()| held)
    }
}

async fn lock(access: &Access) -> Result<Session> {
    let session = connect(access).await?;
    opening::ensure_tables(&session).await?;
    session.run("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0").await.map_err(failed)?;
    session.query(HOLD, &[]).await.map_err(failed)?;
    // After the lock: a service that starts from now on finds it.
    reserved::refuse_running(&session).await?;
    Ok(session)
}
