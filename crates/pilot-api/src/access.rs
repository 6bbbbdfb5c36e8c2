//! The actors and their credentials.

use pilot_core::actor::ActorId;
use pilot_core::credentials::CredentialId;
use pilot_core::role::Role;
use pilot_core::role_map::Kind;
use pilot_core::time::Time;
use serde::Serialize;

/// Never a digest, never a token.
#[derive(Debug, Clone, Serialize)]
pub struct ActorView {
    pub actor_id: ActorId,
    pub role: Role,
    pub kind: Kind,
    pub credentials: usize,
    /// Since the service started; null when not seen yet.
    pub last_seen: Option<Time>,
}

#[derive(Serialize)]
pub struct ActorsView {
    pub actors: Vec<ActorView>,
    /// Always null: this list is whole.
    pub next: Option<String>,
}

/// Never a digest, never a token.
#[derive(Debug, Clone, Serialize)]
pub struct CredentialView {
    pub credential_id: CredentialId,
    /// Null when the service knows the credential only by its revocation.
    pub actor_id: Option<ActorId>,
    pub role: Option<Role>,
    pub not_before: Option<Time>,
    pub expires_at: Option<Time>,
    pub state: State,
    /// Since the service started; null when not seen yet.
    pub last_seen: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    NotYet,
    Live,
    Expired,
    Revoked,
}

#[derive(Serialize)]
pub struct CredentialsView {
    pub credentials: Vec<CredentialView>,
}
