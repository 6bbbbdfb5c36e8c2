//! C2SP signed notes: a text, an empty line, and signatures, each naming the key that made it.
//!
//! A key has a name, and an id made of the name and the public key, so that a signature says which key it wants.

use std::fmt;

use data_encoding::{BASE64, HEXLOWER};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The signature type of Ed25519 in signed notes.
const ED25519: u8 = 0x01;
/// An em dash and a space begin each signature line.
const SIGNATURE_MARK: &str = "\u{2014} ";

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    #[error("a key name is not empty and has no spaces and no plus sign")]
    Name,
    #[error("this is not a log signing key: it should be one line that begins with PRIVATE+KEY+")]
    Format,
    #[error("this is not a verifier key: it should be one line, name+id+base64")]
    VerifierFormat,
    #[error("the key does not match the id written beside it; the line was changed or cut")]
    Id,
}

/// The private half. It cannot be printed; [`NoteKey::to_line`] is for the key file alone.
pub struct NoteKey {
    name: String,
    key: SigningKey,
}

impl NoteKey {
    pub fn generate(name: &str, seed: &[u8; 32]) -> Result<NoteKey, KeyError> {
        NoteKey::check_name(name)?;
        Ok(NoteKey { name: name.to_owned(), key: SigningKey::from_bytes(seed) })
    }

    pub fn check_name(name: &str) -> Result<(), KeyError> {
        let forbidden = |character: char| character.is_whitespace() || character.is_control() || character == '+';
        if name.is_empty() || name.contains(forbidden) { Err(KeyError::Name) } else { Ok(()) }
    }

    /// Reads `PRIVATE+KEY+name+id+base64`.
    pub fn parse(line: &str) -> Result<NoteKey, KeyError> {
        let rest = line.trim_end().strip_prefix("PRIVATE+KEY+").ok_or(KeyError::Format)?;
        let mut parts = rest.splitn(3, '+');
        let (Some(name), Some(id), Some(encoded)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(KeyError::Format);
        };
        let bytes = Zeroizing::new(BASE64.decode(encoded.as_bytes()).map_err(|_| KeyError::Format)?);
        let [ED25519, seed @ ..] = bytes.as_slice() else { return Err(KeyError::Format) };
        let seed = Zeroizing::new(<[u8; 32]>::try_from(seed).map_err(|_| KeyError::Format)?);
        let key = NoteKey::generate(name, &seed)?;
        if HEXLOWER.encode(&key.verifier().id) == id { Ok(key) } else { Err(KeyError::Id) }
    }

    pub fn to_line(&self) -> Zeroizing<String> {
        let seed = Zeroizing::new(self.key.to_bytes());
        let mut bytes = Zeroizing::new(vec![ED25519]);
        bytes.extend_from_slice(seed.as_slice());
        let encoded = Zeroizing::new(BASE64.encode(&bytes));
        Zeroizing::new(format!("PRIVATE+KEY+{}+{}+{}\n", self.name, HEXLOWER.encode(&self.verifier().id), *encoded))
    }

    /// One signature line, without its end: `— name base64(id, signature)`.
    pub fn sign(&self, text: &str) -> String {
        let mut bytes = self.verifier().id.to_vec();
        bytes.extend_from_slice(&self.key.sign(text.as_bytes()).to_bytes());
        format!("{SIGNATURE_MARK}{} {}", self.name, BASE64.encode(&bytes))
    }

    pub fn verifier(&self) -> VerifierKey {
        VerifierKey::new(&self.name, self.key.verifying_key().to_bytes())
    }
}

/// The public half, as the one line people hand to each other: `name+id+base64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    pub name: String,
    pub id: [u8; 4],
    pub public_key: [u8; 32],
}

impl VerifierKey {
    fn new(name: &str, public_key: [u8; 32]) -> VerifierKey {
        let mut hash = Sha256::new();
        hash.update(name.as_bytes());
        hash.update([b'\n', ED25519]);
        hash.update(public_key);
        let whole: [u8; 32] = hash.finalize().into();
        VerifierKey { name: name.to_owned(), id: whole.first_chunk().copied().unwrap_or_default(), public_key }
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoteError {
    #[error("this is no signed note: a text, an empty line and signature lines are expected")]
    Format,
    #[error("the note has no signature of this key")]
    Unsigned,
    #[error("the signature does not match the text")]
    Signature,
}

/// The text of a note that `key` has signed. Signatures of other keys are passed over.
pub fn open<'a>(note: &'a str, key: &VerifierKey) -> Result<&'a str, NoteError> {
    let at = note.rfind("\n\n").ok_or(NoteError::Format)?;
    let (text, signatures) = (note.get(..=at).unwrap_or(""), note.get(at + 2..).unwrap_or(""));
    if !signatures.ends_with('\n') || text.contains(|c: char| c.is_control() && c != '\n') {
        return Err(NoteError::Format);
    }
    let mut ours = Err(NoteError::Unsigned);
    for line in signatures.split_terminator('\n') {
        let (name, encoded) =
            line.strip_prefix(SIGNATURE_MARK).and_then(|rest| rest.split_once(' ')).ok_or(NoteError::Format)?;
        let bytes = BASE64.decode(encoded.as_bytes()).map_err(|_| NoteError::Format)?;
        let (id, signature) = bytes.split_at_checked(4).ok_or(NoteError::Format)?;
        if name == key.name && id == key.id {
            key.check(text, signature)?;
            ours = Ok(text);
        }
    }
    ours
}

impl VerifierKey {
    /// Reads `name+id+base64`.
    pub fn parse(line: &str) -> Result<VerifierKey, KeyError> {
        let mut parts = line.trim_end().splitn(3, '+');
        let (Some(name), Some(id), Some(encoded)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(KeyError::VerifierFormat);
        };
        let bytes = BASE64.decode(encoded.as_bytes()).map_err(|_| KeyError::VerifierFormat)?;
        let [ED25519, public_key @ ..] = bytes.as_slice() else { return Err(KeyError::VerifierFormat) };
        let public_key = <[u8; 32]>::try_from(public_key).map_err(|_| KeyError::VerifierFormat)?;
        let key = VerifierKey::new(name, public_key);
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(KeyError::Name);
        }
        if HEXLOWER.encode(&key.id) == id { Ok(key) } else { Err(KeyError::Id) }
    }

    fn check(&self, text: &str, signature: &[u8]) -> Result<(), NoteError> {
        let signature = Signature::from_slice(signature).map_err(|_| NoteError::Signature)?;
        let key = VerifyingKey::from_bytes(&self.public_key).map_err(|_| NoteError::Signature)?;
        key.verify_strict(text.as_bytes(), &signature).map_err(|_| NoteError::Signature)
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![ED25519];
        bytes.extend_from_slice(&self.public_key);
        write!(f, "{}+{}+{}", self.name, HEXLOWER.encode(&self.id), BASE64.encode(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example key of the signed-note specification and of Go's sumdb/note package.
    const PRIVATE: &str = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
    const PUBLIC: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";

    #[test]
    fn keys_read_and_write_as_the_public_specification_shows() {
        let key = NoteKey::parse(PRIVATE).unwrap();
        assert_eq!(key.verifier().to_string(), PUBLIC);
        assert_eq!(key.to_line().trim_end(), PRIVATE);
    }

    #[test]
    fn a_changed_key_line_is_refused() {
        assert_eq!(NoteKey::parse("").err(), Some(KeyError::Format));
        assert_eq!(NoteKey::parse(PUBLIC).err(), Some(KeyError::Format));
        assert_eq!(NoteKey::parse(&PRIVATE.replace("Peter", "Pater")).err(), Some(KeyError::Id));
        assert_eq!(NoteKey::parse(&PRIVATE.replace("AYEK", "AYEL")).err(), Some(KeyError::Id));
        assert_eq!(NoteKey::generate("two words", &[0; 32]).err(), Some(KeyError::Name));
    }
}
