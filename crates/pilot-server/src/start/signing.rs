//! The key that signs the log, and what it has signed before.

use std::path::Path;
use std::sync::Arc;

use pilot_evidence::note::NoteKey;
use pilot_store::Store;

use super::{StartError, with_cause};
use crate::config::Config;
use crate::private_file::{self, Others};
use crate::random;
use crate::second_place::{PlaceError, SecondPlace};
use crate::signer::Signer;
use crate::starts::LastStart;

/// A signer for this ledger, if it is the one that was signed before.
pub(super) async fn open(config: &Config, store: &Arc<dyn Store>) -> Result<Arc<Signer>, StartError> {
    let place = open_place(&config.checkpoint_path())?;
    let is_begun = store.head().borrow().size() > 0 || place.path().exists();
    let key = load_or_make(&config.log_key_path(), is_begun)?;
    let was_kept = LastStart::read(&**store).await?.second_place;
    Signer::open(key, Arc::clone(store), place, was_kept).await
}

pub fn open_place(path: &Path) -> Result<SecondPlace, StartError> {
    SecondPlace::open(path).map_err(|error| match error {
        PlaceError::Locked { .. } => StartError::Refused(error.to_string()),
        PlaceError::Io { .. } => StartError::Environment { what: with_cause(&error), source: None },
    })
}

/// The key that signs the log: made on the first start, refused when it is damaged or open to others.
fn load_or_make(path: &Path, is_begun: bool) -> Result<NoteKey, StartError> {
    if !path.exists() {
        if is_begun {
            let remedy = "restore it from your copy: another key would begin another log";
            return Err(StartError::Refused(format!(
                "{}: the log signing key is missing, but the ledger is not empty; {remedy}",
                path.display()
            )));
        }
        let name = format!("pilot.local/{:08x}", u32::from_ne_bytes(random::bytes()?));
        return make_log_key(path, &name);
    }
    load_key(path)
}

/// The key in a file that nobody else may read.
pub fn load_key(path: &Path) -> Result<NoteKey, StartError> {
    let file = private_file::read(path, Others::MayNothing).map_err(|error| StartError::Refused(with_cause(&error)))?;
    let text = String::from_utf8_lossy(&file.bytes);
    NoteKey::parse(&text).map_err(|error| StartError::Refused(format!("{}: {error}", path.display())))
}

/// Writes a new log signing key; never over an old one, whose signatures could then no longer be continued.
pub fn make_log_key(path: &Path, name: &str) -> Result<NoteKey, StartError> {
    let key = NoteKey::generate(name, &random::bytes()?).map_err(|error| StartError::Refused(error.to_string()))?;
    let written = private_file::write_new(path, key.to_line().as_bytes());
    written.map_err(|error| StartError::environment(format!("{}: cannot be written", path.display()), error))?;
    Ok(key)
}
