//! `cargo xtask deny`: licences, sources and bans of everything the program is built from.

use crate::step::{self, Failure, program};
use crate::tools;

const VERSION: &str = "0.20.2";

pub(crate) fn run() -> Result<(), Failure> {
    let executable = tools::install_missing_crate("cargo-deny", VERSION)?;
    let mut deny = program(&executable.to_string_lossy(), &["--locked", "--all-features", "check"]);
    // Not the advisories: their database lives outside of the package registries a build machine may reach.
    step::run(deny.args(["--hide-inclusion-graph", "bans", "licenses", "sources"]))
}
