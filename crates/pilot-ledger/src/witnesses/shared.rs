//! Of several nodes one asks the witnesses; the others learn the cosignatures from the ledger's database, and check them
//! as if they had come from the witnesses themselves.

use std::sync::Arc;

use pilot_evidence::note::Note;
use pilot_evidence::witness::parse_cosignatures;
use pilot_store::{Fact, NoRecord, Situation, Store, Subject, Write};
use serde::{Deserialize, Serialize};

use super::cosigning::Witnesses;
use crate::persisted;
use crate::signer::Signer;

const COSIGNED: &str = "cosigned";

/// The newest checkpoint with the cosignatures it has so far.
#[derive(Debug, Serialize, Deserialize)]
struct Cosigned {
    size: u64,
    /// How many witnesses have cosigned it.
    count: usize,
    note: String,
}

/// Stores the checkpoint of this size with its cosignatures, unless a better one is stored already.
pub(super) async fn tell(witnesses: &Witnesses, store: &Arc<dyn Store>, size: u64) {
    if !store.is_shared() {
        return;
    }
    let told =
        witnesses.gathered().get(&size).map(|found| Cosigned { size, count: found.lines.len(), note: found.text() });
    let Some(told) = told else { return };
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

/// Takes in what the node that asks the witnesses has stored.
pub(super) async fn learn(witnesses: &Witnesses, signer: &Signer) {
    let Ok(Some(bytes)) = signer.store().fact(COSIGNED).await else { return };
    let Ok(stored) = persisted::from_bytes::<Cosigned>("the cosigned checkpoint", &bytes) else { return };
    let Some(signed) = signer.signed_elsewhere(&stored.note).await else { return };
    let (signed, Ok(note)) = (Arc::new(signed), Note::parse(&stored.note)) else { return };
    let lines: String = note.signatures.iter().map(|signature| format!("{}\n", signature.line)).collect();
    for (number, witness) in witnesses.list().iter().enumerate() {
        let cosigned = parse_cosignatures(&lines, note.text, &witness.key).ok();
        if let Some((line, _)) = cosigned.and_then(|lines| lines.into_iter().max_by_key(|(_, time)| *time)) {
            witnesses.gather(number, &signed, line.line);
        }
    }
}
