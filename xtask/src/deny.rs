//! `cargo xtask deny`: licences, sources and bans of everything the program is built from.

use std::path::Path;

use crate::step::{self, Failure, cargo, program, run_timed, target_dir};

const VERSION: &str = "0.20.2";

pub fn run() -> Result<(), Failure> {
    let directory = target_dir().join("tools");
    let executable = directory.join("bin/cargo-deny");
    if !executable.exists() {
        install(&directory)?;
    }
    let mut deny = program(&executable.to_string_lossy(), &["--locked", "--all-features", "check"]);
    // Not the advisories: their database lives outside of the package registries a build machine may reach.
    step::run(deny.args(["--hide-inclusion-graph", "bans", "licenses", "sources"]))
}

/// Built without optimisation: it runs for a second, and building it well takes minutes.
fn install(directory: &Path) -> Result<(), Failure> {
    let mut install = cargo(&["install", "cargo-deny", "--version", VERSION, "--locked", "--root"]);
    install.arg(directory).arg("--target-dir").arg(directory.join("build"));
    install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_PROFILE_RELEASE_LTO", "off");
    install.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    run_timed("install cargo-deny", &mut install)
}
