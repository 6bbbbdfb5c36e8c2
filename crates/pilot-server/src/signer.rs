//! Signs the head of the log, whenever someone asks for it and it has grown.

use std::sync::{Arc, Mutex, PoisonError};

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::merkle::Edge;
use pilot_evidence::note::NoteKey;
use tokio::sync::watch;

pub struct Signer {
    key: NoteKey,
    head: watch::Receiver<Arc<Edge>>,
    newest: Mutex<Option<Arc<Signed>>>,
}

pub struct Signed {
    pub checkpoint: Checkpoint,
    pub note: String,
}

impl Signer {
    pub fn new(key: NoteKey, head: watch::Receiver<Arc<Edge>>) -> Signer {
        Signer { key, head, newest: Mutex::new(None) }
    }

    /// A signed checkpoint that covers everything acknowledged so far.
    pub fn checkpoint(&self) -> Arc<Signed> {
        let edge = Arc::clone(&self.head.borrow());
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some(signed) if signed.checkpoint.size >= edge.size() => Arc::clone(signed),
            _ => {
                let origin = self.key.verifier().name;
                let checkpoint = Checkpoint { origin, size: edge.size(), root: edge.root() };
                let note = checkpoint.sign(&self.key);
                let signed = Arc::new(Signed { checkpoint, note });
                *newest = Some(Arc::clone(&signed));
                signed
            }
        }
    }
}
