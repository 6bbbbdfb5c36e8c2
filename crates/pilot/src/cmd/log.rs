//! `pilot log`: the transparency log.

use std::path::PathBuf;

use pilot_evidence::note::NoteKey;
use pilot_server::config::Config;
use pilot_server::private_file::{self, Others};

use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::print;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Print the log's verifier key: the line by which others check its signatures
    Key {
        /// The configuration file
        #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
        config: PathBuf,
    },
}

pub fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    let Command::Key { config } = command;
    let path = Config::load(config, environment.variables())?.log_key_path();
    let file = private_file::read(&path, Others::MayNothing).map_err(|error| Failure::Usage(error.to_string()))?;
    let key = NoteKey::parse(&String::from_utf8_lossy(&file.bytes));
    let key = key.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    print(&format!("{}\n", key.verifier()))
}
