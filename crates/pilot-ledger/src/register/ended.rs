//! How credentials end.

use pilot_core::actor::Actor;
use pilot_core::credentials::CredentialId;
use pilot_core::entry::Entry;
use pilot_core::entry::details::{Details, RevokedCredential};
use pilot_core::time::Time;
use serde::{Deserialize, Serialize};

/// Why a credential counts no longer.
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

/// How a credential came to its end, as it is kept for the next start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) how: Ended,
    /// Another name in the file does not bring the same token back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fingerprint: Option<CredentialId>,
    /// From then on nothing can come of forgetting it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) forget_at: Option<Time>,
    /// What whoever revoked it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation: Option<Revocation>,
}

impl End {
    /// Whether forgetting it could bring the credential back: a revoked one, or one whose time a file could extend.
    pub(super) fn is_lasting(&self) -> bool {
        self.how == Ended::Revoked || self.forget_at.is_none()
    }
}

/// What is answered, and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    pub credential_id: CredentialId,
    /// Whose it was, where that is known.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    pub revoked_at: Time,
    /// Nobody, when the service did it by itself.
    pub revoked_by: Option<Actor>,
    pub entry: u64,
}

impl Revocation {
    /// As the ledger has it.
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
