//! Offers one checkpoint to one witness (C2SP tlog-witness).

use pilot_core::limits::WITNESS_ANSWER_DEADLINE;
use pilot_evidence::note::Note;
use pilot_evidence::witness::{AddCheckpoint, parse_cosignatures, parse_size};
use pilot_store::Store;
use pilot_wire::outgoing::Outgoing;

use super::trouble::OfferError;
use super::witness::Witness;
use crate::proofs;
use crate::signer::Signed;

/// The first request, one with the size the witness named, and one more for what happened in between.
const QUESTIONS_MAX: usize = 3;

/// The witness's signature line for the checkpoint.
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
    /// All of it, with the same root.
    All,
    /// At most its beginning: the witness can say nothing about what came after.
    Only(u64),
}

/// Asks a witness how much it has seen, without advancing it: the request pretends that it has seen the whole
/// checkpoint. A witness that has not replies with the size it knows, and stores nothing.
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
