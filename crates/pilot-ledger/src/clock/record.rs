//! What one run leaves for the next about the time: the wall clock and the time since boot, read together.

use std::io;
use std::path::Path;

use pilot_core::time::Time;
use serde::{Deserialize, Serialize};

use pilot_setup::private_file;

const SCHEMA_VERSION: u32 = 1;
/// Far more than a record needs.
const BYTES_MAX: usize = 4 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema_version: u32,
    /// The boot that `since_boot_micros` counts from.
    boot_id: String,
    since_boot_micros: i64,
    pub wall: Time,
    /// Set if an operator, not the service, says that this time is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Accepted>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The operator's name, if given.
    pub by: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{path}: cannot be read: {source}")]
    Io { path: String, source: io::Error },
    #[error("{path}: is not a clock record: {cause}")]
    Malformed { path: String, cause: String },
}

impl Record {
    pub fn new(boot_id: &str, since_boot_micros: i64, wall: Time) -> Record {
        let boot_id = boot_id.to_owned();
        Record { schema_version: SCHEMA_VERSION, boot_id, since_boot_micros, wall, accepted: None }
    }

    /// The same record, as an operator's acceptance.
    #[must_use]
    pub fn accepted_by(self, operator: Option<&str>) -> Record {
        Record { accepted: Some(Accepted { by: operator.map(str::to_owned) }), ..self }
    }

    /// Wall time minus time since boot, if the record is from this boot.
    pub(super) fn difference_in(&self, boot_id: &str, since_boot: i64) -> Option<i64> {
        let is_same = self.boot_id == boot_id && !boot_id.is_empty() && self.since_boot_micros <= since_boot;
        is_same.then(|| self.wall.unix_micros().saturating_sub(self.since_boot_micros))
    }

    /// What time it must be according to this record, if the machine has not rebooted since.
    pub fn expected(&self, boot_id: &str, since_boot: i64) -> Option<Time> {
        let difference = self.difference_in(boot_id, since_boot)?;
        Some(Time::from_unix_micros(difference.saturating_add(since_boot)))
    }

    pub fn read(path: &Path) -> Result<Option<Record>, RecordError> {
        let malformed = |cause: String| RecordError::Malformed { path: path.display().to_string(), cause };
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|source| RecordError::Io { path: path.display().to_string(), source })?,
        };
        if bytes.len() > BYTES_MAX {
            return Err(malformed("it is too long".to_owned()));
        }
        let record: Record = serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        if record.schema_version != SCHEMA_VERSION {
            return Err(malformed(format!("schema_version {} is not supported", record.schema_version)));
        }
        Ok(Some(record))
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        private_file::replace(path, &serde_json::to_vec(self).map_err(io::Error::other)?)
    }
}

/// Identifies the current boot of the machine; empty if unknown, and an empty id never matches.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}
