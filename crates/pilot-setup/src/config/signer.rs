//! The section `[log.signer]`: a program that signs with the log's key, for a key that is not in a file.

use std::time::Duration;

use pilot_core::limits::{SIGNER_PATIENCE_SECONDS, SIGNER_PATIENCE_SECONDS_MAX};
use pilot_evidence::note::NoteKey;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::source::{Exec, command};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "SignerSection")]
#[schemars(with = "SignerSection")]
pub struct Signer {
    /// Of the log.
    pub name: String,
    pub exec: Exec,
}

/// A program that signs with the log's key, which is then in no file: in a hardware security module, for example, or at a
/// key management service.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignerSection {
    /// The name of the log, which its signatures carry forever; preferably a host name you own.
    #[serde(deserialize_with = "log_name")]
    name: String,
    /// The full path of the program, followed by its arguments. It is not run by a shell.
    #[serde(deserialize_with = "command")]
    #[schemars(with = "Vec<String>")]
    command: (std::path::PathBuf, Vec<String>),
    /// How long one signature may take.
    #[serde(default = "patience", deserialize_with = "seconds")]
    #[schemars(range(min = 1, max = 10))]
    timeout_seconds: u8,
}

const fn patience() -> u8 {
    SIGNER_PATIENCE_SECONDS
}

/// Longer ones would have to be waited for when the service stops, and nothing is accepted meanwhile.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let seconds = i64::deserialize(deserializer)?;
    let valid = u8::try_from(seconds).ok().filter(|seconds| (1..=SIGNER_PATIENCE_SECONDS_MAX).contains(seconds));
    valid.ok_or_else(|| D::Error::custom(format!("{seconds} is not from 1 to {SIGNER_PATIENCE_SECONDS_MAX}")))
}

impl From<SignerSection> for Signer {
    fn from(section: SignerSection) -> Signer {
        let (program, arguments) = section.command;
        let timeout = Duration::from_secs(section.timeout_seconds.into());
        Signer { name: section.name, exec: Exec { program, arguments, timeout, environment: Vec::new() } }
    }
}

fn log_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    NoteKey::check_name(&name).map_err(D::Error::custom)?;
    Ok(name)
}
