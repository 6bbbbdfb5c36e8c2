//! C2SP tlog-cosignature, Ed25519: a witness states that at a given time this was the log's newest consistent head.
//!
//! The signature covers a header, the time and the checkpoint's text, so a cosignature can never be mistaken for a
//! log's signature, nor the other way round.

use std::fmt;

use ed25519_dalek::{Signer, SigningKey};
use zeroize::Zeroizing;

use crate::note::{
    KeyError, Note, NoteError, NoteKey, SignatureLine, check_ed25519, key_id, parse_private, parse_public,
    private_line, public_line, signature_line,
};

/// The signature type of timestamped Ed25519 cosignatures in signed notes.
const COSIGNATURE: u8 = 0x04;
/// The specification's own limit: the time must fit into a signed number.
const TIMESTAMP_MAX: u64 = i64::MAX.unsigned_abs();

/// A witness's private half. It cannot be printed; [`CosignerKey::to_line`] is only for the key file.
pub struct CosignerKey {
    name: String,
    key: SigningKey,
}

impl CosignerKey {
    pub fn generate(name: &str, seed: &[u8; 32]) -> Result<CosignerKey, KeyError> {
        NoteKey::check_name(name)?;
        Ok(CosignerKey { name: name.to_owned(), key: SigningKey::from_bytes(seed) })
    }

    /// Reads `PRIVATE+KEY+name+id+base64`.
    pub fn parse(line: &str) -> Result<CosignerKey, KeyError> {
        let (name, key) = parse_private(line, COSIGNATURE)?;
        Ok(CosignerKey { name, key })
    }

    pub fn to_line(&self) -> Zeroizing<String> {
        private_line(&self.name, COSIGNATURE, &self.key)
    }

    pub fn verifier(&self) -> CosignerVerifier {
        CosignerVerifier::new(&self.name, self.key.verifying_key().to_bytes())
    }

    /// One signature line, without the line end, over the text of a checkpoint. `time` is in seconds since 1970.
    pub fn cosign(&self, checkpoint_text: &str, time: u64) -> String {
        let time = time.min(TIMESTAMP_MAX);
        let signature = self.key.sign(message(checkpoint_text, time).as_bytes());
        let timestamped = [time.to_be_bytes().as_slice(), &signature.to_bytes()].concat();
        signature_line(&self.name, self.verifier().id, &timestamped)
    }
}

fn message(checkpoint_text: &str, time: u64) -> String {
    format!("cosignature/v1\ntime {time}\n{checkpoint_text}")
}

/// A witness's public half, as one line: `name+id+base64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CosignerVerifier {
    pub name: String,
    pub id: [u8; 4],
    pub public_key: [u8; 32],
}

impl CosignerVerifier {
    fn new(name: &str, public_key: [u8; 32]) -> CosignerVerifier {
        CosignerVerifier { name: name.to_owned(), id: key_id(name, COSIGNATURE, &public_key), public_key }
    }

    /// Reads `name+id+base64`.
    pub fn parse(line: &str) -> Result<CosignerVerifier, KeyError> {
        let (name, public_key) = parse_public(line, COSIGNATURE)?;
        Ok(CosignerVerifier::new(&name, public_key))
    }

    /// When this witness signed the checkpoint, in seconds since 1970; the latest time if it did so more than once.
    pub fn verify(&self, note: &Note<'_>) -> Result<u64, NoteError> {
        let mut latest = Err(NoteError::Unsigned);
        for claimed in note.claimed(&self.name, self.id) {
            let time = self.verify_line(note.text, claimed)?;
            latest = Ok(latest.map_or(time, |earlier: u64| earlier.max(time)));
        }
        latest
    }

    /// The time of one signature line of this witness over the text of a checkpoint.
    pub fn verify_line(&self, checkpoint_text: &str, line: &SignatureLine<'_>) -> Result<u64, NoteError> {
        if line.name != self.name || line.id != self.id {
            return Err(NoteError::Unsigned);
        }
        let (time, signature) = line.signature.split_first_chunk::<8>().ok_or(NoteError::Signature)?;
        let time = u64::from_be_bytes(*time);
        if time > TIMESTAMP_MAX {
            return Err(NoteError::Signature);
        }
        check_ed25519(&self.public_key, message(checkpoint_text, time).as_bytes(), signature)?;
        Ok(time)
    }
}

impl fmt::Display for CosignerVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&public_line(&self.name, COSIGNATURE, &self.public_key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Checkpoint;
    use crate::merkle::Hash;

    fn witness() -> CosignerKey {
        CosignerKey::generate("witness.example/w1", &[9; 32]).unwrap()
    }

    fn signed() -> String {
        let checkpoint = Checkpoint { origin: "log.example".into(), size: 7, root: Hash::of_leaf(b"x") };
        checkpoint.sign(&NoteKey::generate("log.example", &[5; 32]).unwrap())
    }

    #[test]
    fn a_cosigned_checkpoint_gives_its_time_and_no_changed_byte_passes() {
        let note = signed();
        let text = Note::parse(&note).unwrap().text;
        let both = format!("{note}{}\n", witness().cosign(text, 1_679_315_147));
        let verifier = witness().verifier();
        assert_eq!(verifier.verify(&Note::parse(&both).unwrap()), Ok(1_679_315_147));
        assert_eq!(verifier.verify(&Note::parse(&note).unwrap()), Err(NoteError::Unsigned));
        let log = NoteKey::generate("log.example", &[5; 32]).unwrap().verifier();
        assert!(Checkpoint::open(&both, &log).is_ok(), "the log's own signature still stands");
        // Except the line of the log's own signature, which this witness does not check.
        let lines: Vec<_> = both.match_indices('\n').map(|(at, _)| at).collect();
        for at in (0..lines[3]).chain(lines[4] + 1..both.len()) {
            let mut bytes = both.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let verdict = Note::parse(&changed).and_then(|note| verifier.verify(&note));
            assert!(verdict.is_err(), "byte {at}");
        }
    }

    #[test]
    fn the_latest_of_two_cosignatures_counts_and_a_wrong_one_spoils_both() {
        let note = signed();
        let text = Note::parse(&note).unwrap().text;
        let (early, late) = (witness().cosign(text, 10), witness().cosign(text, 20));
        let verify = |lines: &str| witness().verifier().verify(&Note::parse(&format!("{note}{lines}")).unwrap());
        assert_eq!(verify(&format!("{late}\n{early}\n")), Ok(20));
        let other = witness().cosign("log.example\n8\n", 30);
        assert_eq!(verify(&format!("{late}\n{other}\n")), Err(NoteError::Signature));
    }

    #[test]
    fn keys_of_logs_and_witnesses_are_not_taken_for_each_other() {
        let (log, witness) = (NoteKey::generate("one.example", &[1; 32]).unwrap(), witness());
        assert_eq!(CosignerKey::parse(&witness.to_line()).unwrap().verifier(), witness.verifier());
        assert_eq!(CosignerVerifier::parse(&witness.verifier().to_string()), Ok(witness.verifier()));
        assert_eq!(CosignerKey::parse(&log.to_line()).err(), Some(KeyError::Kind));
        assert_eq!(NoteKey::parse(&witness.to_line()).err(), Some(KeyError::Kind));
        assert_eq!(CosignerVerifier::parse(&log.verifier().to_string()), Err(KeyError::Kind));
    }

    #[test]
    fn the_specifications_example_has_the_time_it_says() {
        let line = "\u{2014} witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==";
        let parsed = SignatureLine::parse(line).unwrap();
        assert_eq!((parsed.name, parsed.signature.len()), ("witness.example.com/w1", 8 + 64));
        assert_eq!(parsed.signature[..8], 1_679_315_147_u64.to_be_bytes());
    }
}
