//! Where a restore puts what is not in the ledger. What was there is kept.

use std::fs;
use std::io;
use std::path::Path;

use pilot_setup::config::Config;
use pilot_setup::log_key::{self, LogKey};
use pilot_setup::private_file;

use crate::cmd::backup;
use crate::exit::Failure;

/// Into the place of the log's key. A new key retires the old one, which is kept; `stamp` is part of its new name.
pub(super) fn put_key(key: &LogKey, is_new: bool, stamp: &str, config: &Config) -> Result<(), Failure> {
    let (private, public) = (config.log_key_path(), config.log_public_key_path());
    for path in [&private, &public].into_iter().filter(|path| is_new && path.exists()) {
        let mut retired = path.clone().into_os_string();
        retired.push(format!(".retired-{stamp}"));
        fs::rename(path, retired).map_err(|error| Failure::environment(path.display(), error))?;
    }
    match key {
        LogKey::File(_) if private.exists() => Ok(()),
        LogKey::File(key) => {
            let written = private_file::write_new(&private, key.to_line().as_bytes());
            written.map_err(|error| Failure::environment(private.display(), error))
        }
        LogKey::Helper(_) if public.exists() => Ok(()),
        LogKey::Helper(_) => Ok(log_key::remember(&public, &key.verifier())?),
    }
}

/// Role map and definitions, if there are none; existing ones are newer than a backup, and are not changed.
pub(super) fn put_files(backup: &Path, config: &Config) -> Result<Vec<String>, Failure> {
    let mut said = Vec::new();
    if let Some(to) = &config.credentials.role_map {
        said.extend(put(&backup.join(backup::ROLE_MAP), to)?);
    }
    let Some(to) = &config.workflows.dir else { return Ok(said) };
    let from = backup.join(backup::WORKFLOWS);
    if !from.exists() {
        return Ok(said);
    }
    fs::create_dir_all(to).map_err(|error| Failure::environment(to.display(), error))?;
    let entries = fs::read_dir(&from).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    for entry in entries.map_err(|error| Failure::environment(from.display(), error))? {
        said.extend(put(&entry.path(), &to.join(entry.file_name()))?);
    }
    Ok(said)
}

fn put(from: &Path, to: &Path) -> Result<Option<String>, Failure> {
    if !from.exists() {
        return Ok(None);
    }
    let bytes = fs::read(from).map_err(|error| Failure::environment(from.display(), error))?;
    match private_file::write_new(to, &bytes) {
        Ok(()) => Ok(Some(format!("{}: restored", to.display()))),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_same = fs::read(to).is_ok_and(|present| present == bytes);
            Ok((!is_same).then(|| format!("{}: differs from the one in the backup; left as it is", to.display())))
        }
        // The ledger is in its place by now. A directory that only root can write to is not a reason to report a
        // failure.
        Err(error) => {
            let (from, to) = (from.display(), to.display());
            Ok(Some(format!("{to}: could not be put back ({error}); copy it from {from}")))
        }
    }
}
