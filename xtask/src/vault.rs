//! `cargo xtask vault`: a real server that speaks Vault's protocol, for the tests that read credentials from one.

use crate::crates::Crate;
use crate::step::{Failure, output_of, program};
use crate::tools::{self, Tool};

/// Finds OpenSSL's headers.
const PKG_CONFIG: Tool = Tool { program: "pkg-config", package: "pkg-config" };
/// A package without a program; its name stands for one that is never found.
const OPENSSL: Tool = Tool { program: "openssl-headers", package: "libssl-dev" };

const VAULT: Crate = Crate { program: "rvault", name: "rusty_vault", version: "0.2.1" };

/// Builds RustyVault into `target/tools`, once.
pub(crate) fn install() -> Result<(), Failure> {
    if VAULT.is_there() {
        return Ok(());
    }
    tools::install_missing(&[PKG_CONFIG])?;
    if output_of(&mut program("pkg-config", &["--exists", "openssl"])).is_err() {
        tools::install_missing(&[OPENSSL])?;
    }
    VAULT.install_missing().map(drop)
}
