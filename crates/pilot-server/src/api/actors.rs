//! Who there is: for those who watch over access.

use pilot_core::actor::ActorId;
use pilot_core::role::Role;
use pilot_core::role_map::Kind;
use pilot_core::time::Time;
use serde::Serialize;

use crate::access::Caller;
use crate::app::App;
use crate::routes::Answer;

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
struct ActorsView {
    actors: Vec<ActorView>,
    /// Always null: this list is whole.
    next: Option<String>,
}

pub fn list_actors(app: &App, _: &Caller, _: Option<&str>) -> Answer {
    super::json(&ActorsView { actors: app.identity.actors(), next: None })
}
