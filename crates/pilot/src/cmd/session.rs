//! `pilot session`: the onboarding check.

use std::path::PathBuf;

use pilot_core::actor::Actor;
use serde::Serialize;

use crate::client::{Client, ClientArguments};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::files::read_role_map;
use crate::output::{Output, OutputArguments, print, print_json, table};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    client: ClientArguments,
    /// The approved role map; actor and role must agree with it
    #[arg(long, value_name = "FILE")]
    role_map: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Serialize)]
struct SessionView {
    #[serde(flatten)]
    actor: Actor,
    /// Absent when no role map was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    role_map: Option<&'static str>,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let role_map = arguments.role_map.as_deref().map(read_role_map).transpose()?;
    let actor: Actor = Client::new(&arguments.client, environment)?.get("/v1/session")?.read()?;
    let approved = role_map.map(|map| map.role_of(&actor.actor_id));
    let verdict = approved.map(|approved| match approved {
        Some(role) if role == actor.role => "matches",
        Some(_) => "approves another role for this actor",
        None => "does not list this actor",
    });
    match arguments.output.output {
        Output::Json => print_json(&SessionView { actor: actor.clone(), role_map: verdict })?,
        Output::Table => {
            let row =
                vec![actor.actor_id.to_string(), actor.role.to_string(), verdict.unwrap_or("not compared").to_owned()];
            print(&table(&["actor", "role", "role map"], [row]))?;
        }
    }
    match verdict {
        None | Some("matches") => Ok(()),
        Some(why) => Err(Failure::Refused(format!("the role map {why}; do not begin work before this is settled"))),
    }
}
