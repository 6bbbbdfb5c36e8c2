//! The SHA3-256 digest of a token, and the fingerprint by which people may refer to it.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::Digest as _;
use subtle::ConstantTimeEq;

use crate::certain::Certain as _;

/// SHA3-256 of a token. It is secret too: it has no `Debug` that reveals it and no ordering outside this crate.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(token: &[u8]) -> Self {
        Digest(sha3::Sha3_256::digest(token).into())
    }

    /// Exactly 64 lowercase hexadecimal characters.
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
        Some(Digest(bytes.try_into().ok()?))
    }

    /// For the credential file, the only place a digest is ever written.
    pub fn to_hex(self) -> String {
        HEXLOWER.encode(&self.0)
    }

    pub fn matches(&self, other: &Digest) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Names a credential in records and reports without revealing its digest.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hash = sha2::Sha256::new();
        hash.update(b"pilot credential fingerprint v1\n");
        hash.update(self.0);
        let whole: [u8; 32] = hash.finalize().into();
        Fingerprint(*whole.first_chunk().certain("a digest has 32 bytes"))
    }

    /// The key that credentials are sorted by. Finding a neighbour by it tells an attacker nothing: choosing the first
    /// bytes of a digest takes a preimage search over SHA3-256.
    pub(crate) fn sort_key(&self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

/// 16 hexadecimal characters that identify one credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 8]);

impl Fingerprint {
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
        Some(Fingerprint(bytes.try_into().ok()?))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&HEXLOWER.encode(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sha3_256_and_reads_back_only_from_64_lowercase_hex_characters() {
        let digest = Digest::of(b"");
        assert_eq!(digest.to_hex(), "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
        assert!(Digest::from_hex(&digest.to_hex()).unwrap().matches(&digest));
        assert!(!Digest::of(b"x").matches(&digest));
        for wrong in
            ["", "a7ff", &digest.to_hex().to_uppercase(), &digest.to_hex()[1..], &format!("{}0", digest.to_hex())]
        {
            assert!(Digest::from_hex(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn neither_debug_nor_fingerprint_reveals_a_digest() {
        let digest = Digest::of(b"some token");
        assert_eq!(format!("{digest:?}"), "Digest(…)");
        let fingerprint = digest.fingerprint().to_string();
        assert_eq!(fingerprint.len(), 16);
        assert!(!digest.to_hex().contains(&fingerprint[..8]));
        assert_eq!(Fingerprint::from_hex(&fingerprint), Some(digest.fingerprint()));
    }
}
