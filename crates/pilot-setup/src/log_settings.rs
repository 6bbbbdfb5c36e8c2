//! What the log shows for a while, instead of what the configuration says: a file in the data directory, which an
//! operator writes with `pilot logging` and a running service notices.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pilot_core::time::Time;
use serde::{Deserialize, Serialize};

use crate::config::{LogFormat, LogLevel, Logging};
use crate::private_file::{self, FileError, Others};

const SCHEMA_VERSION: u32 = 1;
/// Longer than anyone searches for a cause; what should stay belongs in the configuration.
pub const LOG_SETTINGS_KEPT_MAX: Duration = Duration::from_hours(7 * 24);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LogLevel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<LogFormat>,
    /// From then on the configuration counts again.
    pub until: Time,
}

#[derive(Debug, thiserror::Error)]
pub enum LogSettingsError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: is not what `pilot logging set` writes; run it again, or `pilot logging reset` ({cause})", path.display())]
    Malformed { path: PathBuf, cause: String },
}

impl LogSettings {
    pub fn new(level: Option<LogLevel>, format: Option<LogFormat>, until: Time) -> LogSettings {
        LogSettings { schema_version: SCHEMA_VERSION, level, format, until }
    }

    /// `None` if there is no such file.
    pub fn read(path: &Path) -> Result<Option<LogSettings>, LogSettingsError> {
        let file = match private_file::read(path, Others::MayRead) {
            Ok(file) => file,
            Err(FileError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let malformed = |cause: String| LogSettingsError::Malformed { path: path.to_owned(), cause };
        let read: LogSettings = serde_json::from_slice(&file.bytes).map_err(|error| malformed(error.to_string()))?;
        if read.schema_version != SCHEMA_VERSION {
            return Err(malformed(format!("schema_version is {}", read.schema_version)));
        }
        Ok(Some(read))
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        private_file::replace(path, &serde_json::to_vec(self)?)
    }

    /// A time that nobody would have set counts for nothing.
    pub fn counts(&self, now: Time) -> bool {
        now < self.until && self.until.since(now) <= LOG_SETTINGS_KEPT_MAX
    }

    /// What is in force with these settings, if they count.
    pub fn over(settings: Option<LogSettings>, logging: Logging, now: Time) -> Logging {
        let settings = settings.filter(|settings| settings.counts(now));
        Logging {
            level: settings.and_then(|settings| settings.level).unwrap_or(logging.level),
            format: settings.and_then(|settings| settings.format).unwrap_or(logging.format),
            ..logging
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_count_until_their_time_and_only_for_what_they_say() {
        let at = |second: i64| Time::from_unix_micros(second * 1_000_000);
        let configured = Logging { level: LogLevel::Warn, format: LogFormat::Json, ..Logging::default() };
        let settings = LogSettings::new(Some(LogLevel::Debug), None, at(10));
        let in_force = |now| LogSettings::over(Some(settings), configured, at(now));
        assert_eq!(in_force(9), Logging { level: LogLevel::Debug, ..configured });
        assert_eq!(in_force(10), configured);
        assert_eq!(LogSettings::over(None, configured, at(9)), configured);
    }
}
