//! Signs the head of the log. What is signed was computed here, from the entries read back from the store, and is kept
//! in a second place before anyone is shown it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pilot_evidence::bundle::{BundleError, BundleWriter};
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::merkle::Edge;
use pilot_evidence::note::{NoteKey, VerifierKey};
use pilot_evidence::proof::check_consistency;
use pilot_evidence::tile::TILE_WIDTH;
use pilot_store::{Store, StoreError};
use tokio::sync::watch;

use crate::app::App;
use crate::problem::Problem;
use crate::proofs;
use crate::second_place::{SecondPlace, SwapError};

mod opening;

pub use opening::{Refused, continued, read, read_checkpoint};

/// How often a growing log is signed though nobody asks: each entry is under a checkpoint within a second.
const PAUSE: Duration = Duration::from_millis(500);
/// How many entries are read back at once.
const READ_MAX: u64 = 1_024;
/// The exit code for what must not go on.
const BROKEN: i32 = 3;

#[derive(Debug, Clone, thiserror::Error)]
pub enum SignError {
    /// Signing would put the key under something untrue. The process has to stop.
    #[error("{0}")]
    Broken(String),
    /// It may work again by itself.
    #[error("the log cannot be signed now: {0}")]
    Unavailable(String),
}

impl From<StoreError> for SignError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => SignError::Broken(error.to_string()),
            _ => SignError::Unavailable(error.to_string()),
        }
    }
}

impl From<SignError> for Problem {
    fn from(error: SignError) -> Self {
        Problem::unavailable("No checkpoint can be signed right now.", &error)
    }
}

pub struct Signed {
    pub checkpoint: Checkpoint,
    pub note: String,
}

pub struct Signer {
    key: NoteKey,
    store: Arc<dyn Store>,
    head: watch::Receiver<Arc<Edge>>,
    place: SecondPlace,
    work: tokio::sync::Mutex<Work>,
    newest: watch::Sender<Arc<Signed>>,
    /// Why nothing is signed any more.
    broken: watch::Sender<Option<String>>,
    failures: AtomicU64,
    /// The last attempt failed.
    is_behind: AtomicBool,
}

/// What signing goes on from.
struct Work {
    /// The tree as far as it was signed, made of entries this signer has read itself.
    edge: Edge,
    /// What the second place may hold: what was written last, and what was being written when that failed.
    known: Vec<Option<String>>,
}

impl Signer {
    pub fn verifier(&self) -> VerifierKey {
        self.key.verifier()
    }

    /// The newest checkpoint there is, and a word whenever there is a newer one.
    pub fn newest(&self) -> watch::Receiver<Arc<Signed>> {
        self.newest.subscribe()
    }

    /// What is written now would stay without a checkpoint, and so could be lost without a trace: nothing is accepted.
    pub fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// A signed checkpoint that covers everything acknowledged so far.
    pub async fn checkpoint(self: &Arc<Self>) -> Result<Arc<Signed>, SignError> {
        let size = self.head.borrow().size();
        self.covering(size).await
    }

    /// A signed checkpoint that covers this many entries at least.
    pub async fn covering(self: &Arc<Self>, size: u64) -> Result<Arc<Signed>, SignError> {
        let newest = Arc::clone(&self.newest.borrow());
        if newest.checkpoint.size >= size {
            return Ok(newest);
        }
        // In a task of its own: a caller who goes away must not leave the second place half known.
        let signer = Arc::clone(self);
        let signing = tokio::spawn(async move { signer.sign(size).await });
        signing.await.unwrap_or_else(|error| Err(SignError::Unavailable(error.to_string())))
    }

    /// A checkpoint of the tree as it once was. It is signed only when `newest`, which was recomputed, goes on from it.
    pub async fn sign_past(&self, size: u64, newest: &Checkpoint) -> Result<String, SignError> {
        let root = edge_at(&*self.store, size).await?.root();
        let path = proofs::consistency(&*self.store, size, newest.size).await?;
        check_consistency(size, root, newest.size, newest.root, &path).map_err(|error| {
            SignError::Broken(format!("the tree of {size} entries is not part of the log: {error}"))
        })?;
        Ok(Checkpoint { origin: self.key.verifier().name, size, root }.sign(&self.key))
    }

    /// Signs a bundle's manifest, and gives the rest of the bundle.
    pub fn sign_bundle(&self, bundle: BundleWriter) -> Result<Vec<u8>, BundleError> {
        bundle.finish(&self.key)
    }

    async fn sign(self: Arc<Self>, size: u64) -> Result<Arc<Signed>, SignError> {
        let mut work = self.work.lock().await;
        let newest = Arc::clone(&self.newest.borrow());
        if newest.checkpoint.size >= size {
            return Ok(newest);
        }
        if let Some(reason) = &*self.broken.borrow() {
            return Err(SignError::Broken(reason.clone()));
        }
        let signed = self.sign_head(&mut work).await;
        self.is_behind.store(signed.is_err(), Ordering::Relaxed);
        if let Err(error) = &signed {
            self.failures.fetch_add(1, Ordering::Relaxed);
            if let SignError::Broken(reason) = error {
                self.broken.send_replace(Some(reason.clone()));
            }
        }
        signed
    }

    async fn sign_head(self: &Arc<Self>, work: &mut Work) -> Result<Arc<Signed>, SignError> {
        let head = Arc::clone(&self.head.borrow());
        let edge = self.recomputed(work.edge.clone(), &head).await?;
        let checkpoint = Checkpoint { origin: self.key.verifier().name, size: edge.size(), root: edge.root() };
        let note = checkpoint.sign(&self.key);
        self.keep(work, &note).await?;
        work.edge = edge;
        let signed = Arc::new(Signed { checkpoint, note });
        self.newest.send_replace(Arc::clone(&signed));
        Ok(signed)
    }

    /// The tree up to `head`, by the entries as they are stored; and that it is the one the store believes to have.
    async fn recomputed(&self, mut edge: Edge, head: &Edge) -> Result<Edge, SignError> {
        let mut full = Vec::new();
        while edge.size() < head.size() {
            let wanted = (head.size() - edge.size()).min(READ_MAX);
            for leaf in self.store.leaves(edge.size(), wanted).await? {
                edge.push(leaf, &mut full);
            }
            full.clear();
        }
        if edge.root() == head.root() {
            return Ok(edge);
        }
        let what = "the entries on disk do not lead to the expected root";
        Err(SignError::Broken(format!("{what} at {} entries; nothing was signed", head.size())))
    }

    /// Puts the note into the second place, where only what this service wrote itself may be replaced.
    async fn keep(self: &Arc<Self>, work: &mut Work, note: &str) -> Result<(), SignError> {
        let (signer, known, new) = (Arc::clone(self), work.known.clone(), note.to_owned());
        work.known.push(Some(note.to_owned()));
        let swapping = tokio::task::spawn_blocking(move || signer.place.swap(&known, &new));
        let swapped = swapping.await.unwrap_or_else(|error| Err(SwapError::Io(std::io::Error::other(error))));
        let path = self.place.path().display();
        match swapped {
            Ok(()) => {
                work.known = vec![Some(note.to_owned())];
                Ok(())
            }
            Err(SwapError::Changed) => Err(SignError::Broken(format!(
                "{path} was changed by someone else: another server signs with the same key, or the file was removed; \
                 nothing more is signed, because two servers on one key fork the log"
            ))),
            Err(error @ SwapError::Io(_)) => {
                // It need not be the disk of the ledger, but it may well be, and it cannot be asked.
                if error.is_of_the_disk() {
                    self.store.distrust(&format!("{path}: {error}"));
                }
                Err(SignError::Unavailable(format!("{path}: {error}")))
            }
        }
    }

    pub fn metrics(&self) -> String {
        let size = self.newest.borrow().checkpoint.size;
        let failures = self.failures.load(Ordering::Relaxed);
        format!(
            "# HELP pilot_log_checkpoint_entries Entries under the newest signed checkpoint.\n\
             # TYPE pilot_log_checkpoint_entries gauge\npilot_log_checkpoint_entries {size}\n\
             # HELP pilot_log_signing_failures_total Attempts to sign the log that failed.\n\
             # TYPE pilot_log_signing_failures_total counter\npilot_log_signing_failures_total {failures}\n"
        )
    }
}

/// The tree's right edge at a size, from stored tiles and the few entries above them.
pub async fn edge_at(store: &dyn Store, size: u64) -> Result<Edge, StoreError> {
    let width = TILE_WIDTH as u64;
    let mut levels = Vec::new();
    let (mut level, mut row_size) = (0_u8, size);
    while row_size > 0 {
        let full = row_size / width;
        levels.push(store.row(level, full * width, row_size % width).await?);
        (level, row_size) = (level + 1, full);
    }
    Ok(Edge::new(size, levels))
}

/// Runs beside the service: signs while the log grows, and ends the process when nothing may be signed any more.
pub async fn run(app: Arc<App>) {
    let (mut head, mut broken) = (app.store.head(), app.signer.broken.subscribe());
    let said = Mutex::new(String::new());
    loop {
        tokio::select! {
            biased;
            found = broken.wait_for(Option::is_some) => {
                let reason = found.ok().and_then(|reason| reason.clone()).unwrap_or_default();
                stop(&app, &reason);
            }
            grown = head.changed() => if grown.is_err() { return },
        }
        match app.signer.checkpoint().await {
            Ok(_) => said.lock().unwrap_or_else(PoisonError::into_inner).clear(),
            Err(error) => {
                say_once(&said, &error);
                // Tried again though nothing more is written.
                head.mark_changed();
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The same trouble every half second is worth one line.
fn say_once(said: &Mutex<String>, error: &SignError) {
    let (mut said, error) = (said.lock().unwrap_or_else(PoisonError::into_inner), error.to_string());
    if *said != error {
        tracing::error!(cause = error, "no checkpoint can be signed; the one served lags behind the ledger");
        *said = error;
    }
}

fn stop(app: &App, reason: &str) {
    tracing::error!(
        cause = reason,
        "the process stops because what it would sign may be wrong; do not delete anything, run `pilot log fsck`, and read docs/operate/backup.md"
    );
    app.log.flush();
    std::process::exit(BROKEN);
}
