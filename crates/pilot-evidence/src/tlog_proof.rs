//! C2SP tlog-proof: proves that one entry is in the log, in a text that can be checked with only the keys.

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::merkle::Hash;
use crate::note::VerifierKey;
use crate::proof::{ProofError, check_inclusion};
use crate::witness::{PROOF_LINES_MAX, hash_lines, number};

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlogProof<'t> {
    pub index: u64,
    pub path: Vec<Hash>,
    /// The signed note, unchanged.
    pub checkpoint: &'t str,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TlogProofError {
    #[error("this is not a tlog-proof: expected {FIRST_LINE}, an index, hashes, an empty line and a checkpoint")]
    Format,
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Proof(#[from] ProofError),
}

impl<'t> TlogProof<'t> {
    pub fn to_text(&self) -> String {
        format!("{FIRST_LINE}\nindex {}\n{}\n{}", self.index, hash_lines(&self.path), self.checkpoint)
    }

    /// Reads the text strictly. Extra data, which the specification allows and nobody signs, is refused.
    pub fn parse(text: &'t str) -> Result<TlogProof<'t>, TlogProofError> {
        let (head, checkpoint) = text.split_once("\n\n").ok_or(TlogProofError::Format)?;
        let mut lines = head.split('\n');
        if lines.next() != Some(FIRST_LINE) {
            return Err(TlogProofError::Format);
        }
        let index = lines.next().and_then(|line| line.strip_prefix("index ")).and_then(number);
        let index = index.ok_or(TlogProofError::Format)?;
        let path: Option<Vec<_>> = lines.map(Hash::from_base64).collect();
        let path = path.filter(|path| path.len() <= PROOF_LINES_MAX + 1).ok_or(TlogProofError::Format)?;
        Ok(TlogProof { index, path, checkpoint })
    }

    /// Checks that the log signed a tree in which this entry has this index.
    pub fn check(&self, entry: &[u8], key: &VerifierKey) -> Result<Checkpoint, TlogProofError> {
        let checkpoint = Checkpoint::open(self.checkpoint, key)?;
        check_inclusion(Hash::of_leaf(entry), self.index, checkpoint.size, &self.path, checkpoint.root)?;
        Ok(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::root_of;
    use crate::note::NoteKey;

    #[test]
    fn a_proof_reads_as_it_is_written_and_proves_its_entry_alone() {
        let key = NoteKey::generate("log.example", &[5; 32]).unwrap();
        let (first, second) = (Hash::of_leaf(b"first"), Hash::of_leaf(b"second"));
        let head = Checkpoint { origin: "log.example".into(), size: 2, root: root_of(&[first, second]) };
        let note = head.sign(&key);
        let proof = TlogProof { index: 1, path: vec![first], checkpoint: &note };
        let text = proof.to_text();
        assert!(text.starts_with("c2sp.org/tlog-proof@v1\nindex 1\n"));
        assert_eq!(TlogProof::parse(&text), Ok(proof.clone()));
        assert_eq!(proof.check(b"second", &key.verifier()), Ok(head));
        assert_eq!(proof.check(b"first", &key.verifier()), Err(TlogProofError::Proof(ProofError::Root)));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let verdict = TlogProof::parse(&changed).and_then(|proof| proof.check(b"second", &key.verifier()));
            assert!(verdict.is_err(), "byte {at}");
        }
        let alone = TlogProof { index: 0, path: vec![], checkpoint: &note };
        assert_eq!(TlogProof::parse(&alone.to_text()), Ok(alone));
    }
}
