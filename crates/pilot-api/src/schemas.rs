//! The schemas of the views, derived from the types that are sent.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::access::{ActorsView, CredentialsView};
use crate::events::EventsView;
use crate::figures::FiguresView;
use crate::health::HealthView;
use crate::items::{ContentView, TransitionView};
use crate::log::ProofView;
use crate::named;
use crate::nodes::NodesView;
use crate::outlook::OutlookView;
use crate::permits::PermitTokenView;
use crate::problem::ProblemView;
use crate::webhooks::WebhooksView;
use crate::workflows::WorkflowsView;

/// By the name each has in the API document.
pub fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| settings.definitions_path = named::PATH.into());
    let mut generator = settings.with_transform(RecursiveTransform(forget_width)).into_generator();
    add::<ActorsView>(&mut generator);
    add::<NodesView>(&mut generator);
    add::<CredentialsView>(&mut generator);
    add::<EventsView<'_>>(&mut generator);
    add::<FiguresView>(&mut generator);
    add::<HealthView>(&mut generator);
    add::<ContentView>(&mut generator);
    add::<OutlookView>(&mut generator);
    add::<TransitionView<'_>>(&mut generator);
    add::<ProofView>(&mut generator);
    add::<PermitTokenView>(&mut generator);
    add::<ProblemView<'_>>(&mut generator);
    add::<WebhooksView>(&mut generator);
    add::<WorkflowsView<'_>>(&mut generator);
    generator.take_definitions(true)
}

/// A view and every view in it.
fn add<V: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<V>();
}

/// How many bits a number has here is nobody else's concern.
fn forget_width(schema: &mut Schema) {
    let width =
        schema.get("format").and_then(Value::as_str).filter(|format| format.trim_start_matches('u').starts_with("int"));
    if width.is_some() {
        schema.remove("format");
    }
}

#[cfg(test)]
mod tests;
