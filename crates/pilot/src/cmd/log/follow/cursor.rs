//! How far the entries have been passed on, kept in a file: a restart goes on from there.

use std::fs::File;
use std::path::{Path, PathBuf};

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::merkle::Hash;
use pilot_setup::private_file;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

const CURSOR: &str = "cursor.json";
const LOCK: &str = "lock";
const VERSION: u32 = 1;

/// The next entry to pass on, and the one before it as it was passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) next: u64,
    /// None before the first entry.
    pub(super) last: Option<Hash>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) reached: Reached,
    /// What the log has last shown of itself; what it shows later must continue it.
    pub(super) seen: Checkpoint,
}

/// As it is written. The log's name is part of it: the indices of another log mean other entries.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema_version: u32,
    log: String,
    next: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    size: u64,
    root: String,
}

/// The directory of one follower. It is locked: two followers would overwrite each other's cursor.
pub(super) struct State {
    path: PathBuf,
    _lock: File,
}

impl State {
    pub(super) fn open(directory: &Path) -> Result<State, Failure> {
        let failed = |error| Failure::environment(directory.display(), error);
        private_file::make_directory(directory).map_err(failed)?;
        let lock = File::options().create(true).append(true).open(directory.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(State { path: directory.join(CURSOR), _lock: lock }),
            Err(std::fs::TryLockError::WouldBlock) => {
                let text = "is in use by another `pilot log follow`; give each its own --state";
                Err(Failure::Usage(format!("{}: {text}", directory.display())))
            }
            Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// None at the first run.
    pub(super) fn read(&self) -> Result<Option<Cursor>, Failure> {
        let bytes = match std::fs::read(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| Failure::environment(self.path.display(), error))?,
        };
        let cursor = serde_json::from_slice(&bytes).ok().and_then(Cursor::of);
        cursor.map(Some).ok_or_else(|| {
            let remedy = "it was changed by hand, or written by a newer version; use another --state with --from";
            Failure::Usage(format!("{}: is not a cursor of this version: {remedy}", self.path.display()))
        })
    }

    pub(super) fn save(&self, cursor: &Cursor) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::environment(self.path.display(), error);
        let text = serde_json::to_string(&cursor.written()).map_err(|error| failed(error.into()))?;
        private_file::replace(&self.path, (text + "\n").as_bytes()).map_err(failed)
    }
}

impl Cursor {
    fn of(written: Written) -> Option<Cursor> {
        let Written { schema_version, log, next, last, size, root } = written;
        let last = match last {
            Some(text) => Some(Hash::from_base64(&text)?),
            None => None,
        };
        let seen = Checkpoint { origin: log, size, root: Hash::from_base64(&root)? };
        (schema_version == VERSION).then_some(Cursor { reached: Reached { next, last }, seen })
    }

    fn written(&self) -> Written {
        Written {
            schema_version: VERSION,
            log: self.seen.origin.clone(),
            next: self.reached.next,
            last: self.reached.last.map(Hash::to_base64),
            size: self.seen.size,
            root: self.seen.root.to_base64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_one_of_another_version_is_not() {
        let seen = Checkpoint { origin: "log.example".into(), size: 9, root: Hash::of_leaf(b"x") };
        for last in [None, Some(Hash::of_leaf(b"y"))] {
            let cursor = Cursor { reached: Reached { next: 7, last }, seen: seen.clone() };
            assert_eq!(Cursor::of(cursor.written()), Some(cursor.clone()));
            assert_eq!(Cursor::of(Written { schema_version: 2, ..cursor.written() }), None);
            assert_eq!(Cursor::of(Written { root: "?".into(), ..cursor.written() }), None);
        }
    }
}
