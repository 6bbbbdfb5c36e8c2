//! The static programs: with musl's C library, without paths of the build machine, and with the list of crates they
//! contain.

use std::path::PathBuf;
use std::process::Command;

use super::architecture::Architecture;
use super::cross;
use super::place::Place;
use crate::crates::Crate;
use crate::places;
use crate::step::{self, Failure, cargo, output_of, program, run_timed, target_dir};

pub(super) const PROGRAMS: [&str; 2] = ["pilot", "pilot-verify"];
const AUDITABLE: Crate = Crate { program: "cargo-auditable", name: "cargo-auditable", version: "0.7.7" };
/// Separates the flags that cargo gets in one variable: they may contain spaces.
const SEPARATOR: &str = "\u{1f}";

pub(super) fn run(place: &Place, architecture: Architecture) -> Result<[PathBuf; 2], Failure> {
    let target = architecture.target();
    if !output_of(&mut program("rustup", &["target", "list", "--installed"]))?.lines().any(|line| line == target) {
        run_timed("install", &mut program("rustup", &["target", "add", target]))?;
    }
    AUDITABLE.install_missing()?;
    let mut build = cargo(&["auditable", "build", "--locked", "--release", "--target", target]);
    build.arg("--target-dir").arg(target_dir());
    build.args(PROGRAMS.iter().flat_map(|name| ["--package", name]));
    with_tools(&mut build)?;
    let places = places::renamed()?;
    let flags: Vec<_> = places.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR));
    let mut flags: Vec<_> = places.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    if architecture != Architecture::X86 {
        flags.extend(cross::prepare(&mut build, target)?);
    }
    build.env(format!("CFLAGS_{}", target.replace('-', "_")), flags.join(" "));
    run_timed(&format!("build for {}", architecture.debian()), &mut build)?;
    let made = target_dir().join(target).join("release");
    let programs = PROGRAMS.map(|name| place.programs(architecture).join(name));
    for (path, name) in programs.iter().zip(PROGRAMS) {
        super::place::copy(&made.join(name), path)?;
        // The list of crates stays; function names are removed. A panic is logged with its place in the sources.
        step::run(program(architecture.strip(), &["--strip-all"]).arg(path))?;
    }
    Ok(programs)
}

/// cargo finds its subcommands on the path.
pub(super) fn with_tools(command: &mut Command) -> Result<(), Failure> {
    let path = output_of(&mut program("sh", &["-c", "printf %s \"$PATH\""]))?;
    command.env("PATH", format!("{}:{path}", target_dir().join("tools/bin").display()));
    Ok(())
}
