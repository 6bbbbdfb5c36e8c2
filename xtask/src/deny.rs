//! `cargo xtask deny`: licences, sources and bans of everything the program is built from.

use crate::step::{self, Failure, program};
use crate::tools;

const VERSION: &str = "0.20.2";

pub(crate) fn run() -> Result<(), Failure> {
    let executable = tools::install_missing_crate("cargo-deny", VERSION)?;
    let mut deny = program(&executable.to_string_lossy(), &["--locked", "--all-features", "check"]);
    // Not the advisories: their database is not on a package registry, and a build machine may not be able to reach it.
    step::run(deny.args(["--hide-inclusion-graph", "bans", "licenses", "sources"]))
}
