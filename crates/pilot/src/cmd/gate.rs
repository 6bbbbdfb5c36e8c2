//! `pilot gate`: in front of a command that must not run unless it was approved.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cmd::permit::CheckArguments;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::gate::{Allowed, prepare, refused_name};
use crate::output::note;

const AFTER: &str = "The payload's operation must say what may be run: argv, the whole command line with the absolute path \
of the program first; or files, each with path and sha256; or both. Files are opened once, without following symbolic \
links, and copied into memory that nobody can change; the command gets that copy. For a roll-back the payload's \
rollback_operation counts. The command gets an empty standard input, a fixed PATH, the HOME of its user, LANG, TERM and TZ, and runs in / unless \
operation.cwd says otherwise.";

#[derive(clap::Args)]
#[command(after_help = AFTER, after_long_help = format!("{AFTER}\n\n{}", crate::permit::LIMITS))]
pub(crate) struct Arguments {
    /// The permit, or - for standard input
    #[arg(long, value_name = "FILE")]
    permit: PathBuf,
    #[command(flatten)]
    check: CheckArguments,
    /// A variable to pass on to the command; may be repeated
    #[arg(long, value_name = "NAME")]
    env_allow: Vec<String>,
    /// The command to run, word for word as it was approved
    #[arg(last = true, required = true, value_name = "CMD ARG…")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    if let Some(why) = arguments.env_allow.iter().find_map(|name| refused_name(name)) {
        return Err(Failure::Usage(why));
    }
    let allowed: Vec<_> = arguments.env_allow.iter().cloned().map(Allowed).collect();
    let checked = arguments.check.check(&arguments.permit)?;
    let prepared = prepare(checked.permit(), &arguments.command, &allowed, environment)?;
    arguments.check.fresh.ask(checked.permit(), environment)?;
    if !checked.spend()? {
        note("pilot: without --spent, this permit can be used again until it is too old")?;
    }
    Err(prepared.run())
}
