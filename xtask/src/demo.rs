//! `cargo xtask demo`: from a fresh clone to a running service.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::console;
use crate::step::{Failure, cannot_start, cargo, run_timed, shown, target_dir};
use crate::tools::{self, CC};

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    tools::install_missing(&[CC])?;
    console::build_page()?;
    run_timed("build", &mut cargo(&["build", "--profile", "demo", "--package", "pilot"]))?;
    let mut demo = Command::new(target_dir().join("demo/pilot"));
    demo.arg("demo").args(arguments);
    // The service replaces this process: Ctrl-C reaches it, and its exit code is the command's.
    let error = demo.exec();
    Err(cannot_start(&shown(&demo), &error))
}
