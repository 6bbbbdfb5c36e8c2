//! `pilot clock`: an operator accepts the machine's clock.

use std::path::PathBuf;

use pilot_core::limits::CLOCK_LEAP_MAX;
use pilot_core::time::Time;
use pilot_ledger::clock::{Clock, Record, SinceBoot, boot_id};
use pilot_setup::config::Config;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::print;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Confirm that the machine's clock is right although it jumped ahead. Everything that is past its time by it then expires
    Accept(Arguments),
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
}

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Accept(arguments) => accept(arguments, environment),
    }
}

fn accept(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let config = Config::load(&arguments.config, environment.variables())?;
    let path = config.clock_path();
    // The wall clock first, in the same order as the service.
    let (wall, since_boot, boot_id) = (Clock::System.now(), SinceBoot::System.micros(), boot_id());
    // A record that cannot be read is replaced; the service reports it.
    let known = Record::read(&path).ok().flatten();
    let expected = known.as_ref().and_then(|record| record.expected(&boot_id, since_boot));
    if expected.is_some_and(|expected| wall.since(expected) <= CLOCK_LEAP_MAX) {
        return print(&format!("The machine's clock says {wall}, as expected. There is nothing to accept.\n"));
    }
    let word = Record::new(&boot_id, since_boot, wall).accepted_by(environment.operator());
    word.write(&path).map_err(|error| Failure::environment(path.display(), error))?;
    print(&format!(
        "The machine's clock says {wall}{}. Accepted: a running service uses it within a second, a stopped one when \
         it starts, and an entry of the ledger records it.\n",
        told(known.as_ref(), expected)
    ))
}

/// Refuses to date an entry by a clock that the service would not trust.
pub(crate) fn check(config: &Config) -> Result<(), Failure> {
    let (wall, since_boot) = (Clock::System.now(), SinceBoot::System.micros());
    let known = Record::read(&config.clock_path()).ok().flatten();
    match known.and_then(|record| record.expected(&boot_id(), since_boot)) {
        Some(expected) if wall.since(expected) > CLOCK_LEAP_MAX => Err(Failure::Environment(format!(
            "the machine's clock says {wall}, but by the time elapsed it should be {expected}, so no entry is dated by it.\n\
             Correct the clock; if it is right and was wrong before, run `pilot clock accept`"
        ))),
        _ => Ok(()),
    }
}

/// What the clock is compared with.
fn told(known: Option<&Record>, expected: Option<Time>) -> String {
    match (known, expected) {
        (_, Some(expected)) => format!("; by the time elapsed it should be {expected}"),
        (Some(known), None) => {
            format!("; the last time the service recorded was {}, before the machine was restarted", known.wall)
        }
        (None, None) => String::new(),
    }
}
