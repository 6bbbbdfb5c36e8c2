//! A credential's name, for people, records and revocation.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::Fingerprint;
use crate::limits::CREDENTIAL_ID_CHARS_MAX;

/// It reveals neither the token nor its digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "Arc<str>")]
pub struct CredentialId(Arc<str>);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "must have 1 to {CREDENTIAL_ID_CHARS_MAX} characters of A-Z a-z 0-9 . _ : - and begin with a letter or a digit"
)]
pub struct MalformedCredentialId;

impl CredentialId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For a credential whose own name does not have our format.
    pub fn from_digest(algorithm: &'static str, hex: &str) -> CredentialId {
        CredentialId(format!("{algorithm}:{hex}").into())
    }
}

impl FromStr for CredentialId {
    type Err = MalformedCredentialId;

    fn from_str(text: &str) -> Result<Self, MalformedCredentialId> {
        let begins = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        let fits = text.len() <= CREDENTIAL_ID_CHARS_MAX && text.bytes().all(is_legal);
        if begins && fits { Ok(CredentialId(text.into())) } else { Err(MalformedCredentialId) }
    }
}

impl TryFrom<String> for CredentialId {
    type Error = MalformedCredentialId;

    fn try_from(text: String) -> Result<Self, MalformedCredentialId> {
        text.parse()
    }
}

impl From<CredentialId> for Arc<str> {
    fn from(id: CredentialId) -> Self {
        id.0
    }
}

/// A credential without its own name is known by its fingerprint.
impl From<Fingerprint> for CredentialId {
    fn from(fingerprint: Fingerprint) -> Self {
        CredentialId(fingerprint.to_string().into())
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
