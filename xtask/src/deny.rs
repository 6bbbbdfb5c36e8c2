//! `cargo xtask deny`: licences, sources and bans of everything the program is built from.

use crate::crates::Crate;
use crate::step::{self, Failure, program};

const DENY: Crate = Crate { program: "cargo-deny", name: "cargo-deny", version: "0.20.2" };

pub(crate) fn run() -> Result<(), Failure> {
    let executable = DENY.install_missing()?;
    let mut deny = program(&executable.to_string_lossy(), &["--locked", "--all-features", "check"]);
    // Not the advisories: their database is not on a package registry, and a build machine may not be able to reach it.
    step::run(deny.args(["--hide-inclusion-graph", "bans", "licenses", "sources"]))
}
