//! Identity mechanisms: each turns a request into a caller, or says that it cannot. Exactly one is in force, and only
//! `access` asks it.

use std::sync::Arc;

use http::request::Parts;
use pilot_core::actor::Actor;
use pilot_core::credentials::CredentialId;
use pilot_core::time::Time;

use crate::access::Caller;
use crate::api::actors::ActorView;
use crate::api::credentials::CredentialView;
use crate::config::Mechanism;

pub mod credential_file;
pub mod mutual_tls;
pub mod oauth;

use oauth::provider::{Provider, Undecided};
use oauth::resource::{self, Resource, SignIn};

pub enum Identity {
    CredentialFile(credential_file::CredentialFile),
    Oauth(Box<oauth::Oauth>),
    MutualTls(mutual_tls::MutualTls),
}

/// Why a request has no caller. The cause is for the request's log line alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub unknown: Unknown,
    pub cause: Option<String>,
}

impl Denial {
    pub fn because(unknown: Unknown, cause: &str) -> Denial {
        Denial { unknown, cause: Some(cause.to_owned()) }
    }
}

impl From<Unknown> for Denial {
    fn from(unknown: Unknown) -> Self {
        Denial { unknown, cause: None }
    }
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
    /// It is older than a loss that may have taken its revocation with it, and no operator has said that it counts.
    Doubted,
    /// Whoever could tell does not answer: neither yes nor no.
    Undecided,
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
    pub const ALL: [Unknown; 8] = [
        Unknown::Missing,
        Unknown::Malformed,
        Unknown::Unrecognised,
        Unknown::NotYet,
        Unknown::Expired,
        Unknown::Revoked,
        Unknown::Doubted,
        Unknown::Undecided,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Unknown::Missing => "missing",
            Unknown::Malformed => "malformed",
            Unknown::Unrecognised => "unrecognised",
            Unknown::NotYet => "not_yet",
            Unknown::Expired => "expired",
            Unknown::Revoked => "revoked",
            Unknown::Doubted => "doubted",
            Unknown::Undecided => "undecided",
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
            Identity::Oauth(oauth) => oauth.actors(),
            Identity::MutualTls(certificates) => certificates.actors(),
        }
    }

    /// Every credential the mechanism knows: never a digest, never a token.
    pub fn credentials(&self) -> Vec<CredentialView> {
        match self {
            Identity::CredentialFile(file) => file.credentials(),
            Identity::Oauth(oauth) => oauth.credentials(),
            Identity::MutualTls(certificates) => certificates.credentials(),
        }
    }

    /// The credential with this name, when there is or may be one.
    pub fn credential(&self, id: &CredentialId) -> Option<KnownCredential> {
        match self {
            Identity::CredentialFile(file) => file.credential(id),
            Identity::Oauth(oauth) => oauth.credential(id),
            Identity::MutualTls(certificates) => certificates.credential(id),
        }
    }

    pub async fn identify(&self, head: &Parts) -> Result<Caller, Denial> {
        match self {
            Identity::CredentialFile(file) => file.identify(&head.headers).map_err(Denial::from),
            // Apart, because it is large when it has to ask the provider, and every request would carry room for it.
            Identity::Oauth(oauth) => Box::pin(oauth.identify(&head.headers)).await,
            Identity::MutualTls(_) if mutual_tls::is_of_another_site(&head.headers) => {
                Err(Denial::because(Unknown::Missing, "the browser sent this on behalf of another site"))
            }
            Identity::MutualTls(certificates) => certificates.identify(head).map_err(Denial::from),
        }
    }

    pub fn mechanism(&self) -> Mechanism {
        match self {
            Identity::CredentialFile(_) => Mechanism::CredentialFile,
            Identity::Oauth(_) => Mechanism::Oauth,
            Identity::MutualTls(_) => Mechanism::MutualTls,
        }
    }

    /// Keeps up with what the mechanism reads from elsewhere. Runs for as long as the service does.
    pub async fn follow(&self) {
        match self {
            Identity::CredentialFile(_) => std::future::pending().await,
            Identity::Oauth(oauth) => Arc::clone(&oauth.provider).follow().await,
            Identity::MutualTls(certificates) => certificates.follow().await,
        }
    }

    /// What has to be looked at again while a request stays open, besides time and the register.
    pub fn watch(&self, head: &Parts) -> Option<oauth::Watch> {
        self.oauth()?.watch(&head.headers)
    }

    /// Comes back when what is watched counts no longer.
    pub async fn until_over(&self, watch: Option<oauth::Watch>) {
        match (self.oauth(), watch) {
            (Some(oauth), Some(watch)) => oauth.until_inactive(&watch).await,
            _ => std::future::pending().await,
        }
    }

    /// Whose token a provider signed, when it is live. Tokens of the credential file are the leak guard's to know.
    pub fn holder_of_signed(&self, token: &[u8]) -> Option<(Actor, CredentialId)> {
        self.oauth()?.holder_of(token)
    }

    /// Whether callers can be told from strangers at this moment; if not, why.
    pub fn check(&self) -> Result<(), String> {
        self.oauth().map_or(Ok(()), |oauth| oauth.provider.check().map_err(|Undecided(cause)| cause))
    }

    /// What strangers are told about how to come in, when there is a provider to send them to.
    pub fn resource(&self) -> Option<&Resource> {
        self.oauth().map(|oauth| &oauth.resource)
    }

    /// How the console signs people in at the provider, when it does.
    pub fn sign_in(&self) -> Option<SignIn> {
        resource::sign_in(&self.oauth()?.provider)
    }

    pub fn metrics(&self) -> String {
        self.oauth().map_or_else(String::new, |oauth| oauth.provider.metrics())
    }

    pub fn provider(&self) -> Option<&Arc<Provider>> {
        self.oauth().map(|oauth| &oauth.provider)
    }

    fn oauth(&self) -> Option<&oauth::Oauth> {
        match self {
            Identity::CredentialFile(_) | Identity::MutualTls(_) => None,
            Identity::Oauth(oauth) => Some(oauth),
        }
    }
}
