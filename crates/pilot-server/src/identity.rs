//! Identity mechanisms: each turns a request into a caller, or says that it cannot. Exactly one is active, and only
//! `access` uses it.

use std::sync::Arc;

use http::request::Parts;
use pilot_api::access::ActorView;
use pilot_api::access::CredentialView;
use pilot_core::actor::{Actor, ActorId};
use pilot_core::credentials::CredentialId;
use pilot_core::role_map::RoleMap;
use pilot_ledger::register::KnownCredential;
use pilot_setup::config::Mechanism;

use crate::caller::Caller;

pub mod credential_file;
mod denial;
pub mod mutual_tls;
pub mod oauth;

pub use denial::{Denial, Unknown};
use oauth::provider::{Provider, Undecided};
use oauth::resource::{self, Resource, SignIn};
use pilot_wire::exposition::Exposition;

pub enum Identity {
    CredentialFile(credential_file::CredentialFile),
    Oauth(Box<oauth::Oauth>),
    MutualTls(mutual_tls::MutualTls),
}

impl Identity {
    /// All actors the mechanism knows.
    pub fn actors(&self) -> Vec<ActorView> {
        match self {
            Identity::CredentialFile(file) => file.actors(),
            Identity::Oauth(oauth) => oauth.actors(),
            Identity::MutualTls(certificates) => certificates.actors(),
        }
    }

    /// How many items that have not ended this actor may have created; people have no limit.
    pub fn open_items_max(&self, actor_id: &ActorId) -> Option<u32> {
        self.role_map()?.find(actor_id)?.open_items_max()
    }

    fn role_map(&self) -> Option<&RoleMap> {
        match self {
            Identity::CredentialFile(file) => file.role_map(),
            Identity::Oauth(oauth) => Some(oauth.role_map()),
            Identity::MutualTls(certificates) => Some(certificates.role_map()),
        }
    }

    /// All credentials the mechanism knows: never a digest, never a token.
    pub fn credentials(&self) -> Vec<CredentialView> {
        match self {
            Identity::CredentialFile(file) => file.credentials(),
            Identity::Oauth(oauth) => oauth.credentials(),
            Identity::MutualTls(certificates) => certificates.credentials(),
        }
    }

    /// The credential with this name, if there is or may be one.
    pub fn credential(&self, id: &CredentialId) -> Option<KnownCredential> {
        match self {
            Identity::CredentialFile(file) => file.credential(id),
            Identity::Oauth(oauth) => oauth.credential(id),
            Identity::MutualTls(certificates) => certificates.credential(id),
        }
    }

    /// Whether callers are known without asking anyone.
    pub fn is_local(&self) -> bool {
        !matches!(self, Identity::Oauth(_))
    }

    pub async fn identify(&self, head: &Parts) -> Result<Caller, Denial> {
        match self {
            // Boxed, because the future is large when it has to ask the provider, and every request would carry the
            // space for it.
            Identity::Oauth(oauth) => Box::pin(oauth.identify(&head.headers)).await,
            Identity::CredentialFile(_) | Identity::MutualTls(_) => self.identify_at_once(head),
        }
    }

    /// For a mechanism that is local.
    pub fn identify_at_once(&self, head: &Parts) -> Result<Caller, Denial> {
        match self {
            Identity::CredentialFile(file) => file.identify(&head.headers),
            Identity::Oauth(_) => Err(Denial::because(Unknown::Undecided, "the identity provider was not asked")),
            Identity::MutualTls(_) if mutual_tls::is_of_another_site(&head.headers) => {
                Err(Denial::because(Unknown::Missing, "the browser sent this on behalf of another site"))
            }
            Identity::MutualTls(certificates) => certificates.identify(head),
        }
    }

    pub fn mechanism(&self) -> Mechanism {
        match self {
            Identity::CredentialFile(_) => Mechanism::CredentialFile,
            Identity::Oauth(_) => Mechanism::Oauth,
            Identity::MutualTls(_) => Mechanism::MutualTls,
        }
    }

    /// Follows changes in what the mechanism reads from elsewhere. Runs as long as the service does.
    pub async fn follow(&self) {
        match self {
            Identity::CredentialFile(_) => std::future::pending().await,
            Identity::Oauth(oauth) => oauth.follow().await,
            Identity::MutualTls(certificates) => certificates.follow().await,
        }
    }

    /// What has to be checked again while a request stays open, in addition to time and the register.
    pub fn watch(&self, head: &Parts) -> Option<oauth::Watch> {
        self.oauth()?.watch(&head.headers)
    }

    /// Returns when what is watched is no longer valid.
    pub async fn until_over(&self, watch: Option<oauth::Watch>) {
        match (self.oauth(), watch) {
            (Some(oauth), Some(watch)) => oauth.until_inactive(&watch).await,
            _ => std::future::pending().await,
        }
    }

    /// Whose live token this is, if a provider signed it. The leak guard recognises the tokens of the credential file.
    pub fn holder_of_signed(&self, token: &[u8]) -> Option<(Actor, CredentialId)> {
        self.oauth()?.holder_of(token)
    }

    /// Whether callers can be identified at the moment; if not, why.
    pub fn check(&self) -> Result<(), String> {
        self.oauth().map_or(Ok(()), |oauth| oauth.check().map_err(|Undecided(cause)| cause))
    }

    /// What unknown callers are told about how to get a token, if there is a provider.
    pub fn resource(&self) -> Option<&Resource> {
        self.oauth().map(|oauth| &oauth.resource)
    }

    /// How the console signs people in at the provider, if it does.
    pub fn sign_in(&self) -> Option<SignIn> {
        resource::sign_in(&self.oauth()?.provider)
    }

    pub fn metrics(&self, text: &mut Exposition) {
        if let Some(oauth) = self.oauth() {
            oauth.metrics(text);
        }
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
