//! `cargo xtask console`: the operator console, from its sources to the files included in the program.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::programs;
use crate::step::{Failure, program, root, run_timed};
use crate::tools::{self, CHROMIUM, FIREFOX, modified};
use crate::wasm;

/// Builds only if the sources are newer than what was built from them.
pub(crate) fn build() -> Result<(), Failure> {
    wasm::build()?;
    build_page()
}

/// Without the verifier for browsers, unless it was built before: its compiler is too much to install for a first look.
pub(crate) fn build_page() -> Result<(), Failure> {
    install()?;
    let console = root().join("console");
    // The last file of a build that kept to its limits.
    if modified(&console.join("dist/.packed")) < newest(&console) {
        npm("console", &["run", "--silent", "build"])?;
    }
    Ok(())
}

/// Checks the types, the API's types against its document, the unit tests, and the files with their sizes.
pub(crate) fn check() -> Result<(), Failure> {
    wasm::build()?;
    install()?;
    npm("types", &["run", "--silent", "types"])?;
    npm("unit tests", &["run", "--silent", "unit"])?;
    // Not if the files are current: new ones would have the program built and linked again.
    build_page()
}

/// Tests the console in a browser, against the real service.
pub(crate) fn check_in_browser() -> Result<(), Failure> {
    tools::install_missing(&[CHROMIUM, FIREFOX])?;
    tools::install_packages("identity provider", tools::PROVIDER)?;
    build()?;
    programs::build()?;
    npm("browser tests", &["run", "--silent", "browser"])
}

/// After a change to the API: generates its types from its document.
pub(crate) fn generate_types() -> Result<(), Failure> {
    install()?;
    npm("types", &["run", "--silent", "api"])
}

fn install() -> Result<(), Failure> {
    tools::install_packages("console packages", "console")
}

fn npm(what: &str, arguments: &[&str]) -> Result<(), Failure> {
    let mut command = program("npm", arguments);
    run_timed(what, command.current_dir(root().join("console"))).map_err(|failure| {
        Failure::refuted(format!("{failure}\nThe console needs Node 20 or newer with npm; see CONTRIBUTING.md."))
    })
}

/// When a source file of the console was last changed.
fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let times = entries.filter_map(|entry| match entry.file_name().to_str() {
        Some("node_modules" | "dist" | "tests") => None,
        _ if entry.path().is_dir() => newest(&entry.path()),
        _ => modified(&entry.path()),
    });
    times.max()
}
