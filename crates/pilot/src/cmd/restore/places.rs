//! Where a restore puts things. Until everything is ready nothing is touched, and what was there is kept.
//!
//! The order is database, key, second place: whatever is cut off in between leaves something the service refuses to
//! start from, and the restore can be run again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pilot_evidence::note::NoteKey;
use pilot_ledger::clock::Clock;
use pilot_setup::config::Config;
use pilot_setup::private_file;
use pilot_store::archive::Archive as _;
use pilot_store::sqlite::LedgerFile;

use crate::cmd::backup;
use crate::exit::Failure;

/// A database has these beside it while it is in use.
const COMPANIONS: [&str; 4] = ["", "-wal", "-shm", "-head"];

pub(super) struct Places {
    pub database: PathBuf,
    /// The database that will be, until it is.
    pub staged: PathBuf,
    key: PathBuf,
    /// Marks what was put aside.
    stamp: String,
}

impl Places {
    pub(super) fn new(database: PathBuf, config: &Config) -> Places {
        let staged = with_suffix(&database, ".restoring");
        let stamp = Clock::System.now().unix_micros().to_string();
        Places { database, staged, key: config.log_key_path(), stamp }
    }

    pub(super) fn stage(&self, backup: &Path) -> Result<(), Failure> {
        self.stage_copy_of(&backup.join(backup::DATABASE))
    }

    /// The database that is there, when there is no backup.
    pub(super) fn stage_present(&self) -> Result<(), Failure> {
        self.stage_copy_of(&self.database)
    }

    fn stage_copy_of(&self, database: &Path) -> Result<(), Failure> {
        self.discard();
        LedgerFile::at(database).copy(&self.staged).map_err(|error| Failure::Environment(error.to_string()))
    }

    /// Removes what was staged, now or by a restore that was cut off.
    pub(super) fn discard(&self) {
        for suffix in COMPANIONS {
            let _ = fs::remove_file(with_suffix(&self.staged, suffix));
        }
        let _ = fs::remove_file(self.staged.with_extension("lock"));
    }

    pub(super) fn put_in_place(&self, key: &NoteKey, is_new: bool) -> Result<(), Failure> {
        self.swap(key, is_new).map_err(|error| Failure::environment(self.database.display(), error))
    }

    fn swap(&self, key: &NoteKey, is_new: bool) -> io::Result<()> {
        fs::File::open(&self.staged)?.sync_all()?;
        for suffix in COMPANIONS {
            let present = with_suffix(&self.database, suffix);
            if present.exists() {
                let aside = with_suffix(&self.database, &format!(".replaced-{}{suffix}", self.stamp));
                fs::rename(&present, aside)?;
            }
        }
        fs::rename(&self.staged, &self.database)?;
        private_file::sync_directory(&self.database)?;
        self.discard();
        if is_new && self.key.exists() {
            fs::rename(&self.key, with_suffix(&self.key, &format!(".retired-{}", self.stamp)))?;
        }
        if !self.key.exists() {
            private_file::write_new(&self.key, key.to_line().as_bytes())?;
        }
        Ok(())
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Role map and definitions, where there are none; what is there is newer than a backup, and is left alone.
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
        // The ledger is in its place by now. A directory that root keeps to itself is no reason to call that a failure.
        Err(error) => {
            let (from, to) = (from.display(), to.display());
            Ok(Some(format!("{to}: could not be put back ({error}); copy it from {from}")))
        }
    }
}
