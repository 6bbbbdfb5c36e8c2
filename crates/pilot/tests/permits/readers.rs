//! Other people's libraries, which read permit tokens as a target would.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::harness::{Finished, finish};

#[derive(Debug, Clone, Copy)]
pub enum Reader {
    /// From npm.
    Jose,
    /// From the Python package index.
    PyJwt,
}

/// Where `cargo xtask readers` puts the Python library.
pub fn python() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_pilot"));
    let python = built.parent().unwrap().parent().unwrap().join("tools/readers-2/bin/python3");
    assert!(python.exists(), "{} is missing: run `cargo xtask readers`, which installs it", python.display());
    python
}

/// Where `cargo xtask readers` puts what verifies webhooks.
pub fn client_python() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_pilot"));
    let python = built.parent().unwrap().parent().unwrap().join("tools/clients-1/bin/python3");
    assert!(python.exists(), "{} is missing: run `cargo xtask readers`, which installs it", python.display());
    python
}

pub fn scripts() -> PathBuf {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/permits/readers");
    let installed = scripts.join("node_modules/jose");
    assert!(installed.exists(), "{} is missing: run `cargo xtask readers`, which installs it", installed.display());
    scripts
}

/// What a reader makes of a token: its claims, or an error. The token goes in on standard input.
pub fn read_by(reader: Reader, issuer: &str, audience: &str, token: &str) -> Finished {
    let scripts = scripts();
    let mut command = match reader {
        Reader::Jose => {
            let mut command = Command::new("node");
            command.arg(scripts.join("read.mjs"));
            command
        }
        Reader::PyJwt => {
            let mut command = Command::new(python());
            command.arg(scripts.join("read.py"));
            command
        }
    };
    command.args([issuer, audience]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command, Some(token))
}
