//! Lists the actors, for those who oversee access.

use pilot_api::access::ActorsView;

use crate::api::answers::json;
use crate::app::App;
use crate::call::Answer;
use crate::caller::Caller;

pub fn list_actors(app: &App, _: &Caller, _: Option<&str>) -> Answer {
    json(&ActorsView { actors: app.identity.actors(), next: None })
}
