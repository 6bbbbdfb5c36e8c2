//! How credentials end.

use pilot_core::actor::Actor;
use pilot_core::credentials::CredentialId;
use pilot_core::entry::Entry;
use pilot_core::entry::details::{Details, RevokedCredential};
use pilot_core::time::Time;
use serde::{Deserialize, Serialize};

/// Why a credential is no longer valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Expired,
    Revoked,
}

impl Ended {
    pub const fn as_str(self) -> &'static str {
        match self {
            Ended::Expired => "expired",
            Ended::Revoked => "revoked",
        }
    }
}

/// How a credential ended, as stored for the next start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) how: Ended,
    /// So that the same token under another name in the file stays ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fingerprint: Option<CredentialId>,
    /// From this time on, forgetting it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) forget_at: Option<Time>,
    /// What the person who revoked it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation: Option<Revocation>,
}

impl End {
    /// Whether forgetting this could make the credential valid again: it was revoked, or a file could extend it.
    pub(super) fn is_lasting(&self) -> bool {
        self.how == Ended::Revoked || self.forget_at.is_none()
    }
}

/// What is answered and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    pub credential_id: CredentialId,
    /// The actor it belonged to, if known.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    pub revoked_at: Time,
    /// `None` if the service revoked it on its own.
    pub revoked_by: Option<Actor>,
    pub entry: u64,
}

impl Revocation {
    /// As recorded in the ledger.
    pub(super) fn of_entry(entry: &Entry) -> Option<Revocation> {
        let Some(Details::CredentialRevoked(RevokedCredential { credential, .. })) = entry.details() else {
            return None;
        };
        Some(Revocation {
            actor: credential.actor(),
            credential_id: credential.credential_id?,
            revoked_at: entry.at,
            revoked_by: entry.actor(),
            entry: entry.index,
        })
    }
}
