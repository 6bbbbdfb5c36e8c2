//! The static programs: with musl's C library, without paths of the build machine, and with the list of crates they
//! contain.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{self, Failure, cargo, output_of, program, root, run_timed, target_dir};
use crate::tools;

pub(super) const TARGET: &str = "x86_64-unknown-linux-musl";
pub(super) const PROGRAMS: [&str; 2] = ["pilot", "pilot-verify"];
const AUDITABLE_VERSION: &str = "0.7.7";
/// Separates the flags that cargo gets in one variable: they may contain spaces.
const SEPARATOR: &str = "\u{1f}";

pub(super) fn run(stage: &Path) -> Result<[PathBuf; 2], Failure> {
    if !output_of(&mut program("rustup", &["target", "list", "--installed"]))?.lines().any(|line| line == TARGET) {
        run_timed("install", &mut program("rustup", &["target", "add", TARGET]))?;
    }
    tools::install_missing_crate("cargo-auditable", AUDITABLE_VERSION)?;
    let mut build = cargo(&["auditable", "build", "--locked", "--release", "--target", TARGET]);
    build.arg("--target-dir").arg(target_dir());
    build.args(PROGRAMS.iter().flat_map(|name| ["--package", name]));
    with_tools(&mut build)?;
    let places = renamed_places()?;
    let flags: Vec<_> = places.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR));
    let flags: Vec<_> = places.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    build.env(format!("CFLAGS_{}", TARGET.replace('-', "_")), flags.join(" "));
    run_timed("build", &mut build)?;
    let made = target_dir().join(TARGET).join("release");
    let programs = PROGRAMS.map(|name| stage.join("programs").join(name));
    for (path, name) in programs.iter().zip(PROGRAMS) {
        super::place::copy(&made.join(name), path)?;
        // The list of crates stays; function names are removed. A panic is logged with its place in the sources.
        step::run(program("strip", &["--strip-all"]).arg(path))?;
    }
    Ok(programs)
}

/// cargo finds its subcommands on the path.
pub(super) fn with_tools(command: &mut Command) -> Result<(), Failure> {
    let path = output_of(&mut program("sh", &["-c", "printf %s \"$PATH\""]))?;
    command.env("PATH", format!("{}:{path}", target_dir().join("tools/bin").display()));
    Ok(())
}

/// Which prefix replaces each path of this machine; if several match, the last one counts.
pub(super) fn renamed_places() -> Result<Vec<(String, &'static str)>, Failure> {
    // A build's own copies of generated files are below the target directory.
    let mut places = vec![(target_dir().to_string_lossy().into_owned(), "target")];
    places.push((root().to_string_lossy().into_owned(), "pilot"));
    let metadata = output_of(&mut cargo(&["metadata", "--locked", "--format-version", "1"]))?;
    if let Some(registry) = registry_of(&metadata) {
        places.push((registry, "crates"));
    }
    Ok(places)
}

/// The directory with the sources of other people's crates, derived from the first of them.
fn registry_of(metadata: &str) -> Option<String> {
    let manifests = metadata.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    manifests.filter_map(|path| path.split_once("/registry/src/")).find_map(|(home, rest)| {
        let index = rest.split('/').next()?;
        Some(format!("{home}/registry/src/{index}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_other_crates_are_found_whatever_the_registry_is_called() {
        let metadata =
            r#"{"manifest_path":"/a/pilot/Cargo.toml"},{"manifest_path":"/b/registry/src/x-1/clap/Cargo.toml"}"#;
        assert_eq!(registry_of(metadata).as_deref(), Some("/b/registry/src/x-1"));
        assert_eq!(registry_of(r#"{"manifest_path":"/a/vendor/clap/Cargo.toml"}"#), None);
    }
}
