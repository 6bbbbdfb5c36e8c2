//! `pilot notice`: sends a message to see whether it arrives.

use std::path::PathBuf;

use pilot_core::actor::ActorId;
use pilot_ledger::clock::Clock;
use pilot_notices::{Notices, TrialError};
use pilot_setup::config::Config;
use serde_json::json;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::files;
use crate::output::{Output, OutputArguments, note, print_json};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Send a message to a chat or to a person, to see whether it arrives
    Test(TestArguments),
}

#[derive(clap::Args)]
pub(crate) struct TestArguments {
    /// The name of the notice in the configuration
    name: String,
    /// Who gets it, if it is mail, and who is mentioned, if it is a chat: an actor of the contacts file
    #[arg(long, value_name = "ACTOR")]
    to: Option<ActorId>,
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    let Command::Test(TestArguments { name, to, config, output }) = command;
    let config = Config::load(config, environment.variables())?;
    files::refuse_root(&config)?;
    let notices = Notices::open(&config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::environment("the runtime", error))?;
    let sent = runtime.block_on(notices.send_trial(name, to.as_ref(), Clock::System.now()));
    let place = sent.map_err(|error| match error {
        TrialError::NotDelivered(_) => Failure::Environment(error.to_string()),
        _ => Failure::Usage(error.to_string()),
    })?;
    match output.output {
        Output::Json => print_json(&json!({ "sent": true, "host": place })),
        Output::Table => note(&format!("{place} took the message. Look whether it is there")),
    }
}
