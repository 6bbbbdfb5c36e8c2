//! `pilot evidence`: what an auditor takes away.

use crate::environment::Environment;
use crate::exit::Failure;

mod export;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Take a bundle from the service, for an item or a period
    Export(export::Arguments),
}

pub fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Export(arguments) => export::run(arguments, environment),
    }
}
