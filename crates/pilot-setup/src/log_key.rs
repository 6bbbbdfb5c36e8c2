//! The key that signs the log.

use std::path::Path;

use pilot_evidence::note::NoteKey;

use crate::error::{StartError, with_cause};
use crate::private_file::{self, Others};
use crate::random;

/// The key that signs the log: generated on the first start, refused if it is damaged or accessible to others.
pub fn load_or_make(path: &Path, is_begun: bool) -> Result<NoteKey, StartError> {
    if !path.exists() {
        if is_begun {
            let remedy = "restore it from your copy: another key would begin another log";
            return Err(StartError::Refused(format!(
                "{}: the log signing key is missing, but the ledger is not empty; {remedy}",
                path.display()
            )));
        }
        let name = format!("pilot.local/{:08x}", u32::from_ne_bytes(random::bytes()?));
        return make(path, &name);
    }
    load(path)
}

/// Reads the key from a file that nobody else may read.
pub fn load(path: &Path) -> Result<NoteKey, StartError> {
    let file = private_file::read(path, Others::MayNothing).map_err(|error| StartError::Refused(with_cause(&error)))?;
    let text = String::from_utf8_lossy(&file.bytes);
    NoteKey::parse(&text).map_err(|error| StartError::Refused(format!("{}: {error}", path.display())))
}

/// Writes a new log key; never over an old one, because then the old log could not be continued.
pub fn make(path: &Path, name: &str) -> Result<NoteKey, StartError> {
    let key = NoteKey::generate(name, &random::bytes()?).map_err(|error| StartError::Refused(error.to_string()))?;
    let written = private_file::write_new(path, key.to_line().as_bytes());
    written.map_err(|error| StartError::environment(format!("{}: cannot be written", path.display()), error))?;
    Ok(key)
}
