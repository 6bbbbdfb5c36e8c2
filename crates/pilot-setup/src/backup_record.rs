//! When the last backup was made, so that monitoring notices when none are: a file in the data directory, which
//! `pilot backup` writes and the service reads.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use pilot_core::time::Time;
use serde::{Deserialize, Serialize};

use crate::private_file;

const SCHEMA_VERSION: u32 = 1;
/// Far more than a record needs.
const BYTES_MAX: u64 = 4 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupRecord {
    schema_version: u32,
    pub at: Time,
    /// How many entries the backup has.
    pub entries: u64,
}

impl BackupRecord {
    pub fn new(at: Time, entries: u64) -> BackupRecord {
        BackupRecord { schema_version: SCHEMA_VERSION, at, entries }
    }

    /// `None` if no backup is known, or what is there cannot be read: then none is known either.
    pub fn read(path: &Path) -> Option<BackupRecord> {
        let mut bytes = Vec::new();
        // Nothing that opening would wait for.
        let file = Some(path).filter(|path| path.is_file()).and_then(|path| File::open(path).ok())?;
        file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &BackupRecord| record.schema_version == SCHEMA_VERSION)
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        private_file::replace(path, &serde_json::to_vec(self)?)
    }
}
