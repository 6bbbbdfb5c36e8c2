//! PostgreSQL for the tests, which start servers of their own (`crates/pilot-testing/src/postgres.rs`).

use std::fs;
use std::path::PathBuf;

use crate::step::{Failure, output_of, program, run};
use crate::tools::{self, Tool};

const MAJOR_VERSION_MIN: u32 = 15;

/// Debian's configuration of servers.
const COMMON: Tool = Tool { program: "pg_conftool", package: "postgresql-common" };
/// Debian does not put the server into PATH; the name stands for one that is never found.
const SERVER: Tool = Tool { program: "PostgreSQL 15 or newer", package: "postgresql" };

/// Servers that exist on this machine stay as they are.
pub(crate) fn install() -> Result<(), Failure> {
    if is_installed() {
        return Ok(());
    }
    if tools::is_installed("apt-get") {
        tools::install_missing(&[COMMON])?;
        // Otherwise the package creates and starts a server that nobody needs.
        let file = "/etc/postgresql-common/createcluster.conf";
        run(&mut program("pg_conftool", &[file, "set", "create_main_cluster", "false"]))?;
    }
    tools::install_missing(&[SERVER])?;
    if is_installed() { Ok(()) } else { Err(Failure::environment(format!("{} is needed", SERVER.program))) }
}

fn is_installed() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut packaged = versions.filter(|entry| entry.path().join("bin/postgres").is_file());
    packaged.any(|entry| entry.file_name().to_str().is_some_and(is_new_enough)) || is_in_path()
}

/// The directory of the newest server's programs.
pub(crate) fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).max();
    PathBuf::from(format!("/usr/lib/postgresql/{}/bin", newest.unwrap_or(MAJOR_VERSION_MIN)))
}

fn is_in_path() -> bool {
    let version = tools::is_installed("postgres").then(|| output_of(&mut program("postgres", &["--version"])));
    // `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`
    let version = version.and_then(Result::ok);
    version.is_some_and(|text| text.split_once("(PostgreSQL) ").is_some_and(|(_, number)| is_new_enough(number)))
}

/// `15`, `15.18`, `18beta1`
fn is_new_enough(version: &str) -> bool {
    let major = version.split(|sign: char| !sign.is_ascii_digit()).next();
    major.and_then(|major| major.parse().ok()).is_some_and(|major: u32| major >= MAJOR_VERSION_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_first_number() {
        for (version, expected) in
            [("15", true), ("15.18 (Debian)", true), ("18beta1", true), ("9.6", false), ("14.20", false), ("x", false)]
        {
            assert_eq!(is_new_enough(version), expected, "{version}");
        }
    }
}
