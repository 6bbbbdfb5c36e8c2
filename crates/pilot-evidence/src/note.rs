//! C2SP signed notes: a text, an empty line, and signatures, each naming the key that made it.
//!
//! A key has a name, and an id derived from the name and the public key, so that a signature says which key checks it.

use std::fmt;

use data_encoding::{BASE64, HEXLOWER};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use pilot_core::certain::Certain as _;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The signature type of Ed25519 in signed notes.
const ED25519: u8 = 0x01;
/// An em dash and a space begin each signature line.
const SIGNATURE_MARK: &str = "\u{2014} ";
/// More than any log has witnesses. The specification requires a limit, of at least 16.
pub const SIGNATURES_MAX: usize = 64;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    #[error("a key name must not be empty or contain spaces or a plus sign")]
    Name,
    #[error("this is not a log signing key: it should be one line that begins with PRIVATE+KEY+")]
    Format,
    #[error("this is not a verifier key: it should be one line, name+id+base64")]
    VerifierFormat,
    #[error("the key does not match its id; the line was changed or cut off")]
    Id,
    #[error("the key has the wrong type: a log signs with Ed25519 (1), a witness with Ed25519 cosignatures (4)")]
    Kind,
}

/// The private half. It cannot be printed; [`NoteKey::to_line`] is only for the key file.
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
        let (name, key) = parse_private(line, ED25519)?;
        Ok(NoteKey { name, key })
    }

    pub fn to_line(&self) -> Zeroizing<String> {
        private_line(&self.name, ED25519, &self.key)
    }

    /// One signature line, without the line end: `— name base64(id, signature)`.
    pub fn sign(&self, text: &str) -> String {
        signature_line(&self.name, self.verifier().id, &self.sign_bytes(text.as_bytes()))
    }

    pub fn sign_bytes(&self, bytes: &[u8]) -> [u8; 64] {
        self.key.sign(bytes).to_bytes()
    }

    /// For other tools: the private key as PEM (RFC 8410).
    pub fn to_pem(&self) -> Zeroizing<String> {
        // A version, the algorithm's identifier, 1.3.101.112, and the seed as an octet string in another.
        let head = [0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
        let seed = Zeroizing::new(self.key.to_bytes());
        let der = Zeroizing::new([&head[..], seed.as_slice()].concat());
        let encoded = Zeroizing::new(BASE64.encode(&der));
        Zeroizing::new(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", *encoded))
    }

    pub fn verifier(&self) -> VerifierKey {
        VerifierKey::new(&self.name, self.key.verifying_key().to_bytes())
    }
}

/// The public half, as the line that people give to each other: `name+id+base64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    pub name: String,
    pub id: [u8; 4],
    pub public_key: [u8; 32],
}

impl VerifierKey {
    pub fn new(name: &str, public_key: [u8; 32]) -> VerifierKey {
        VerifierKey { name: name.to_owned(), id: key_id(name, ED25519, &public_key), public_key }
    }

    /// The note that a signature of `text` makes of it, if this key's private half made the signature.
    pub fn note(&self, mut text: String, signature: &[u8; 64]) -> Result<String, NoteError> {
        self.check(text.as_bytes(), signature)?;
        text.extend(["\n", &signature_line(&self.name, self.id, signature), "\n"]);
        Ok(text)
    }

    /// Whether this key's private half has signed these bytes.
    pub fn check(&self, message: &[u8], signature: &[u8]) -> Result<(), NoteError> {
        check_ed25519(&self.public_key, message, signature)
    }

    /// For other tools: the public key as PEM (RFC 8410).
    pub fn to_pem(&self) -> String {
        // A sequence of the algorithm's identifier, 1.3.101.112, and the key as a bit string.
        let head = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00];
        let der = [&head[..], &self.public_key].concat();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64.encode(&der))
    }
}

/// The first bytes of a hash over name, signature type and public key.
pub(crate) fn key_id(name: &str, algorithm: u8, public_key: &[u8; 32]) -> [u8; 4] {
    let mut hash = Sha256::new();
    hash.update(name.as_bytes());
    hash.update([b'\n', algorithm]);
    hash.update(public_key);
    let whole: [u8; 32] = hash.finalize().into();
    *whole.first_chunk().certain("a digest has 32 bytes")
}

pub(crate) fn parse_private(line: &str, algorithm: u8) -> Result<(String, SigningKey), KeyError> {
    let rest = line.trim_end().strip_prefix("PRIVATE+KEY+").ok_or(KeyError::Format)?;
    let (name, id, encoded) = three_parts(rest).ok_or(KeyError::Format)?;
    let bytes = Zeroizing::new(BASE64.decode(encoded.as_bytes()).map_err(|_| KeyError::Format)?);
    let (kind, seed) = bytes.split_first().ok_or(KeyError::Format)?;
    if *kind != algorithm {
        return Err(KeyError::Kind);
    }
    let seed = Zeroizing::new(<[u8; 32]>::try_from(seed).map_err(|_| KeyError::Format)?);
    NoteKey::check_name(name)?;
    let key = SigningKey::from_bytes(&seed);
    let expected = key_id(name, algorithm, key.verifying_key().as_bytes());
    if HEXLOWER.encode(&expected) == id { Ok((name.to_owned(), key)) } else { Err(KeyError::Id) }
}

pub(crate) fn private_line(name: &str, algorithm: u8, key: &SigningKey) -> Zeroizing<String> {
    let seed = Zeroizing::new(key.to_bytes());
    let mut bytes = Zeroizing::new(vec![algorithm]);
    bytes.extend_from_slice(seed.as_slice());
    let encoded = Zeroizing::new(BASE64.encode(&bytes));
    let id = key_id(name, algorithm, key.verifying_key().as_bytes());
    Zeroizing::new(format!("PRIVATE+KEY+{name}+{}+{}\n", HEXLOWER.encode(&id), *encoded))
}

pub(crate) fn parse_public(line: &str, algorithm: u8) -> Result<(String, [u8; 32]), KeyError> {
    let (name, id, encoded) = three_parts(line.trim_end()).ok_or(KeyError::VerifierFormat)?;
    let bytes = BASE64.decode(encoded.as_bytes()).map_err(|_| KeyError::VerifierFormat)?;
    if BASE64.encode(&bytes) != encoded {
        return Err(KeyError::VerifierFormat);
    }
    let (kind, public_key) = bytes.split_first().ok_or(KeyError::VerifierFormat)?;
    if *kind != algorithm {
        return Err(KeyError::Kind);
    }
    let public_key = <[u8; 32]>::try_from(public_key).map_err(|_| KeyError::VerifierFormat)?;
    NoteKey::check_name(name)?;
    let expected = key_id(name, algorithm, &public_key);
    if HEXLOWER.encode(&expected) == id { Ok((name.to_owned(), public_key)) } else { Err(KeyError::Id) }
}

pub(crate) fn public_line(name: &str, algorithm: u8, public_key: &[u8; 32]) -> String {
    let mut bytes = vec![algorithm];
    bytes.extend_from_slice(public_key);
    let id = key_id(name, algorithm, public_key);
    format!("{name}+{}+{}", HEXLOWER.encode(&id), BASE64.encode(&bytes))
}

fn three_parts(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once('+')?;
    let (id, encoded) = rest.split_once('+')?;
    Some((name, id, encoded))
}

pub(crate) fn signature_line(name: &str, id: [u8; 4], signature: &[u8]) -> String {
    let mut bytes = id.to_vec();
    bytes.extend_from_slice(signature);
    format!("{SIGNATURE_MARK}{name} {}", BASE64.encode(&bytes))
}

pub(crate) fn check_ed25519(public_key: &[u8; 32], message: &[u8], signature: &[u8]) -> Result<(), NoteError> {
    let signature = Signature::from_slice(signature).map_err(|_| NoteError::Signature)?;
    let key = VerifyingKey::from_bytes(public_key).map_err(|_| NoteError::Signature)?;
    key.verify_strict(message, &signature).map_err(|_| NoteError::Signature)
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoteError {
    #[error("this is not a signed note: expected a text, an empty line and signature lines")]
    Format,
    #[error("the note has more than {SIGNATURES_MAX} signatures")]
    TooMany,
    #[error("the note has no signature by this key")]
    Unsigned,
    #[error("the signature does not match the text")]
    Signature,
}

/// One signature of a note: who claims to have made it, and what follows the key's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureLine<'n> {
    /// The whole line, without the line end.
    pub line: &'n str,
    pub name: &'n str,
    pub id: [u8; 4],
    pub signature: Vec<u8>,
}

impl<'n> SignatureLine<'n> {
    pub fn parse(line: &'n str) -> Result<SignatureLine<'n>, NoteError> {
        let rest = line.strip_prefix(SIGNATURE_MARK).ok_or(NoteError::Format)?;
        let (name, encoded) = rest.split_once(' ').ok_or(NoteError::Format)?;
        NoteKey::check_name(name).map_err(|_| NoteError::Format)?;
        let bytes = BASE64.decode(encoded.as_bytes()).map_err(|_| NoteError::Format)?;
        // The library decodes several padded pieces as one text.
        if BASE64.encode(&bytes) != encoded {
            return Err(NoteError::Format);
        }
        let (id, signature) = bytes.split_first_chunk::<4>().ok_or(NoteError::Format)?;
        Ok(SignatureLine { line, name, id: *id, signature: signature.to_vec() })
    }
}

/// A parsed note whose signatures are not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'n> {
    /// The signed text, including its last line end.
    pub text: &'n str,
    pub signatures: Vec<SignatureLine<'n>>,
}

impl<'n> Note<'n> {
    pub fn parse(note: &'n str) -> Result<Note<'n>, NoteError> {
        let at = note.rfind("\n\n").ok_or(NoteError::Format)?;
        let (text, signatures) = note.split_at_checked(at + 1).ok_or(NoteError::Format)?;
        let signatures = signatures.strip_prefix('\n').ok_or(NoteError::Format)?;
        if !signatures.ends_with('\n') || note.contains(|c: char| c.is_control() && c != '\n') {
            return Err(NoteError::Format);
        }
        let lines: Vec<_> = signatures.split_terminator('\n').collect();
        if lines.len() > SIGNATURES_MAX {
            return Err(NoteError::TooMany);
        }
        let signatures = lines.into_iter().map(SignatureLine::parse).collect::<Result<_, _>>()?;
        Ok(Note { text, signatures })
    }

    /// The text, if `key` has signed it. Signatures by other keys are ignored.
    pub(crate) fn opened_with(&self, key: &VerifierKey) -> Result<&'n str, NoteError> {
        let mut ours = Err(NoteError::Unsigned);
        for claimed in self.claimed(&key.name, key.id) {
            check_ed25519(&key.public_key, self.text.as_bytes(), &claimed.signature)?;
            ours = Ok(self.text);
        }
        ours
    }

    /// The note with this key's signature only, if it has one.
    pub fn signed_by(&self, key: &VerifierKey) -> Option<String> {
        let ours = self.claimed(&key.name, key.id).next()?;
        Some(format!("{}\n{}\n", self.text, ours.line))
    }

    /// Signatures that claim to be by this key; a wrong one among them invalidates the note.
    pub(crate) fn claimed<'s>(&'s self, name: &'s str, id: [u8; 4]) -> impl Iterator<Item = &'s SignatureLine<'n>> {
        self.signatures.iter().filter(move |signature| signature.name == name && signature.id == id)
    }
}

/// The text of a note that `key` has signed. Signatures by other keys are ignored.
pub fn open<'a>(note: &'a str, key: &VerifierKey) -> Result<&'a str, NoteError> {
    Note::parse(note)?.opened_with(key)
}

impl VerifierKey {
    /// Reads `name+id+base64`.
    pub fn parse(line: &str) -> Result<VerifierKey, KeyError> {
        let (name, public_key) = parse_public(line, ED25519)?;
        Ok(VerifierKey::new(&name, public_key))
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&public_line(&self.name, ED25519, &self.public_key))
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
