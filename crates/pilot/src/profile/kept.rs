//! What a sign-in left behind: the token of a profile, in the session keyring or, where there is none, in a file.

use std::path::{Path, PathBuf};

use pilot_core::time::Time;
use pilot_setup::private_file::{self, FileError, Others};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use crate::environment::Environment;
use crate::exit::Failure;
use crate::profile::keyring;

#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    pub token: String,
    /// How it is renewed and ended, if a provider issued it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Grant {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    pub client_id: String,
    pub token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// By this machine's clock; none if the provider did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.token.zeroize();
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.refresh_token.zeroize();
    }
}

/// Where the token of one profile is kept.
pub(crate) struct Place {
    key: String,
    file: Option<PathBuf>,
}

/// Where it was put.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Keyring,
    /// Why not in the keyring, too.
    File(PathBuf, String),
}

impl Place {
    /// The address is a part of the name: what was signed in at one service is never sent to another.
    pub(crate) fn of(profile: &str, url: &str, environment: &Environment) -> Place {
        let directory = environment.directory("XDG_STATE_HOME", ".local/state");
        let file = directory.map(|directory| directory.join(format!("pilot/tokens/{profile}.json")));
        Place { key: format!("pilot:{profile}:{}", url.trim_end_matches('/')), file }
    }

    pub(crate) fn read(&self) -> Result<Option<Kept>, Failure> {
        let unreadable = |_| Failure::Environment("what the last sign-in kept cannot be read; sign in again".into());
        if let Ok(Some(secret)) = keyring::read(&self.key) {
            return serde_json::from_slice(&secret).map(Some).map_err(unreadable);
        }
        let Some(file) = &self.file else { return Ok(None) };
        match private_file::read(file, Others::MayNothing) {
            Ok(found) => {
                let secret = Zeroizing::new(found.bytes);
                let kept: InFile = serde_json::from_slice(&secret).map_err(unreadable)?;
                Ok(Some(kept.kept).filter(|_| kept.key == self.key))
            }
            Err(FileError::Open { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::Usage(error.to_string())),
        }
    }

    pub(crate) fn keep(&self, kept: Kept) -> Result<Kind, Failure> {
        let failed = |error| Failure::environment("JSON", error);
        let secret = Zeroizing::new(serde_json::to_vec(&kept).map_err(failed)?);
        let why = match keyring::keep(&self.key, &secret) {
            Ok(()) => return Ok(Kind::Keyring),
            Err(keyring::NoKeyring(why)) => why,
        };
        let Some(file) = &self.file else { return Err(Failure::Environment(why)) };
        let in_file = InFile { key: self.key.clone(), kept };
        let secret = Zeroizing::new(serde_json::to_vec(&in_file).map_err(failed)?);
        write(file, &secret).map_err(|error| Failure::environment(file.display(), error))?;
        Ok(Kind::File(file.clone(), why))
    }

    /// Whether something was kept.
    pub(crate) fn forget(&self) -> Result<bool, Failure> {
        let was_in_ring = keyring::remove(&self.key).unwrap_or(false);
        let removed = self.file.as_ref().map(std::fs::remove_file);
        match removed {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::environment("the kept token", error))
            }
            removed => Ok(was_in_ring || matches!(removed, Some(Ok(())))),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct InFile {
    key: String,
    kept: Kept,
}

fn write(file: &Path, secret: &[u8]) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        private_file::make_directory(directory)?;
    }
    private_file::replace(file, secret)
}
