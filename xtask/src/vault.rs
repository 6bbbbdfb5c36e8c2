//! `cargo xtask vault`: a real server that speaks Vault's protocol, for the tests that read credentials from one.

use crate::step::{Failure, cargo, output_of, program, run_timed, target_dir};
use crate::tools::{self, Tool};

const VERSION: &str = "0.2.1";

/// Finds OpenSSL's headers.
const PKG_CONFIG: Tool = Tool { program: "pkg-config", package: "pkg-config" };
/// A package without a program; its name stands for one that is never found.
const OPENSSL: Tool = Tool { program: "openssl-headers", package: "libssl-dev" };

/// Builds RustyVault into `target/tools`, once. Without optimisation and debug information, which is fastest to build:
/// it only answers a few requests.
pub(crate) fn install() -> Result<(), Failure> {
    let directory = target_dir().join("tools");
    if directory.join("bin/rvault").exists() {
        return Ok(());
    }
    tools::install_missing(&[PKG_CONFIG])?;
    if output_of(&mut program("pkg-config", &["--exists", "openssl"])).is_err() {
        tools::install_missing(&[OPENSSL])?;
    }
    let mut install = cargo(&["install", "rusty_vault", "--version", VERSION, "--locked", "--debug", "--root"]);
    install.arg(&directory).arg("--target-dir").arg(directory.join("build"));
    install.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    run_timed("install rusty_vault", &mut install)
}
