//! The actors and their credentials.

use pilot_core::actor::{Actor, ActorId};
use pilot_core::credentials::CredentialId;
use pilot_core::role::Role;
use pilot_core::role_map::{Kind, MappedActor};
use pilot_core::time::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::named;

/// One actor; never a digest, never a token.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ActorInfo")]
pub struct ActorView {
    #[schemars(with = "named::ActorId")]
    pub actor_id: ActorId,
    #[schemars(with = "named::Role")]
    pub role: Role,
    #[schemars(with = "String", extend("enum" = [Kind::Human, Kind::Machine]))]
    pub kind: Kind,
    /// Who answers for this machine; the two count as one person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "named::ActorId")]
    pub operated_by: Option<ActorId>,
    pub credentials: usize,
    /// Since the service started; null when not seen yet.
    #[schemars(with = "Option<named::Time>")]
    pub last_seen: Option<Time>,
}

impl ActorView {
    /// As the role map lists it, with no credentials yet.
    pub fn of(mapped: &MappedActor) -> ActorView {
        let Actor { actor_id, role, operated_by } = mapped.actor.clone();
        ActorView { actor_id, role, kind: mapped.kind, operated_by, credentials: 0, last_seen: None }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Actors")]
pub struct ActorsView {
    pub actors: Vec<ActorView>,
    /// Always null: the list is complete.
    pub next: Option<String>,
}

/// One credential; never its digest.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "CredentialInfo")]
pub struct CredentialView {
    #[schemars(with = "named::CredentialId")]
    pub credential_id: CredentialId,
    /// Null when the service knows the credential only by its revocation.
    #[schemars(with = "Option<named::ActorId>")]
    pub actor_id: Option<ActorId>,
    #[schemars(with = "Option<named::Role>")]
    pub role: Option<Role>,
    #[schemars(with = "Option<named::Time>")]
    pub not_before: Option<Time>,
    #[schemars(with = "Option<named::Time>")]
    pub expires_at: Option<Time>,
    pub state: State,
    /// Since the service started; null when not seen yet.
    #[schemars(with = "Option<named::Time>")]
    pub last_seen: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum State {
    NotYet,
    Live,
    Expired,
    Revoked,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Credentials")]
pub struct CredentialsView {
    pub credentials: Vec<CredentialView>,
}
