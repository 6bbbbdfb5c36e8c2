//! One checkpoint offered to one witness (C2SP tlog-witness).

use pilot_core::limits::WITNESS_ANSWER_DEADLINE;
use pilot_evidence::note::Note;
use pilot_evidence::witness::{AddCheckpoint, parse_cosignatures, parse_size};
use pilot_store::{Store, StoreError};

use super::Witness;
use crate::outgoing::{Outgoing, OutgoingError};
use crate::proofs;
use crate::signer::Signed;

/// The first question, the one with the size the witness has named, and one more for what happened in between.
const QUESTIONS_MAX: usize = 3;

#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    #[error("it cannot be reached: {0}")]
    Unreachable(#[from] OutgoingError),
    #[error("the proof for it cannot be computed: {0}")]
    Store(#[from] StoreError),
    #[error("it does not know this log (404); give it the line `pilot log key` prints")]
    UnknownLog,
    #[error("it does not accept this log's key (403); give it the line `pilot log key` prints")]
    UnknownKey,
    #[error("it has cosigned {theirs} entries of this log, but the ledger has {ours}: entries are missing here")]
    Ahead { ours: u64, theirs: u64 },
    #[error("it has cosigned another root at {size} entries: this log has forked")]
    OtherRoot { size: u64 },
    #[error("what it has cosigned at {size} entries is not the beginning of this ledger: this log has forked")]
    Inconsistent { size: u64 },
    #[error("it answered {0}, which is not a valid answer from a witness")]
    Strange(String),
}

impl OfferError {
    /// Whether there is a second history of this log.
    pub fn is_conflict(&self) -> bool {
        matches!(self, OfferError::Ahead { .. } | OfferError::OtherRoot { .. } | OfferError::Inconsistent { .. })
    }
}

/// The witness's signature line under the checkpoint.
pub async fn offer(
    outgoing: &Outgoing,
    store: &dyn Store,
    witness: &Witness,
    signed: &Signed,
) -> Result<String, OfferError> {
    let size = signed.checkpoint.size;
    let mut old = witness.cosigned_size().min(size);
    for _ in 0..QUESTIONS_MAX {
        let proof = proofs::consistency(store, old, size).await?;
        let body = AddCheckpoint { old, proof, checkpoint: &signed.note }.to_body();
        let reply = outgoing.post(&witness.url, body, WITNESS_ANSWER_DEADLINE).await?;
        let text = String::from_utf8_lossy(&reply.body);
        match reply.status {
            200 => return cosignature(&text, witness, signed),
            403 => return Err(OfferError::UnknownKey),
            404 => return Err(OfferError::UnknownLog),
            409 => {
                let theirs = parse_size(&text).map_err(|error| OfferError::Strange(format!("409 and {error}")))?;
                match theirs {
                    _ if theirs > size => return Err(OfferError::Ahead { ours: size, theirs }),
                    _ if theirs == old => return Err(OfferError::OtherRoot { size: theirs }),
                    _ => {}
                }
                witness.is_at(theirs);
                old = theirs;
            }
            422 => return Err(OfferError::Inconsistent { size: old }),
            other => return Err(OfferError::Strange(other.to_string())),
        }
    }
    Err(OfferError::Strange("409 again and again".into()))
}

/// How much of a log a witness has seen, compared with a checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    /// All of it, and it was the same.
    All,
    /// Its beginning at the most: about what came after, the witness can say nothing.
    Only(u64),
}

/// Asks a witness how far it has come, without moving it there: as if it had seen all of the checkpoint already. One that
/// has not says how much it has seen, and keeps nothing.
pub async fn ask(outgoing: &Outgoing, witness: &Witness, signed: &Signed) -> Result<Seen, OfferError> {
    let size = signed.checkpoint.size;
    let body = AddCheckpoint { old: size, proof: Vec::new(), checkpoint: &signed.note }.to_body();
    let reply = outgoing.post(&witness.url, body, WITNESS_ANSWER_DEADLINE).await?;
    let text = String::from_utf8_lossy(&reply.body);
    match reply.status {
        200 => cosignature(&text, witness, signed).map(|_| Seen::All),
        403 => Err(OfferError::UnknownKey),
        404 => Err(OfferError::UnknownLog),
        409 => match parse_size(&text).map_err(|error| OfferError::Strange(format!("409 and {error}")))? {
            theirs if theirs > size => Err(OfferError::Ahead { ours: size, theirs }),
            theirs if theirs == size => Err(OfferError::OtherRoot { size }),
            theirs => Ok(Seen::Only(theirs)),
        },
        422 => Err(OfferError::Inconsistent { size }),
        other => Err(OfferError::Strange(other.to_string())),
    }
}

fn cosignature(body: &str, witness: &Witness, signed: &Signed) -> Result<String, OfferError> {
    let strange = |error: String| OfferError::Strange(format!("200, but {error}"));
    let note = Note::parse(&signed.note).map_err(|error| strange(error.to_string()))?;
    let lines = parse_cosignatures(body, note.text, &witness.key).map_err(|error| strange(error.to_string()))?;
    let newest = lines.into_iter().max_by_key(|(_, time)| *time);
    newest.map(|(line, _)| line.line.to_owned()).ok_or_else(|| strange("without a cosignature".into()))
}
