//! Of several nodes one asks the witnesses; the others learn the cosignatures from the ledger's database, and check them
//! as if they had come from the witnesses themselves.

use std::sync::Arc;

use pilot_evidence::note::Note;
use pilot_evidence::witness::parse_cosignatures;
use pilot_store::{Fact, NoRecord, Situation, Store, Subject, Write};
use serde::{Deserialize, Serialize};

use super::witness::Witness;
use crate::persisted;
use crate::signer::{Signed, Signer};

const COSIGNED: &str = "cosigned";

/// The newest checkpoint with the cosignatures it has so far.
#[derive(Debug, Serialize, Deserialize)]
struct Cosigned {
    size: u64,
    /// How many witnesses have cosigned it.
    count: usize,
    note: String,
}

/// Stores a checkpoint with the cosignatures it has so far, unless a better one is stored already.
pub(super) async fn tell(store: &Arc<dyn Store>, size: u64, count: usize, note: String) {
    let told = Cosigned { size, count, note };
    let decide = move |situation: &Situation<'_>| {
        let stored = situation.facts.first().and_then(Option::as_deref);
        let stored = stored.and_then(|bytes| persisted::from_bytes::<Cosigned>("the cosigned checkpoint", bytes).ok());
        if stored.is_some_and(|stored| (stored.size, stored.count) >= (told.size, told.count)) {
            return Err(NoRecord::Nothing);
        }
        let value = Some(persisted::to_bytes(&told));
        Err(NoRecord::Note(vec![Fact { name: COSIGNED.to_owned(), value }]))
    };
    let write = Write::new(Subject::Ledger, None, decide).reading([COSIGNED.to_owned()]);
    if let Err(error) = store.settle(write).await {
        // The next round brings newer ones.
        tracing::debug!(cause = %error, "cosignatures could not be shared with other nodes");
    }
}

/// What the node that asks the witnesses has stored: a checkpoint, and the cosignature of each witness by its number.
pub(super) async fn learn(list: &[Arc<Witness>], signer: &Signer) -> Option<(Arc<Signed>, Vec<(usize, String)>)> {
    let bytes = signer.store().fact(COSIGNED).await.ok()??;
    let stored = persisted::from_bytes::<Cosigned>("the cosigned checkpoint", &bytes).ok()?;
    let checkpoint = signer.signed_elsewhere(&stored.note).await?;
    let note = Note::parse(&stored.note).ok()?;
    let lines: String = note.signatures.iter().map(|signature| format!("{}\n", signature.line)).collect();
    let cosignature = |witness: &Arc<Witness>| {
        let cosigned = parse_cosignatures(&lines, note.text, &witness.key).ok()?;
        cosigned.into_iter().max_by_key(|(_, time)| *time).map(|(line, _)| line.line.to_owned())
    };
    let found = list.iter().enumerate().filter_map(|(number, witness)| Some((number, cosignature(witness)?)));
    Some((Arc::new(checkpoint), found.collect()))
}
