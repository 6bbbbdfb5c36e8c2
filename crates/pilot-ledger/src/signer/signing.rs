//! Signs the head of the log. The signed root is computed here, from entries read back from the store, and the
//! checkpoint is stored in the second place before anyone sees it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pilot_evidence::attestation::{Envelope, Unsigned};
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::merkle::Edge;
use pilot_evidence::note::{Note, VerifierKey};
use pilot_evidence::proof::check_consistency;
use pilot_setup::log_key::{Haste, LogKey, SignatureError};
use pilot_store::{Store, StoreError};
use pilot_wire::exposition::Exposition;
use tokio::sync::watch;

use super::edge::edge_at;
use super::note::read_checkpoint;
use crate::proofs;
use crate::second_place::{SecondPlace, SwapError};

/// How often a growing log is signed even if nobody asks: each entry is under a checkpoint within a second.
const PAUSE: Duration = Duration::from_millis(500);
/// A checkpoint that takes longer is one that cannot be made now.
const LATE: Duration = Duration::from_secs(2);
/// How many entries are read back at a time.
const READ_MAX: u64 = 1_024;
/// How often in a row another node may write the second place first.
const SWAPS_MAX: usize = 8;

#[derive(Debug, Clone, thiserror::Error)]
pub enum SignError {
    /// Signing would put the key under something false. The process has to stop.
    #[error("{0}")]
    Broken(String),
    /// It may recover without help.
    #[error("the log cannot be signed now: {0}")]
    Unavailable(String),
}

impl From<SignatureError> for SignError {
    fn from(error: SignatureError) -> Self {
        SignError::Unavailable(error.to_string())
    }
}

impl From<StoreError> for SignError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => SignError::Broken(error.to_string()),
            _ => SignError::Unavailable(error.to_string()),
        }
    }
}

pub struct Signed {
    pub checkpoint: Checkpoint,
    pub note: String,
}

pub struct Signer {
    pub(super) key: LogKey,
    pub(super) verifier: VerifierKey,
    pub(super) store: Arc<dyn Store>,
    pub(super) head: watch::Receiver<Arc<Edge>>,
    pub(super) place: SecondPlace,
    pub(super) work: tokio::sync::Mutex<Work>,
    pub(super) newest: watch::Sender<Arc<Signed>>,
    /// Why nothing is signed any more.
    pub(super) broken: watch::Sender<Option<String>>,
    pub(super) failures: AtomicU64,
    /// The last attempt failed.
    pub(super) is_behind: AtomicBool,
}

/// Where signing continues.
pub(super) struct Work {
    /// The tree up to where it was signed, built from entries this signer has read itself.
    pub(super) edge: Edge,
    /// What the second place may hold: what was written last, and what was being written when a write failed.
    pub(super) known: Vec<Option<String>>,
}

impl Signer {
    pub fn verifier(&self) -> VerifierKey {
        self.verifier.clone()
    }

    /// The newest checkpoint, and a notification whenever there is a newer one.
    pub fn newest(&self) -> watch::Receiver<Arc<Signed>> {
        self.newest.subscribe()
    }

    /// Whether new entries would stay without a checkpoint, and so could be lost unnoticed. Then nothing is accepted.
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

    /// A signed checkpoint that covers at least this many entries.
    pub async fn covering(self: &Arc<Self>, size: u64) -> Result<Arc<Signed>, SignError> {
        let newest = Arc::clone(&self.newest.borrow());
        if newest.checkpoint.size >= size {
            return Ok(newest);
        }
        // In its own task: if the caller goes away, it must still be known what the second place holds.
        let signer = Arc::clone(self);
        let signing = tokio::spawn(async move { signer.sign(size).await });
        signing.await.unwrap_or_else(|error| Err(SignError::Unavailable(error.to_string())))
    }

    /// A checkpoint of the tree at an earlier size. Signed only if `newest`, which was recomputed, is consistent with
    /// it.
    pub async fn sign_past(&self, size: u64, newest: &Checkpoint) -> Result<String, SignError> {
        let root = edge_at(&*self.store, size).await?.root();
        let path = proofs::consistency(&*self.store, size, newest.size).await?;
        check_consistency(size, root, newest.size, newest.root, &path).map_err(|error| {
            SignError::Broken(format!("the tree of {size} entries is not part of the log: {error}"))
        })?;
        let checkpoint = Checkpoint { origin: self.verifier.name.clone(), size, root };
        Ok(self.key.note(checkpoint.text(), Haste::CanWait).await?)
    }

    /// A checkpoint that another node has signed, without the signatures of others; `None` if it is not one of this log.
    pub(crate) async fn signed_elsewhere(&self, note: &str) -> Option<Signed> {
        let checkpoint = match read_checkpoint(note, &self.verifier) {
            Ok(checkpoint) => checkpoint,
            Err(cause) => {
                tracing::error!(cause, "a checkpoint that another node is said to have signed is not one of this log");
                return None;
            }
        };
        if checkpoint.size > self.head.borrow().size() {
            return None;
        }
        let edge = edge_at(&*self.store, checkpoint.size).await.ok()?;
        let own = Note::parse(note).ok()?.signed_by(&self.verifier)?;
        (edge.root() == checkpoint.root).then_some(Signed { note: own, checkpoint })
    }

    /// A signature of a bundle's manifest. It is checked when it is put into the bundle.
    pub async fn sign_manifest(&self, manifest: &str) -> Result<[u8; 64], SignError> {
        Ok(self.key.sign(manifest.as_bytes(), Haste::CanWait).await?)
    }

    /// Signs a statement about an item.
    pub async fn sign_statement(&self, statement: Unsigned) -> Result<Envelope, SignError> {
        let signature = self.key.sign(&statement.message(), Haste::CanWait).await?;
        Ok(statement.signed(&self.verifier, &signature).map_err(SignatureError::from)?)
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
        let signed = {
            let mut signing = pin!(self.sign_head(&mut work));
            tokio::select! {
                signed = &mut signing => signed,
                () = tokio::time::sleep(LATE) => {
                    self.is_behind.store(true, Ordering::Relaxed);
                    signing.await
                }
            }
        };
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
        let checkpoint = Checkpoint { origin: self.verifier.name.clone(), size: edge.size(), root: edge.root() };
        let note = self.key.note(checkpoint.text(), Haste::Checkpoint).await?;
        self.keep(work, checkpoint.size, &note).await?;
        work.edge = edge;
        let signed = Arc::new(Signed { checkpoint, note });
        self.newest.send_replace(Arc::clone(&signed));
        Ok(signed)
    }

    /// The tree up to `head`, recomputed from the stored entries; fails if it is not the tree the store claims to have.
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

    /// Writes the note to the second place, replacing only what this service itself wrote there, or another node of the
    /// same ledger.
    async fn keep(self: &Arc<Self>, work: &mut Work, size: u64, note: &str) -> Result<(), SignError> {
        for _ in 0..SWAPS_MAX {
            let (signer, known, new) = (Arc::clone(self), work.known.clone(), note.to_owned());
            work.known.push(Some(note.to_owned()));
            let swapping = tokio::task::spawn_blocking(move || signer.place.swap(&known, &new));
            let swapped = swapping.await.unwrap_or_else(|error| Err(SwapError::Io(std::io::Error::other(error))));
            let path = self.place.path().display();
            match swapped {
                Ok(()) => {
                    work.known = vec![Some(note.to_owned())];
                    return Ok(());
                }
                Err(SwapError::Changed) if self.store.is_shared() => {
                    if self.take_over(work).await? >= size {
                        return Ok(());
                    }
                }
                Err(SwapError::Changed) => {
                    return Err(SignError::Broken(format!(
                        "{path} was changed by someone else: another server signs with the same key, or the file was \
                         removed; nothing more is signed, because two servers on one key fork the log"
                    )));
                }
                Err(error @ SwapError::Io(_)) => {
                    // This may or may not be the ledger's disk, and there is no way to ask.
                    if error.is_of_the_disk() {
                        self.store.distrust(&format!("{path}: {error}"));
                    }
                    return Err(SignError::Unavailable(format!("{path}: {error}")));
                }
            }
        }
        Err(SignError::Unavailable("other nodes keep writing the second place".into()))
    }

    /// Another node has written the second place. What it wrote must be part of the ledger as this node knows it.
    /// Returns how many entries it covers.
    async fn take_over(&self, work: &mut Work) -> Result<u64, SignError> {
        let path = self.place.path();
        let unreadable = |error: std::io::Error| SignError::Unavailable(format!("{}: {error}", path.display()));
        let Some(note) = self.place.read().map_err(unreadable)? else {
            return Err(SignError::Broken(format!("{} was removed while the service ran", path.display())));
        };
        let broken = |reason: String| SignError::Broken(reason);
        let foreign = |cause| broken(format!("{} holds a checkpoint that is not this log's: {cause}", path.display()));
        let theirs = read_checkpoint(&note, &self.verifier).map_err(foreign)?;
        if theirs.size > self.head.borrow().size() {
            let ahead = "another node has signed more entries than this one knows yet";
            return Err(SignError::Unavailable(ahead.into()));
        }
        if edge_at(&*self.store, theirs.size).await?.root() != theirs.root {
            return Err(broken(format!(
                "{} holds a checkpoint of {} entries that are not those of this ledger: another server signs with the \
                 same key; nothing more is signed",
                path.display(),
                theirs.size
            )));
        }
        work.known = vec![Some(note)];
        Ok(theirs.size)
    }

    pub fn metrics(&self, text: &mut Exposition) {
        let size = self.newest.borrow().checkpoint.size;
        text.gauge("pilot_log_checkpoint_entries", "Entries under the newest signed checkpoint.", size);
        let failures = self.failures.load(Ordering::Relaxed);
        text.counter("pilot_log_signing_failures_total", "Attempts to sign the log that failed.", failures);
    }
}

/// Signs while the log grows, as long as the service runs. Returns only if nothing may be signed any more, with the
/// reason; the process might sign something false, so it has to stop.
pub async fn run(signer: Arc<Signer>) -> String {
    let (mut head, mut broken) = (signer.store.head(), signer.broken.subscribe());
    let said = Mutex::new(String::new());
    loop {
        let is_closed = tokio::select! {
            biased;
            found = broken.wait_for(Option::is_some) => {
                return found.ok().and_then(|reason| reason.clone()).unwrap_or_default();
            }
            grown = head.changed() => grown.is_err(),
        };
        if is_closed {
            // The store is gone, so the service is ending.
            return std::future::pending().await;
        }
        match signer.checkpoint().await {
            Ok(_) => said.lock().unwrap_or_else(PoisonError::into_inner).clear(),
            Err(error) => {
                say_once(&said, &error);
                // Retries even if nothing more is written.
                head.mark_changed();
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The same problem every half second is worth one line.
fn say_once(said: &Mutex<String>, error: &SignError) {
    let (mut said, error) = (said.lock().unwrap_or_else(PoisonError::into_inner), error.to_string());
    if *said != error {
        tracing::error!(cause = error, "no checkpoint can be signed; the one served lags behind the ledger");
        *said = error;
    }
}
