//! How the agent runs commands, as its operator has set it.

use std::path::PathBuf;
use std::time::Duration;

use pilot_evidence::policy::Policy;

use crate::environment::Environment;
use crate::work::mask::{Masks, fits, looks_secret};

/// What every command gets from the agent's own environment.
const PASSED_ON: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR"];

pub(crate) struct Settings {
    pub workflows: Vec<String>,
    /// With any, only items whose every target is one of these.
    pub targets: Vec<String>,
    pub concurrency: usize,
    pub time_limit: Duration,
    pub kill_grace: Duration,
    /// Zero is no limit.
    pub drain_timeout: Duration,
    pub output_bytes_max: u64,
    pub kept_for: Duration,
    /// The control group below which each command gets its own.
    pub group_home: Option<PathBuf>,
    /// Against which the permit of each item is verified.
    pub policy: Option<Policy>,
    pub command: Vec<String>,
    pub variables: Variables,
}

/// The part of the environment that commands see.
pub(crate) struct Variables {
    shown: Vec<(String, String)>,
    masked: Vec<String>,
}

impl Variables {
    pub(crate) fn new(environment: &Environment, allowed: &[String], masked: &[String]) -> Variables {
        let is_passed_on = |name: &str| PASSED_ON.contains(&name) || allowed.iter().any(|allowed| allowed == name);
        let is_masked = |name: &str| {
            allowed.iter().any(|allowed| allowed == name) && looks_secret(name)
                || masked.iter().any(|pattern| fits(pattern, name))
        };
        let all = environment.variables().iter();
        Variables {
            shown: all.clone().filter(|(name, _)| is_passed_on(name)).cloned().collect(),
            masked: all.filter(|(name, _)| is_masked(name)).map(|(_, value)| value.clone()).collect(),
        }
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.shown.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn masks(&self) -> Masks {
        Masks::of(self.masked.iter().map(String::as_str))
    }
}
