//! Credentials as people and programs see them.

use pilot_core::actor::ActorId;
use pilot_core::credentials::{Credential, CredentialId, Credentials, Schema};
use pilot_core::role::Role;
use pilot_core::time::Time;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{Output, print, print_json, table};

/// A credential as it is shown to people.
#[derive(Serialize)]
pub(super) struct CredentialView {
    pub actor_id: ActorId,
    pub role: Role,
    pub fingerprint: String,
    /// Absent in schema_version 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

impl From<&Credential> for CredentialView {
    fn from(credential: &Credential) -> Self {
        CredentialView {
            actor_id: credential.actor.actor_id.clone(),
            role: credential.actor.role,
            fingerprint: credential.digest.fingerprint().to_string(),
            // In version 2 every credential expires.
            credential_id: credential.expires_at.map(|_| credential.id.clone()),
            not_before: credential.not_before,
            expires_at: credential.expires_at,
        }
    }
}

pub(super) fn print_list(credentials: &Credentials, output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct ListView {
        credentials: Vec<CredentialView>,
    }
    let views: Vec<_> = credentials.entries().iter().map(CredentialView::from).collect();
    if output == Output::Json {
        return print_json(&ListView { credentials: views });
    }
    if credentials.schema() == Schema::One {
        let rows =
            views.into_iter().map(|view| vec![view.actor_id.to_string(), view.role.to_string(), view.fingerprint]);
        return print(&table(&["actor", "role", "fingerprint"], rows));
    }
    let text = |value: Option<String>| value.unwrap_or_default();
    let rows = views.into_iter().map(|view| {
        vec![
            view.actor_id.to_string(),
            view.role.to_string(),
            text(view.credential_id.map(|id| id.to_string())),
            view.fingerprint,
            text(view.not_before.map(|time| time.to_string())),
            text(view.expires_at.map(|time| time.to_string())),
        ]
    });
    print(&table(&["actor", "role", "credential", "fingerprint", "not before", "expires at"], rows))
}
