//! Who may come in (401) and who may do what (403). Nothing else in the service answers either.

use http::request::Parts;
use pilot_core::actor::Actor;
use pilot_core::role::Role;

use crate::identity::Identity;
use crate::metrics::Metrics;
use crate::problem::{Code, Problem};

/// Who may call an operation. An operation without a rule cannot be put into the route table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Any valid credential, whatever its role.
    AnyRole,
    Roles(&'static [Role]),
}

impl Access {
    pub fn allows(self, role: Role) -> bool {
        match self {
            Access::AnyRole => true,
            Access::Roles(roles) => roles.contains(&role),
        }
    }
}

/// The actor behind a request: derived from the credential alone.
#[derive(Debug, Clone)]
pub struct Caller {
    pub actor: Actor,
}

/// 401 unless the identity mechanism knows the caller.
pub fn authenticate(identity: &Identity, head: &Parts, metrics: &Metrics) -> Result<Caller, Problem> {
    identity.identify(head).map_err(|unknown| {
        metrics.authentication_failed(unknown);
        Problem::credential_required(unknown.credential_was_sent())
    })
}

/// 403 unless the operation is open to the caller's role.
pub fn permit(access: Access, caller: &Caller) -> Result<(), Problem> {
    if access.allows(caller.actor.role) {
        return Ok(());
    }
    let detail = format!("The role {} may not call this operation.", caller.actor.role);
    Err(Problem::new(Code::RoleForbidden, detail))
}
