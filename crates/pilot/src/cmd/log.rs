//! `pilot log`: the transparency log.

use std::path::PathBuf;

use pilot_evidence::note::NoteKey;
use pilot_server::config::Config;
use pilot_server::private_file::{self, Others};

use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json};

#[derive(clap::Subcommand)]
pub enum Command {
    /// Print the log's verifier key: the line by which others check its signatures
    Key {
        /// The configuration file
        #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
        config: PathBuf,
        #[command(flatten)]
        output: OutputArguments,
    },
}

pub fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    let Command::Key { config, output } = command;
    let path = Config::load(config, environment.variables())?.log_key_path();
    let file = private_file::read(&path, Others::MayNothing).map_err(|error| Failure::Usage(error.to_string()))?;
    let key = NoteKey::parse(&String::from_utf8_lossy(&file.bytes));
    let key = key.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let verifier = key.verifier().to_string();
    match output.output {
        Output::Json => print_json(&serde_json::json!({ "verifier_key": verifier })),
        Output::Table => print(&format!("{verifier}\n")),
    }
}
