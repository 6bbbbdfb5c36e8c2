//! What a signer starts from: the last checkpoint it signed, compared with the ledger as it is now.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::merkle::Edge;
use pilot_evidence::note::VerifierKey;
use pilot_setup::error::StartError;
use pilot_setup::log_key::{Haste, LogKey};
use pilot_store::Store;
use tokio::sync::watch;

use super::edge::edge_at;
use super::note::read_checkpoint;
use super::signing::{Signed, Signer, Work};
use crate::second_place::SecondPlace;

/// Far longer than a node needs to hear of what others wrote.
const CATCH_UP: Duration = Duration::from_secs(3);

/// Why a ledger is not continued. Each text is for someone who was just woken up by it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refused {
    #[error(
        "the ledger has {entries} entries, but {place} holds a checkpoint of {kept} that this log has signed: {} acknowledged entries are missing.\n\
         Most likely the database was replaced by an old backup or copy, or data_dir or store.url points to one.\n\
         Fix: find the newer database (with its -wal file) and put it back; nothing is lost while it exists.\n\
         If it is gone for good: `pilot restore --accept-loss WHY` continues with what is left, under a new log key, and records what was lost.\n\
         Do not delete {place}: it is the only record of what is missing.", kept - entries
    )]
    Older { place: String, entries: u64, kept: u64 },
    #[error(
        "the ledger does not continue the checkpoint of {kept} entries in {place}, although it has {entries}: its root at that size differs, so its history differs.\n\
         Most likely an old backup was restored and then written to, or two servers ran with the same log key.\n\
         Fix: stop every server with this key, keep both databases, and find the one that continues the checkpoint (`pilot log fsck` prints the root of each).\n\
         If it is gone for good: `pilot restore --accept-loss WHY` continues with what is left, under a new log key."
    )]
    Fork { place: String, entries: u64, kept: u64 },
    #[error(
        "the checkpoint in {place} is not signed by this log's key ({cause}).\n\
         Most likely log.key belongs to another installation, or [log] checkpoint names another installation's file.\n\
         Fix: put the right log.key back from your copy, or correct the path."
    )]
    OtherKey { place: String, cause: String },
    #[error(
        "{place} is missing, but this ledger has kept its checkpoint there.\n\
         It tells an old database from the current one, so the service does not begin a new one by itself.\n\
         Fix: put the newest signed checkpoint you have into the file: from a backup, a witness, an auditor, or anyone who fetched /v1/log/checkpoint recently.\n\
         If nobody has one: `pilot restore --accept-loss WHY` continues under a new log key."
    )]
    Missing { place: String },
}

impl From<Refused> for StartError {
    fn from(refused: Refused) -> Self {
        StartError::Refused(refused.to_string())
    }
}

impl Signer {
    /// Compares the ledger with the second place. `was_kept` says whether the ledger itself knows that there was one.
    pub async fn open(
        key: LogKey,
        store: Arc<dyn Store>,
        place: SecondPlace,
        was_kept: bool,
    ) -> Result<Arc<Signer>, StartError> {
        let failed = |error: std::io::Error| StartError::environment(place.path().display().to_string(), error);
        let kept = place.read().map_err(failed)?;
        let verifier = key.verifier();
        let (edge, signed) = match &kept {
            Some(note) => {
                let checkpoint = read(note, &verifier, place.path())?;
                catch_up(&*store, checkpoint.size).await;
                let edge = continued(&*store, &checkpoint, place.path()).await?;
                (edge, Signed { checkpoint, note: note.clone() })
            }
            // A node that joins others has its own second place, which begins with the ledger as it finds it.
            None if was_kept && !store.is_shared() => {
                return Err(Refused::Missing { place: place.path().display().to_string() }.into());
            }
            None => begin(&*store, &key, &place).await?,
        };
        let known = vec![Some(signed.note.clone())];
        Ok(Arc::new(Signer {
            key,
            verifier,
            head: store.head(),
            store,
            place,
            work: tokio::sync::Mutex::new(Work { edge, known }),
            newest: watch::Sender::new(Arc::new(signed)),
            broken: watch::Sender::new(None),
            failures: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
        }))
    }
}

/// Another node may have signed what this one has not heard of yet.
async fn catch_up(store: &dyn Store, size: u64) {
    if store.is_shared() {
        let mut head = store.head();
        let _ = tokio::time::timeout(CATCH_UP, head.wait_for(|head| head.size() >= size)).await;
    }
}

/// Reads a checkpoint of this log found at `place`.
pub fn read(note: &str, key: &VerifierKey, place: &Path) -> Result<Checkpoint, Refused> {
    let wrong = |cause| Refused::OtherKey { place: place.display().to_string(), cause };
    read_checkpoint(note, key).map_err(wrong)
}

/// The tree as it was at the checkpoint, if the ledger still begins with it.
pub async fn continued(store: &dyn Store, kept: &Checkpoint, place: &Path) -> Result<Edge, StartError> {
    let entries = store.head().borrow().size();
    let place = place.display().to_string();
    if entries < kept.size {
        return Err(Refused::Older { place, entries, kept: kept.size }.into());
    }
    let edge = edge_at(store, kept.size).await?;
    if edge.root() == kept.root { Ok(edge) } else { Err(Refused::Fork { place, entries, kept: kept.size }.into()) }
}

/// The first checkpoint: of a new ledger, or of one from before there was a second place.
async fn begin(store: &dyn Store, key: &LogKey, place: &SecondPlace) -> Result<(Edge, Signed), StartError> {
    let edge = Edge::clone(&store.head().borrow());
    if edge.size() > 0 {
        let place = place.path().display();
        tracing::warn!(
            "the checkpoint of this ledger is kept in {place} from now on; put that on another disk if you can"
        );
    }
    let checkpoint = Checkpoint { origin: key.verifier().name, size: edge.size(), root: edge.root() };
    let note = key.note(checkpoint.text(), Haste::Checkpoint).await?;
    let swapped = place.swap(&[None], &note);
    swapped.map_err(|error| StartError::environment(place.path().display().to_string(), error))?;
    Ok((edge, Signed { checkpoint, note }))
}
