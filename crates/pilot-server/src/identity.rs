//! Identity mechanisms: each turns a request into a caller, or says that it cannot. Exactly one is in force, and only
//! `access` asks it.

use http::request::Parts;
use pilot_core::actor::Actor;
use pilot_core::credentials::CredentialId;
use pilot_core::time::Time;

use crate::access::Caller;
use crate::api::actors::ActorView;
use crate::api::credentials::CredentialView;

pub mod credential_file;
pub mod oauth;

pub enum Identity {
    CredentialFile(credential_file::CredentialFile),
}

/// Why nobody was recognised. Told to metrics, never to the caller, who sees the same answer for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Missing,
    Malformed,
    Unrecognised,
    NotYet,
    Expired,
    Revoked,
}

/// What is known of a credential by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCredential {
    pub id: CredentialId,
    pub actor: Option<Actor>,
    /// The name it has whatever else it is called.
    pub fingerprint: Option<CredentialId>,
    /// When nobody could show it any more, so that its end need not be remembered. None: never.
    pub forget_at: Option<Time>,
}

impl Unknown {
    pub const ALL: [Unknown; 6] = [
        Unknown::Missing,
        Unknown::Malformed,
        Unknown::Unrecognised,
        Unknown::NotYet,
        Unknown::Expired,
        Unknown::Revoked,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Unknown::Missing => "missing",
            Unknown::Malformed => "malformed",
            Unknown::Unrecognised => "unrecognised",
            Unknown::NotYet => "not_yet",
            Unknown::Expired => "expired",
            Unknown::Revoked => "revoked",
        }
    }

    pub fn credential_was_sent(self) -> bool {
        self != Unknown::Missing
    }
}

impl Identity {
    /// Everyone the mechanism knows.
    pub fn actors(&self) -> Vec<ActorView> {
        match self {
            Identity::CredentialFile(file) => file.actors(),
        }
    }

    /// Every credential the mechanism knows: never a digest, never a token.
    pub fn credentials(&self) -> Vec<CredentialView> {
        match self {
            Identity::CredentialFile(file) => file.credentials(),
        }
    }

    /// The credential with this name, when there is or may be one.
    pub fn credential(&self, id: &CredentialId) -> Option<KnownCredential> {
        match self {
            Identity::CredentialFile(file) => file.credential(id),
        }
    }

    #[expect(clippy::unused_async, reason = "mechanisms that ask others have to wait for them")]
    pub async fn identify(&self, head: &Parts) -> Result<Caller, Unknown> {
        match self {
            Identity::CredentialFile(file) => file.identify(&head.headers),
        }
    }
}
