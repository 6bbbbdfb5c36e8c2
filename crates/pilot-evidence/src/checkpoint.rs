//! Checkpoints: the signed statement "my log has this many entries, and this root" (C2SP tlog-checkpoint).

use crate::merkle::Hash;
use crate::note::{NoteError, NoteKey, VerifierKey, open};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub origin: String,
    pub size: u64,
    pub root: Hash,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CheckpointError {
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error("the note is not a checkpoint: it needs an origin, a size and a root, each on its own line")]
    Format,
    #[error("the checkpoint belongs to another log")]
    Origin,
}

impl Checkpoint {
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, self.root.to_base64())
    }

    /// The text, an empty line, and the log's signature.
    pub fn sign(&self, key: &NoteKey) -> String {
        let text = self.text();
        let signature = key.sign(&text);
        format!("{text}\n{signature}\n")
    }

    /// Reads the text of a checkpoint; further lines are extensions, which are signed, and which we ignore.
    pub fn parse(text: &str) -> Result<Checkpoint, CheckpointError> {
        let mut lines = text.split_terminator('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(CheckpointError::Format);
        };
        let plain = size == "0" || (!size.starts_with('0') && size.bytes().all(|digit| digit.is_ascii_digit()));
        let size = size.parse().ok().filter(|_| plain).ok_or(CheckpointError::Format)?;
        let root = Hash::from_base64(root).ok_or(CheckpointError::Format)?;
        if origin.is_empty() || lines.any(str::is_empty) || !text.ends_with('\n') {
            return Err(CheckpointError::Format);
        }
        Ok(Checkpoint { origin: origin.to_owned(), size, root })
    }

    /// Reads a signed checkpoint and checks the log's own signature.
    pub fn open(note: &str, key: &VerifierKey) -> Result<Checkpoint, CheckpointError> {
        let checkpoint = Checkpoint::parse(open(note, key)?)?;
        if checkpoint.origin == key.name { Ok(checkpoint) } else { Err(CheckpointError::Origin) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> NoteKey {
        NoteKey::generate("pilot.example.org/log", &[5; 32]).unwrap()
    }

    #[test]
    fn a_signed_checkpoint_opens_with_the_verifier_key_and_no_changed_byte_does() {
        let checkpoint = Checkpoint { origin: "pilot.example.org/log".into(), size: 42, root: Hash::of_leaf(b"x") };
        let note = checkpoint.sign(&key());
        assert_eq!(Checkpoint::open(&note, &key().verifier()), Ok(checkpoint));
        for at in 0..note.len() {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(Checkpoint::open(&changed, &key().verifier()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn another_logs_checkpoint_is_refused_though_the_key_is_right() {
        let checkpoint = Checkpoint { origin: "elsewhere".into(), size: 1, root: Hash::of_nothing() };
        let note = checkpoint.sign(&key());
        assert_eq!(Checkpoint::open(&note, &key().verifier()), Err(CheckpointError::Origin));
    }

    #[test]
    fn sloppy_checkpoints_are_refused() {
        let root = Hash::of_nothing().to_base64();
        for wrong in [
            String::new(),
            format!("o\n1\n{root}"),
            format!("o\n01\n{root}\n"),
            format!("o\n+1\n{root}\n"),
            format!("o\n-1\n{root}\n"),
            format!("\n1\n{root}\n"),
            format!("o\n1\n{}\n", &root[1..]),
            format!("o\n1\n{root}\n\n"),
            "o\n1\n".to_owned(),
        ] {
            assert_eq!(Checkpoint::parse(&wrong), Err(CheckpointError::Format), "{wrong:?}");
        }
        assert!(Checkpoint::parse(&format!("o\n1\n{root}\nextension\n")).is_ok());
    }

    #[test]
    fn a_root_in_padded_pieces_is_not_a_root() {
        let text = "log.example\n21\ntGZzuZKhgFxsmvwPmgV6lZ1WguSAttky+TTqMpw=1Sae\n";
        assert!(Checkpoint::parse(text).is_err());
    }
}
