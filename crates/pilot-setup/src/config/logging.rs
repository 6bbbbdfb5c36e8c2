//! The section `[logging]`: what the service's own log shows.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Logging {
    /// How much is logged. `pilot logging set` changes it while the service runs.
    pub level: LogLevel,
    /// `json` for machines, `text` for people; `auto` is `text` on a terminal and `json` elsewhere.
    pub format: LogFormat,
    /// Whether the addresses that requests come from are recorded. With `log` they are in the log's lines about requests
    /// and failed handshakes, with `log_and_ledger` also in the ledger's entries about refused attempts, from which they
    /// cannot be removed. Addresses are personal data in many countries.
    pub origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    #[default]
    Auto,
    Json,
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    #[default]
    Off,
    Log,
    LogAndLedger,
}

impl LogLevel {
    pub const ALL: [LogLevel; 5] = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];

    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

impl LogFormat {
    pub const ALL: [LogFormat; 3] = [LogFormat::Auto, LogFormat::Json, LogFormat::Text];

    pub const fn as_str(self) -> &'static str {
        match self {
            LogFormat::Auto => "auto",
            LogFormat::Json => "json",
            LogFormat::Text => "text",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<LogLevel, &'static str> {
        LogLevel::ALL
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or("must be error, warn, info, debug or trace")
    }
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<LogFormat, &'static str> {
        LogFormat::ALL.into_iter().find(|format| format.as_str() == text).ok_or("must be auto, json or text")
    }
}
