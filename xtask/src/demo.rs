//! `cargo xtask demo`: from a fresh clone to a running service.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use crate::step::{Failure, cannot_start, cargo, program, root, run_timed, shown, target_dir};
use crate::tools::{self, CC, exists};

pub fn run(arguments: &[&str]) -> Result<(), Failure> {
    tools::install_missing(&[CC])?;
    build_console()?;
    run_timed("build", &mut cargo(&["build", "--release", "--package", "pilot"]))?;
    let mut demo = Command::new(target_dir().join("release/pilot"));
    demo.arg("demo").args(arguments);
    // The service takes this process's place: Ctrl-C reaches it, and its exit code is the command's.
    let error = demo.exec();
    Err(cannot_start(&shown(&demo), &error))
}

/// Only when its sources are newer than what was built from them.
fn build_console() -> Result<(), Failure> {
    if !exists("console/package.json") {
        return Ok(());
    }
    let console = root().join("console");
    let npm = |what: &str, arguments: &[&str]| {
        run_timed(what, program("npm", arguments).current_dir(&console)).map_err(|failure| {
            Failure::environment(format!("{failure}\nThe console needs Node 20 or newer with npm; see README.md."))
        })
    };
    let installed = modified(&console.join("node_modules/.package-lock.json"));
    if installed < modified(&console.join("package-lock.json")) {
        npm("console packages", &["ci", "--no-fund", "--no-audit"])?;
    }
    if modified(&console.join("dist/index.html")) < newest(&console) {
        npm("console", &["run", "build"])?;
    }
    Ok(())
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

/// When a source file of the console was last changed.
fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let times = entries.filter_map(|entry| match entry.file_name().to_str() {
        Some("node_modules" | "dist") => None,
        _ if entry.path().is_dir() => newest(&entry.path()),
        _ => modified(&entry.path()),
    });
    times.max()
}
