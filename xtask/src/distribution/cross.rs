//! The C compiler for a processor other than this machine's. The same parts as here: Debian's gcc, the headers of Debian's
//! musl, and the C library that Rust brings for the target.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::{at, make_directory};
use crate::step::{Failure, output_of, program, run, run_timed, target_dir};
use crate::tools::AARCH64_GCC;

/// The package for the other processor; its headers differ from ours.
const PACKAGE: &str = "musl-dev";
const HEADERS: &str = "usr/include/aarch64-linux-musl";

/// Tells cargo which compiler and linker to use, and returns the compiler's flags.
pub(super) fn prepare(build: &mut Command, target: &str) -> Result<Vec<String>, Failure> {
    let gcc = AARCH64_GCC.program;
    let (lower, upper) = (target.replace('-', "_"), target.replace('-', "_").to_uppercase());
    build.env(format!("CC_{lower}"), gcc).env(format!("AR_{lower}"), "aarch64-linux-gnu-ar");
    build.env(format!("CARGO_TARGET_{upper}_LINKER"), gcc);
    let own = output_of(&mut program(gcc, &["-print-file-name=include"]))?;
    let headers = headers()?;
    // As musl-gcc does it. The compiler's helpers for atomic operations need glibc.
    let flags = ["-nostdinc", "-isystem", &headers.to_string_lossy(), "-isystem", own.trim(), "-mno-outline-atomics"];
    Ok(flags.map(str::to_owned).to_vec())
}

/// Downloads the headers once, by apt, which checks Debian's signature. They are only unpacked, so this machine's own
/// packages stay as they are.
fn headers() -> Result<PathBuf, Failure> {
    let home = target_dir().join("tools/musl-arm64");
    let whole = home.join("whole");
    if !whole.exists() {
        if home.exists() {
            fs::remove_dir_all(&home).map_err(|error| at(&home, &error))?;
        }
        for part in ["lists/partial", "archives/partial"] {
            make_directory(&home.join(part))?;
        }
        run(&mut apt(&home, &["update"]))?;
        run_timed("install", &mut apt(&home, &["download", PACKAGE]))?;
        let unpacked = home.join("unpacked");
        run(program("dpkg-deb", &["--extract"]).arg(downloaded(&home)?).arg(&unpacked))?;
        fs::remove_dir_all(home.join("lists")).map_err(|error| at(&home, &error))?;
        // The last thing that an installation does.
        fs::rename(&unpacked, &whole).map_err(|error| at(&unpacked, &error))?;
    }
    Ok(whole.join(HEADERS))
}

/// apt for the other processor, with lists of its own.
fn apt(home: &Path, arguments: &[&str]) -> Command {
    let mut apt = program("apt-get", &["--quiet=2"]);
    for setting in ["APT::Architecture=arm64", "APT::Architectures=arm64", "APT::Sandbox::User=root"] {
        apt.args(["--option", setting]);
    }
    for (setting, place) in [("Dir::State::lists", "lists"), ("Dir::Cache::archives", "archives")] {
        apt.arg("--option").arg(format!("{setting}={}", home.join(place).display()));
    }
    for setting in ["Dir::State::status=/dev/null", "Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache="] {
        apt.args(["--option", setting]);
    }
    apt.args(arguments).current_dir(home);
    apt
}

fn downloaded(home: &Path) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(home).map_err(|error| at(home, &error))?;
    let mut packages = entries.filter_map(|entry| Some(entry.ok()?.path()));
    packages
        .find(|path| path.extension().is_some_and(|ending| ending == "deb"))
        .ok_or_else(|| Failure::environment(format!("apt-get has not downloaded {PACKAGE} for arm64")))
}
