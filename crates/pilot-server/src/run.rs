//! A service that is ready to run: its addresses are bound. Only this file starts the loops, each with just the parts
//! it needs.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pilot_core::limits::HANG_TOLERATED;
use pilot_ledger::register::Diary;
use pilot_ledger::second_place::is_of_the_disk;
use pilot_ledger::settle::Ledger;
use pilot_ledger::signer::SignError;
use pilot_ledger::timers::Timers;
use pilot_ledger::webhooks::Sources;
use pilot_ledger::{clock, following, refusals, register, reserve, signer, timers, timestamps, webhooks, witnesses};
use pilot_notices::People;
use pilot_setup::config::Logging;
use pilot_setup::random;
use pilot_store::{Pulse, StoreError};
use pilot_wire::listen::Listener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::answer::{Door, answer};
use crate::api::ops::{Operations, answer_ops};
use crate::api::who_can;
use crate::app::App;
use crate::feeds;
use crate::logging;
use crate::spans;
use crate::tls::CertificateFiles;
use crate::work_metrics::Counting;

pub struct Service {
    pub(crate) door: Arc<Door>,
    pub(crate) main: Listener,
    pub(crate) ops: Option<Listener>,
    pub(crate) certificate: Option<Arc<CertificateFiles>>,
    pub(crate) logging: (Logging, PathBuf),
    pub(crate) backup_record: PathBuf,
    /// How many entries the service knew when it started.
    pub(crate) applied: u64,
}

/// Why a service ended without being told to. The process has to stop immediately: what it would serve or sign may be
/// false.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    #[error("the disk failed while the service ran, or closing the ledger did: {0}")]
    Disk(StoreError),
    #[error("the ledger contradicts itself: {0}")]
    Damaged(StoreError),
    #[error("nothing may be signed any more: {0}")]
    Unsignable(String),
}

/// Loops that end with the service, whatever they are doing.
struct Loops(Vec<JoinHandle<()>>);

impl Loops {
    fn start(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.push(tokio::spawn(task));
    }

    fn stop(self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Service {
    /// The line for standard output, with the real port, or the path of the socket.
    pub fn announcement(&self) -> io::Result<String> {
        let address = self.main.address()?;
        Ok(match &self.certificate {
            _ if address.starts_with("unix:") => format!("listening on {address}"),
            Some(_) => format!("listening on https://{address}"),
            None => format!("listening on http://{address}"),
        })
    }

    /// The line with which others check what this log signs.
    pub fn verifier_key(&self) -> String {
        self.door.app.ledger.signer.verifier().to_string()
    }

    /// Whether to tell a supervisor that all is well. A disk may be slow, but not unresponsive for long.
    pub fn is_alive(&self) -> impl Fn() -> bool + Send + 'static {
        let store = Arc::clone(&self.door.app.ledger.store);
        move || is_tolerable(store.pulse())
    }

    /// Serves until told to stop, then finishes what is in progress and writes down what is left.
    pub async fn run(self) -> Result<(), Stopped> {
        let app = Arc::clone(&self.door.app);
        let Ledger { store, signer, reserve, clock, clock_keeper, refusals } = &app.ledger;
        // These run until the last request is answered.
        let mut serving = Loops(Vec::new());
        serving.start(clock::run(Arc::clone(clock_keeper), Arc::clone(store)));
        serving.start(reserve::run(Arc::clone(reserve)));
        serving.start(feeds::run(Arc::clone(&app.feeds), Arc::clone(store)));
        serving.start(feeds::watch(Arc::clone(&app.feeds), Arc::clone(store)));
        serving.start(share_limits(Arc::clone(&app)));
        serving.start(following::run(Arc::clone(store), Arc::clone(&app.register), self.applied));
        serving.start(follow_identity(Arc::clone(&app)));
        if let Some(certificate) = self.certificate {
            serving.start(certificate.follow(Arc::clone(&app.metrics), app.clock.clone()));
        }
        if let Some(clients) = &app.clients {
            serving.start(Arc::clone(clients).follow(app.clock.clone()));
        }
        // Only for those who look at it: the first count reads the whole ledger.
        if self.ops.is_some() {
            let counting = Counting {
                metrics: Arc::clone(&app.work_metrics),
                figures: Arc::clone(&app.figures),
                store: Arc::clone(store),
                workflows: Arc::clone(&app.workflows),
                backup_record: self.backup_record,
            };
            serving.start(counting.run());
        }
        if let Some(spans) = &app.spans {
            serving.start(spans::run(Arc::clone(spans)));
        }
        let (logging, path) = self.logging;
        serving.start(logging::follow(app.log.clone(), logging, path, app.clock.clone()));
        let (done_refusing, is_done) = oneshot::channel();
        let refusing = tokio::spawn(refusals::write_down(
            Arc::clone(refusals),
            Arc::clone(store),
            clock.clone(),
            Arc::clone(clock_keeper),
            is_done,
        ));
        let (done, is_done) = oneshot::channel();
        let diary = Diary {
            register: Arc::clone(&app.register),
            store: Arc::clone(store),
            clock: app.clock.clone(),
            clock_keeper: Arc::clone(clock_keeper),
        };
        let credentials = tokio::spawn(register::run(diary, is_done));
        let (done_sending, is_done) = oneshot::channel();
        let log_name = signer.verifier().name.clone();
        let sending = tokio::spawn(webhooks::run(Arc::clone(&app.webhooks), sources(&app), log_name.clone(), is_done));
        let (done_telling, is_done) = oneshot::channel();
        let telling = pilot_notices::run(Arc::clone(&app.notices), sources(&app), people(&app), log_name, is_done);
        let telling = tokio::spawn(telling);
        // These run until everything is written.
        let mut writing = Loops(Vec::new());
        writing.start(witnesses::run(Arc::clone(&app.witnesses), Arc::clone(signer)));
        writing.start(timestamps::run(Arc::clone(&app.timestamps), Arc::clone(signer), clock.clone()));
        let mut timers = tokio::spawn(timers::run(Timers {
            store: Arc::clone(store),
            workflows: Arc::clone(&app.workflows),
            clock: clock.clone(),
            clock_keeper: Arc::clone(clock_keeper),
        }));
        let mut signing = tokio::spawn(signer::run(Arc::clone(signer)));
        tokio::select! {
            () = serve(self.main, self.ops, &self.door) => {}
            Ok(error) = &mut timers => return Err(Stopped::Damaged(error)),
            Ok(reason) = &mut signing => return Err(Stopped::Unsignable(reason)),
        }
        serving.stop();
        timers.abort();
        if let Some(spans) = &app.spans {
            spans.send_last().await;
        }
        drop((done_sending, done_telling));
        let _ = sending.await;
        let _ = telling.await;
        drop(done_refusing);
        let _ = refusing.await;
        drop(done);
        let _ = credentials.await;
        signing.abort();
        writing.stop();
        match signer.checkpoint().await {
            Ok(_) => {}
            Err(SignError::Broken(reason)) => return Err(Stopped::Unsignable(reason)),
            Err(error) => {
                tracing::error!(cause = %error, "the last entries are not covered by a checkpoint; the next start signs them");
            }
        }
        if let Err(cause) = clock_keeper.leave() {
            if is_of_the_disk(&cause) {
                store.distrust(&format!("the clock record: {cause}"));
            }
            tracing::warn!(%cause, "the clock record could not be saved for the next start");
        }
        let store = Arc::clone(store);
        let stopped = tokio::task::spawn_blocking(move || store.stop()).await;
        stopped.unwrap_or_else(|error| Err(StoreError::Unavailable(error.to_string()))).map_err(Stopped::Disk)
    }
}

/// Everyone who may act, asked whenever someone is to be told.
fn people(app: &Arc<App>) -> People {
    let app = Arc::clone(app);
    Arc::new(move || who_can::people(&app))
}

/// What webhooks and notices are sent from.
fn sources(app: &App) -> Sources {
    Sources {
        store: Arc::clone(&app.ledger.store),
        workflows: Arc::clone(&app.workflows),
        guard: Arc::clone(&app.guard),
        clock: app.ledger.clock.clone(),
        machine: app.clock.clone(),
        // Without random numbers all endpoints are tried again at the same moment, which is no more than impolite.
        dice: Arc::new(|| random::number().unwrap_or_default()),
    }
}

/// A disk may be slow for a while; a supervisor should restart a service whose disk stays unresponsive.
fn is_tolerable(pulse: Pulse) -> bool {
    pulse.hanging.is_none_or(|hanging| hanging < HANG_TOLERATED)
}

async fn serve(main: Listener, ops: Option<Listener>, door: &Arc<Door>) {
    let stop = door.app.stop.clone();
    let main = main.serve(Arc::clone(door), answer, stop.clone());
    match ops {
        Some(ops) => {
            let operations = Arc::new(Operations(Arc::clone(&door.app)));
            tokio::join!(main, ops.serve(operations, answer_ops, stop));
        }
        None => main.await,
    }
}

/// Each node allows its part of what callers may do.
async fn share_limits(app: Arc<App>) {
    let (Some(limits), store) = (&app.limits, &app.ledger.store) else { return };
    while store.is_shared() {
        limits.share_among(store.nodes().iter().filter(|node| node.is_alive).count());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn follow_identity(app: Arc<App>) {
    app.identity.follow().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_is_told_that_all_is_well_until_the_disk_was_silent_for_as_long_as_is_tolerated() {
        for (hanging, is_well) in [
            (None, true),
            (Some(Duration::from_secs(5)), true),
            (Some(HANG_TOLERATED.saturating_sub(Duration::from_millis(1))), true),
            (Some(HANG_TOLERATED), false),
        ] {
            assert_eq!(is_tolerable(Pulse { hanging, hangs: 1, ..Pulse::default() }), is_well, "{hanging:?}");
        }
    }
}
