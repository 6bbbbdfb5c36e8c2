//! What a check builds and runs, compiled with the lints' compiler: nothing is compiled a second time for its lints,
//! which are errors.

use std::process::Command;

use crate::step::{Failure, cargo, run_timed};
use crate::tools;

/// Between the arguments in the variable that clippy reads.
const SEPARATOR: &str = "__CLIPPY_HACKERY__";

/// Every program, test and example. All at once, as for the tests: for a part of the workspace, dependencies would have
/// other features and be built again.
pub(crate) fn build() -> Result<(), Failure> {
    tools::install_missing_components()?;
    run_timed("build", &mut linting_cargo(&["build", "--workspace", "--all-targets"]))
}

pub(crate) fn linting_cargo(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    lint(&mut command);
    command
}

/// As `cargo clippy -- -D warnings` tells the compiler.
fn lint(command: &mut Command) {
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", ["-D", "warnings"].join(SEPARATOR));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::step::{program, target_dir};

    /// The variable is between cargo and clippy: if that changes, lints must not go silent.
    #[test]
    fn a_lint_stops_the_build() {
        let directory = target_dir().join(format!("lint-test-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        for (code, is_clean) in [("list.is_empty()", true), ("list.len() == 0", false)] {
            let file = directory.join("lib.rs");
            fs::write(&file, format!("pub fn is_done(list: &[u8]) -> bool {{\n    {code}\n}}\n")).unwrap();
            let mut compiler = program("clippy-driver", &["rustc", "--crate-type=lib", "--emit=metadata"]);
            lint(compiler.arg("--out-dir").arg(&directory).arg(&file));
            let output = compiler.output().unwrap();
            let printed = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.success(), is_clean, "{printed}");
            assert_eq!(printed.contains("clippy::len-zero"), !is_clean, "{printed}");
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
