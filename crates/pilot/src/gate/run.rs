//! From an approved operation to a running command.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use pilot_core::limits::GATE_BYTES_MAX;
use pilot_evidence::permit::Permit;

use super::environment::{Allowed, of_command};
use super::files::Copy;
use super::operation::{Operation, Word};
use crate::environment::Environment;
use crate::exit::Failure;

/// A command whose every byte that was approved is checked and out of reach. Only running it is left.
pub(crate) struct Prepared {
    command: Command,
    shown: String,
    /// Open until the command has replaced this process.
    _copies: Vec<Copy>,
}

pub(crate) fn prepare(
    permit: &Permit,
    given: &[OsString],
    allowed: &[Allowed],
    environment: &Environment,
) -> Result<Prepared, Failure> {
    let refused = |why: String| Failure::Refused(format!("the command is refused: {why}"));
    let operation = Operation::of(permit).map_err(refused)?;
    let words = operation.words(given).map_err(refused)?;
    let (mut copies, mut paths, mut left) = (Vec::new(), Vec::<OsString>::new(), GATE_BYTES_MAX);
    for (number, word) in words.iter().enumerate() {
        paths.push(match word {
            Word::Plain(word) => OsString::from(word),
            Word::File(file) => {
                let copy = Copy::take(file, &mut left)?;
                if number == 0 && !copy.is_program {
                    let what = "is neither a program nor a script whose first line names its interpreter (#!/bin/sh)";
                    return Err(refused(format!("{} {what}", file.path)));
                }
                let path = copy.path();
                copies.push(copy);
                path.into()
            }
        });
    }
    let (program, arguments) = paths.split_first().ok_or_else(|| refused("it is empty".to_owned()))?;
    if !copies.is_empty() && !Path::new("/proc/self/fd").is_dir() {
        let why = "/proc is not mounted, and through it the command is given the checked bytes; mount it";
        return Err(Failure::Environment(why.to_owned()));
    }
    let mut command = Command::new(program);
    command.arg0(given.first().map_or(OsStr::new(""), |word| word)).args(arguments);
    command.env_clear().envs(of_command(permit, allowed, environment));
    // What comes in there is not approved, and neither is the place from which the gate is called.
    command.stdin(Stdio::null()).current_dir(operation.cwd.as_deref().unwrap_or("/"));
    let shown = given.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Prepared { command, shown, _copies: copies })
}

impl Prepared {
    /// Replaces this process. Returns only if that fails.
    pub(crate) fn run(mut self) -> Failure {
        let error = self.command.exec();
        Failure::environment(
            format!(
                "{}: cannot be run, and with --spent the attempt counts as used; retry the item when this is mended",
                self.shown
            ),
            error,
        )
    }
}
