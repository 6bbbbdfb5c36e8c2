//! How credentials are named, and what is known about one by its name.

use std::sync::atomic::{AtomicBool, Ordering};

use pilot_core::actor::{Actor, ActorId};
use pilot_core::credentials::{Credential, CredentialId};
use pilot_core::entry::details::Named;
use pilot_core::role::Role;
use pilot_core::time::Time;
use serde::{Deserialize, Serialize};

/// A credential as the ledger may name it: by its id or a fingerprint, which reveal no digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamedCredential {
    pub actor_id: ActorId,
    /// Absent if the fingerprint is its only name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// A name that every credential has, derived from its secret.
    pub fingerprint: CredentialId,
    pub role: Role,
}

impl NamedCredential {
    pub fn id(&self) -> &CredentialId {
        self.credential_id.as_ref().unwrap_or(&self.fingerprint)
    }
}

impl From<&NamedCredential> for Named {
    fn from(named: &NamedCredential) -> Self {
        let NamedCredential { actor_id, credential_id, expires_at, fingerprint, role } = named.clone();
        let (actor_id, role, fingerprint) = (Some(actor_id), Some(role), Some(fingerprint));
        Named { actor_id, role, credential_id, fingerprint, expires_at }
    }
}

impl From<&Credential> for NamedCredential {
    fn from(credential: &Credential) -> Self {
        let Actor { actor_id, role, operated_by: _ } = credential.actor.clone();
        let fingerprint = CredentialId::from(credential.digest.fingerprint());
        let credential_id = Some(credential.id.clone()).filter(|id| *id != fingerprint);
        NamedCredential { actor_id, credential_id, expires_at: credential.expires_at, fingerprint, role }
    }
}

/// The credential a caller has shown.
#[derive(Debug)]
pub struct ShownCredential {
    pub id: CredentialId,
    pub expires_at: Option<Time>,
    /// What it was accepted by is no longer valid; if shown again, it is judged again.
    withdrawn: AtomicBool,
}

impl ShownCredential {
    pub fn new(id: CredentialId, expires_at: Option<Time>) -> ShownCredential {
        ShownCredential { id, expires_at, withdrawn: AtomicBool::new(false) }
    }

    pub(super) fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }
}

/// What is known about a credential by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCredential {
    pub id: CredentialId,
    pub actor: Option<Actor>,
    /// The fingerprint it has whatever else it is called.
    pub fingerprint: Option<CredentialId>,
    /// When nobody can show it any more, so that its end need not be remembered. `None` means never.
    pub forget_at: Option<Time>,
}
