//! What a witness must not forget: its key, and the newest checkpoint of each log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::cosignature::CosignerKey;
use pilot_evidence::merkle::Hash;
use pilot_evidence::note::VerifierKey;
use serde::{Deserialize, Serialize};

use pilot_setup::error::StartError;
use pilot_setup::private_file::{self, Others};
use pilot_setup::random;

const SCHEMA_VERSION: u32 = 1;

/// The file: signed notes by the origin of their log.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    schema_version: u32,
    logs: BTreeMap<String, String>,
}

pub struct State {
    directory: PathBuf,
    notes: BTreeMap<String, String>,
    newest: BTreeMap<String, Checkpoint>,
    _lock: Option<File>,
}

impl State {
    /// Reads the stored state, or creates it; `name` is only for a new key.
    pub fn open(
        directory: &Path,
        logs: &[VerifierKey],
        name: Option<&str>,
    ) -> Result<(CosignerKey, State), StartError> {
        let failed = |error: io::Error| StartError::environment(directory.display().to_string(), error);
        private_file::make_directory(directory).map_err(failed)?;
        let lock = lock(directory)?;
        let (key_path, path) = (directory.join("witness.key"), directory.join("witness.json"));
        let key = match (key_path.exists(), path.exists()) {
            // The state first: a key without a state is a witness that has forgotten.
            (false, false) => {
                write(&path, &BTreeMap::new()).map_err(failed)?;
                make_key(&key_path, name)?
            }
            (false, true) if read(&path)?.is_empty() => make_key(&key_path, name)?,
            (true, true) => load_key(&key_path)?,
            (true, false) => return Err(StartError::Refused(forgotten(&path))),
            (false, true) => {
                return Err(StartError::Refused(format!(
                    "{}: the witness's key is missing; restore it from your copy, or start a new witness in a new directory",
                    key_path.display()
                )));
            }
        };
        let notes = read(&path)?;
        let newest = check(&path, &notes, logs)?;
        Ok((key, State { directory: directory.to_owned(), notes, newest, _lock: Some(lock) }))
    }

    /// The key of a witness, generated now if the witness is new.
    pub fn key(directory: &Path, name: Option<&str>) -> Result<CosignerKey, StartError> {
        let path = directory.join("witness.key");
        if path.exists() { load_key(&path) } else { State::open(directory, &[], name).map(|(key, _)| key) }
    }

    pub fn newest(&self, origin: &str) -> Option<&Checkpoint> {
        self.newest.get(origin)
    }

    /// On disk when this returns; after an error, unchanged.
    pub fn keep(&mut self, checkpoint: Checkpoint, note: &str) -> io::Result<()> {
        if self.newest.get(&checkpoint.origin).is_some_and(|kept| *kept == checkpoint) {
            return Ok(());
        }
        let mut notes = self.notes.clone();
        notes.insert(checkpoint.origin.clone(), note.to_owned());
        write(&self.directory.join("witness.json"), &notes)?;
        self.notes = notes;
        self.newest.insert(checkpoint.origin.clone(), checkpoint);
        Ok(())
    }

    /// Keeps both sides of a contradiction: for each log and kind the first, which shows when it began, and the last.
    /// However often a log forks, it cannot fill the disk, and nothing crowds out the proof. Returns where it is.
    pub fn keep_conflict(&self, kind: ConflictKind, new: &Checkpoint, note: &str) -> io::Result<PathBuf> {
        let directory = self.directory.join("conflicts");
        private_file::make_directory(&directory)?;
        // A log chooses its own name, so it is not used as a file name.
        let log = format!("{:?}", Hash::of_leaf(new.origin.as_bytes()));
        let (log, kind) = (log.get(..16).unwrap_or(&log), kind.as_str());
        let path = |which: &str| directory.join(format!("{log}-{kind}-{which}.txt"));
        let ours = self.notes.get(&new.origin).map_or("", String::as_str);
        let both = format!("refused:\n\n{note}\ncosigned before:\n\n{ours}");
        let (first, last) = (path("first"), path("last"));
        if first.exists() {
            private_file::replace(&last, both.as_bytes())?;
            return Ok(last);
        }
        private_file::write_new(&first, both.as_bytes())?;
        Ok(first)
    }
}

/// What a refused checkpoint shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictKind {
    /// The log has signed two roots for one size: proof of a fork.
    OtherRoot,
    /// Nobody has shown that it continues what was cosigned. Its sender may have sent a wrong proof, so this is
    /// kept apart from what proves a fork.
    NotShown,
}

impl ConflictKind {
    const fn as_str(self) -> &'static str {
        match self {
            ConflictKind::OtherRoot => "other-root",
            ConflictKind::NotShown => "not-shown",
        }
    }
}

fn forgotten(path: &Path) -> String {
    format!(
        "{}: is missing, but the witness has a key: it has forgotten what it cosigned, and could be made to cosign a fork.\n\
         Restore the latest version of the file. If it is gone, start a new witness with a new key in a new directory.",
        path.display()
    )
}

fn lock(directory: &Path) -> Result<File, StartError> {
    let path = directory.join("witness.lock");
    let failed = |error: io::Error| StartError::environment(path.display().to_string(), error);
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(StartError::Refused(format!("{}: another witness is using it", directory.display())))
        }
        Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn make_key(path: &Path, name: Option<&str>) -> Result<CosignerKey, StartError> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => format!("pilot.local/witness/{:08x}", u32::from_ne_bytes(random::bytes()?)),
    };
    let key = CosignerKey::generate(&name, &random::bytes()?)
        .map_err(|error| StartError::Refused(format!("--name: {error}")))?;
    let written = private_file::write_new(path, key.to_line().as_bytes());
    written.map_err(|error| StartError::environment(path.display().to_string(), error))?;
    Ok(key)
}

fn load_key(path: &Path) -> Result<CosignerKey, StartError> {
    let file = private_file::read(path, Others::MayNothing).map_err(|error| StartError::Refused(error.to_string()))?;
    let key = CosignerKey::parse(&String::from_utf8_lossy(&file.bytes));
    key.map_err(|error| StartError::Refused(format!("{}: {error}", path.display())))
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, StartError> {
    let file = private_file::read(path, Others::MayRead).map_err(|error| StartError::Refused(error.to_string()))?;
    let damaged = |what: String| {
        let remedy = "restore its latest version, or start a new witness with a new key in a new directory";
        StartError::Refused(format!("{}: is damaged ({what}); {remedy}", path.display()))
    };
    let stored: Stored = serde_json::from_slice(&file.bytes).map_err(|error| damaged(error.to_string()))?;
    match stored.schema_version {
        SCHEMA_VERSION => Ok(stored.logs),
        other => Err(damaged(format!("schema_version {other}"))),
    }
}

fn write(path: &Path, notes: &BTreeMap<String, String>) -> io::Result<()> {
    let stored = Stored { schema_version: SCHEMA_VERSION, logs: notes.clone() };
    private_file::replace(path, &serde_json::to_vec_pretty(&stored)?)
}

/// Every stored note must still be signed by its log, if that log is still configured.
fn check(
    path: &Path,
    notes: &BTreeMap<String, String>,
    logs: &[VerifierKey],
) -> Result<BTreeMap<String, Checkpoint>, StartError> {
    let mut newest = BTreeMap::new();
    for (origin, note) in notes {
        let mut keys = logs.iter().filter(|key| key.name == *origin).peekable();
        if keys.peek().is_none() {
            continue;
        }
        let Some(checkpoint) = keys.find_map(|key| Checkpoint::open(note, key).ok()) else {
            return Err(StartError::Refused(format!(
                "{}: what is kept for log `{origin}` is not signed by the key given for it; check --log, or restore the file",
                path.display()
            )));
        };
        newest.insert(origin.clone(), checkpoint);
    }
    Ok(newest)
}
