//! `cargo xtask readers`: other people's libraries, with which the tests read permit tokens.

use std::process::Command;

use crate::step::{Failure, program, root, run_timed, target_dir};
use crate::tools;

/// The directory is named after the version, so that another version is installed next to it.
const INSTALLED: &str = "tools/pyjwt-2.15.1";
const SCRIPTS: &str = "crates/pilot/tests/permits/readers";

pub(crate) fn install_missing() -> Result<(), Failure> {
    tools::install_packages("readers of permit tokens", SCRIPTS)?;
    let home = target_dir().join(INSTALLED);
    // The last thing that an installation writes.
    if home.join("whole").exists() {
        return Ok(());
    }
    tools::install_missing_venv()?;
    run_timed("install", program("python3", &["-m", "venv", "--clear"]).arg(&home))?;
    let mut pip = Command::new(home.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement"]);
    run_timed("install", pip.arg(root().join("xtask/pyjwt.txt")))?;
    std::fs::write(home.join("whole"), "").map_err(|error| Failure::environment(format!("{INSTALLED}: {error}")))
}
