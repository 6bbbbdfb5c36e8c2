//! Who is calling, and who may.

use std::sync::Arc;

use bytes::Bytes;
use pilot_core::actor::{Actor, ActorId};
use pilot_core::certain::Certain as _;
use pilot_core::role::Role;
use pilot_ledger::register::ShownCredential;
use pilot_ledger::settle::Asking;
use pilot_wire::peer::Address;
use serde::Serialize;

/// Who may call an operation. An operation without a rule cannot be in the route table.
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

/// The actor behind a request, derived only from the credential.
#[derive(Debug, Clone)]
pub struct Caller {
    pub actor: Actor,
    /// What it was derived from.
    pub credential: Arc<ShownCredential>,
    /// The client of the identity provider that the actor calls through, as it may stand in a log.
    pub client: Option<Arc<str>>,
    /// The answer to a session check, if the mechanism has prepared it: the same for the life of a credential.
    pub session: Option<Bytes>,
    /// Where the request came from, if refusals are to be recorded with it.
    pub origin: Option<Address>,
}

impl Caller {
    pub fn asking(&self) -> Asking<'_> {
        Asking { actor: &self.actor, origin: self.origin }
    }
}

/// What a session check answers: exactly the members that the specification names.
pub fn session_of(actor: &Actor) -> Bytes {
    #[derive(Serialize)]
    struct Session<'a> {
        actor_id: &'a ActorId,
        role: Role,
    }
    let Actor { actor_id, role, operated_by: _ } = actor;
    serde_json::to_vec(&Session { actor_id, role: *role }).certain("two texts are JSON").into()
}
