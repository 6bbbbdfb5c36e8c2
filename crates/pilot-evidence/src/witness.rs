//! C2SP tlog-witness: what a log and a witness send each other, as text. Connections are handled elsewhere.

use crate::checkpoint::Checkpoint;
use crate::cosignature::CosignerVerifier;
use crate::merkle::Hash;
use crate::note::{Note, NoteError, SignatureLine};
use crate::proof::{ProofError, check_consistency};

/// No tree with a 64-bit size needs more, and the specification forbids it.
pub const PROOF_LINES_MAX: usize = 63;
/// The content type of a 409 answer that contains a size.
pub const SIZE_CONTENT_TYPE: &str = "text/x.tlog.size";

/// The body of `POST …/add-checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddCheckpoint<'b> {
    /// The size up to which the witness has cosigned, as far as the log knows.
    pub old: u64,
    pub proof: Vec<Hash>,
    /// The signed note, unchanged.
    pub checkpoint: &'b str,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BodyError {
    #[error("the body must be an old size, hashes, an empty line and a checkpoint")]
    Format,
    #[error("the body has more than {PROOF_LINES_MAX} hashes")]
    TooLong,
    #[error(transparent)]
    Note(#[from] NoteError),
}

impl<'b> AddCheckpoint<'b> {
    pub fn to_body(&self) -> String {
        format!("old {}\n{}\n{}", self.old, hash_lines(&self.proof), self.checkpoint)
    }

    pub fn parse(body: &'b str) -> Result<AddCheckpoint<'b>, BodyError> {
        let (head, checkpoint) = body.split_once("\n\n").ok_or(BodyError::Format)?;
        let mut lines = head.split('\n');
        let old = lines.next().and_then(|line| line.strip_prefix("old ")).and_then(number).ok_or(BodyError::Format)?;
        let proof: Vec<_> =
            lines.map(|line| Hash::from_base64(line).ok_or(BodyError::Format)).collect::<Result<_, _>>()?;
        if proof.len() > PROOF_LINES_MAX {
            return Err(BodyError::TooLong);
        }
        Note::parse(checkpoint)?;
        Ok(AddCheckpoint { old, proof, checkpoint })
    }
}

/// Why a witness does not cosign; the numbers are the specification's HTTP statuses.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum Refused {
    #[error("the old size is larger than the checkpoint's")]
    Backwards,
    /// The answer's body is [`size_body`] of this size.
    #[error("the newest cosigned checkpoint has {size} entries")]
    OtherSize { size: u64 },
    #[error("the same size was cosigned with another root: the log has forked")]
    OtherRoot { size: u64 },
    #[error("the new checkpoint does not continue the cosigned one ({0})")]
    Inconsistent(ProofError),
}

impl Refused {
    pub const fn status(self) -> u16 {
        match self {
            Refused::Backwards => 400,
            Refused::OtherSize { .. } | Refused::OtherRoot { .. } => 409,
            Refused::Inconsistent(_) => 422,
        }
    }
}

/// What a witness checks after the log's signature: does the new head continue the one cosigned last?
pub fn check_growth(cosigned: Option<&Checkpoint>, old: u64, new: &Checkpoint, proof: &[Hash]) -> Result<(), Refused> {
    if old > new.size {
        return Err(Refused::Backwards);
    }
    let (size, root) = cosigned.map_or((0, Hash::of_nothing()), |cosigned| (cosigned.size, cosigned.root));
    // Before the size the request names: two signed roots for one size prove a fork, however they got here.
    if size == new.size && root != new.root {
        return Err(Refused::OtherRoot { size });
    }
    if old != size {
        return Err(Refused::OtherSize { size });
    }
    check_consistency(size, root, new.size, new.root, proof).map_err(Refused::Inconsistent)
}

/// The body of a 409 answer.
pub fn size_body(size: u64) -> String {
    format!("{size}\n")
}

pub fn parse_size(body: &str) -> Result<u64, BodyError> {
    body.strip_suffix('\n').and_then(number).ok_or(BodyError::Format)
}

/// The signature lines of a 200 answer that this witness really made over the checkpoint. Others are ignored.
pub fn parse_cosignatures<'b>(
    body: &'b str,
    checkpoint_text: &str,
    witness: &CosignerVerifier,
) -> Result<Vec<(SignatureLine<'b>, u64)>, BodyError> {
    if !body.ends_with('\n') {
        return Err(BodyError::Format);
    }
    let mut ours = Vec::new();
    for line in body.split_terminator('\n').take(crate::note::SIGNATURES_MAX) {
        let line = SignatureLine::parse(line)?;
        if line.name == witness.name && line.id == witness.id {
            let time = witness.verify_line(checkpoint_text, &line)?;
            ours.push((line, time));
        }
    }
    if ours.is_empty() { Err(NoteError::Unsigned.into()) } else { Ok(ours) }
}

/// A decimal number as the specifications write it: no sign and no leading zeros.
pub(crate) fn number(text: &str) -> Option<u64> {
    let plain = text == "0" || (!text.starts_with('0') && text.bytes().all(|digit| digit.is_ascii_digit()));
    text.parse().ok().filter(|_| plain)
}

pub(crate) fn hash_lines(hashes: &[Hash]) -> String {
    hashes.iter().map(|hash| hash.to_base64() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cosignature::CosignerKey;
    use crate::merkle::root_of;
    use crate::note::NoteKey;

    fn head(leaves: &[Hash]) -> Checkpoint {
        Checkpoint { origin: "log.example".into(), size: leaves.len() as u64, root: root_of(leaves) }
    }

    fn leaves(count: u8) -> Vec<Hash> {
        (0..count).map(|number| Hash::of_leaf(&[number])).collect()
    }

    #[test]
    fn a_request_reads_as_it_is_written_and_sloppy_ones_do_not() {
        let note = head(&leaves(3)).sign(&NoteKey::generate("log.example", &[5; 32]).unwrap());
        for proof in [vec![], leaves(2)] {
            let request = AddCheckpoint { old: 2, proof, checkpoint: &note };
            assert_eq!(AddCheckpoint::parse(&request.to_body()), Ok(request.clone()), "{}", request.to_body());
        }
        let many = AddCheckpoint { old: 1, proof: vec![Hash::of_nothing(); 64], checkpoint: &note };
        assert_eq!(AddCheckpoint::parse(&many.to_body()), Err(BodyError::TooLong));
        for wrong in ["", "old 1", "old 01\n\nx", "new 1\n\nx", "old 1\nzz\n\nx", "old -1\n\nx", "old 1\r\n\nx"] {
            assert!(AddCheckpoint::parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!((parse_size("12\n"), size_body(12).as_str()), (Ok(12), "12\n"));
        for wrong in ["", "12", "012\n", "+1\n", "1\n\n", "x\n"] {
            assert_eq!(parse_size(wrong), Err(BodyError::Format), "{wrong:?}");
        }
    }

    #[test]
    fn only_a_head_that_continues_the_cosigned_one_is_taken() {
        let all = leaves(3);
        let (one, two, three) = (head(&all[..1]), head(&all[..2]), head(&all));
        let other = head(&[all[1], all[0]]);
        assert_eq!(check_growth(None, 0, &two, &[]), Ok(()));
        assert_eq!(check_growth(Some(&two), 2, &three, &[all[2]]), Ok(()));
        assert_eq!(check_growth(Some(&two), 2, &two, &[]), Ok(()), "the same head may be cosigned again");
        assert_eq!(check_growth(Some(&two), 2, &one, &[]), Err(Refused::Backwards));
        assert_eq!(check_growth(Some(&two), 1, &three, &[]), Err(Refused::OtherSize { size: 2 }));
        assert_eq!(check_growth(None, 1, &three, &[]), Err(Refused::OtherSize { size: 0 }));
        for old in [0, 1, 2] {
            assert_eq!(check_growth(Some(&two), old, &other, &[]), Err(Refused::OtherRoot { size: 2 }));
        }
        let wrong = check_growth(Some(&two), 2, &three, &[all[1]]);
        assert_eq!(wrong, Err(Refused::Inconsistent(ProofError::Root)));
        assert_eq!(wrong.map_err(Refused::status), Err(422));
    }

    #[test]
    fn an_answer_gives_the_lines_of_the_witness_alone() {
        let text = head(&leaves(3)).text();
        let witness = |number: u8| CosignerKey::generate(&format!("w{number}.example"), &[number; 32]).unwrap();
        let (ours, theirs) = (witness(1).cosign(&text, 5), witness(2).cosign(&text, 6));
        let body = format!("{theirs}\n{ours}\n");
        let found = parse_cosignatures(&body, &text, &witness(1).verifier()).unwrap();
        assert_eq!(found.iter().map(|(line, time)| (line.line, *time)).collect::<Vec<_>>(), [(ours.as_str(), 5)]);
        let unsigned = parse_cosignatures(&body, &text, &witness(3).verifier());
        assert_eq!(unsigned, Err(BodyError::Note(NoteError::Unsigned)));
        let other = parse_cosignatures(&body, "log.example\n9\n", &witness(1).verifier());
        assert_eq!(other, Err(BodyError::Note(NoteError::Signature)));
    }
}
