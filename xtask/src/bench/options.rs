//! Options of benchmarks.

use std::path::PathBuf;

use crate::step::Failure;

/// For a benchmark without options.
pub(super) fn none(arguments: &[&str]) -> Result<(), Failure> {
    match arguments.first() {
        None => Ok(()),
        Some(option) => Err(Failure::usage(format!("this benchmark takes no options, but `{option}` was given"))),
    }
}

/// `--beside PATH`: another build of the program, measured in turns with the one built here.
pub(super) fn other_program(arguments: &[&str]) -> Result<Option<PathBuf>, Failure> {
    match arguments {
        [] => Ok(None),
        ["--beside", path] => Ok(Some(PathBuf::from(path))),
        _ => Err(Failure::usage("the only option is --beside PATH, the path of another build of `pilot`")),
    }
}

/// `--entries N`: one more size of the ledger.
pub(super) fn entries(arguments: &[&str]) -> Result<Option<u64>, Failure> {
    match arguments {
        [] => Ok(None),
        ["--entries", number] => match number.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Failure::usage(format!("--entries needs a number, and `{number}` is not one"))),
        },
        _ => Err(Failure::usage("the only option is --entries N, one more size of the ledger")),
    }
}
