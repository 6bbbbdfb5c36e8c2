//! The verifier for browsers: `crates/pilot-verify-web` as WebAssembly, put where the console's build finds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::places;
use crate::step::{Failure, cargo, output_of, program, root, run_timed, target_dir};
use crate::tools::{self, DEBIAN_CARGO, DEBIAN_RUST_SOURCE, DEBIAN_RUSTC, WASM_LD, modified};

const TARGET: &str = "wasm32-unknown-unknown";
const PLACE: &str = "console/src/verifier/pilot_verifier.wasm";
/// Whatever its verdicts depend on.
const SOURCES: [&str; 9] = [
    "Cargo.toml",
    "Cargo.lock",
    "workflows",
    "crates/pilot-core/Cargo.toml",
    "crates/pilot-core/src",
    "crates/pilot-evidence/Cargo.toml",
    "crates/pilot-evidence/src",
    "crates/pilot-verify-web/Cargo.toml",
    "crates/pilot-verify-web/src",
];
/// Separates the flags that cargo gets in one variable: they may contain spaces.
const SEPARATOR: &str = "\u{1f}";
const BY_HAND: &str = "The verifier for browsers needs Rust's standard library for WebAssembly: `rustup target add wasm32-unknown-unknown`.";

/// Builds it if it is older than its sources.
pub(crate) fn build() -> Result<(), Failure> {
    let place = root().join(PLACE);
    let newest = SOURCES.iter().filter_map(|source| newest(&root().join(source))).max();
    if modified(&place) >= newest {
        return Ok(());
    }
    let mut command = compiler()?;
    let directory = target_dir().join("web");
    command.args(["build", "--locked", "--profile", "web", "--package", "pilot-verify-web", "--target", TARGET]);
    command.arg("--target-dir").arg(&directory);
    let flags = places::renamed()?.into_iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.collect::<Vec<_>>().join(SEPARATOR));
    run_timed("verifier for browsers", &mut command)?;
    put(&directory.join(TARGET).join("web/pilot_verify_web.wasm"), &place)
}

/// The toolchain in use, if it can compile for browsers or be taught to; otherwise Debian's, which builds its standard
/// library as well and takes minutes.
fn compiler() -> Result<Command, Failure> {
    if !can_compile() && tools::is_installed("rustup") {
        // A machine without a mirror of Rust's releases says no at once.
        let _ = run_timed("install", &mut program("rustup", &["target", "add", TARGET]));
    }
    if can_compile() {
        return Ok(cargo(&[]));
    }
    tools::install_missing(&[DEBIAN_RUSTC, DEBIAN_CARGO, DEBIAN_RUST_SOURCE, WASM_LD])
        .map_err(|failure| Failure::environment(format!("{failure}\n{BY_HAND}")))?;
    let mut command = program(DEBIAN_CARGO.program, &["-Z", "build-std=std,panic_abort"]);
    // Not the usual ones: a backtrace has nowhere to go, and nothing is unwound.
    command.args(["-Z", "build-std-features="]);
    // What cargo and rustup told this program is about another toolchain.
    command.env("RUSTC", DEBIAN_RUSTC.program);
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("LD_LIBRARY_PATH");
    // Building the standard library is not a stable feature of cargo; everything else is compiled as ever.
    command.env("RUSTC_BOOTSTRAP", "1");
    command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", WASM_LD.program);
    Ok(command)
}

/// The compiler tells the place of a standard library whether there is one or not.
fn can_compile() -> bool {
    let asked = output_of(&mut program("rustc", &["--print", "target-libdir", "--target", TARGET]));
    asked.is_ok_and(|place| Path::new(place.trim()).is_dir())
}

/// In one step: a build of the console at the same time sees all of it or none.
fn put(made: &Path, place: &Path) -> Result<(), Failure> {
    let beside = PathBuf::from(format!("{}.new", place.display()));
    let done = fs::copy(made, &beside).and_then(|_| fs::rename(&beside, place));
    done.map_err(|error| Failure::environment(format!("{}: {error}", place.display())))
}

/// When anything in a directory, or a file, was last changed.
fn newest(path: &Path) -> Option<SystemTime> {
    let Ok(entries) = fs::read_dir(path) else { return modified(path) };
    entries.filter_map(Result::ok).filter_map(|entry| newest(&entry.path())).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_there() {
        for source in SOURCES {
            assert!(newest(&root().join(source)).is_some(), "{source} has gone somewhere else");
        }
    }
}
