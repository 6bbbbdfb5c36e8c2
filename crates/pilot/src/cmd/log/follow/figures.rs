//! What a follower tells monitoring: a file for the textfile collector of Prometheus.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_setup::private_file;
use pilot_wire::clock::Stopwatch;

use crate::exit::Failure;
use crate::output::complain;

/// Prometheus looks less often.
const EVERY: Duration = Duration::from_secs(5);

pub(super) struct Figures<'a> {
    path: Option<&'a Path>,
    destination: &'static str,
    log: String,
    entries: u64,
    is_up: bool,
    next: u64,
    size: u64,
    last_success: Option<Time>,
    written: Option<Stopwatch>,
    is_failure_told: bool,
}

impl<'a> Figures<'a> {
    pub(super) fn new(path: Option<&'a Path>, destination: &'static str) -> Figures<'a> {
        Figures {
            path,
            destination,
            log: String::new(),
            entries: 0,
            is_up: false,
            next: 0,
            size: 0,
            last_success: None,
            written: None,
            is_failure_told: false,
        }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.path.is_some()
    }

    /// Where a run begins; nothing was delivered for it.
    pub(super) fn begin(&mut self, log: &str, next: u64) {
        log.clone_into(&mut self.log);
        self.next = next;
    }

    /// Whether the file can be written. Later, that it cannot is told and stops nothing.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(path) = self.path else { return Ok(()) };
        let written = private_file::replace_public(path, self.text().as_bytes());
        written.map_err(|error| Failure::environment(path.display(), error))
    }

    /// Everything before `next` has arrived.
    pub(super) fn delivered(&mut self, next: u64) {
        self.entries += next.saturating_sub(self.next);
        self.next = next;
        self.size = self.size.max(next);
        self.succeeded();
    }

    /// The ledger has this many entries.
    pub(super) fn ledger_has(&mut self, size: u64) {
        self.size = size;
        if self.next >= size {
            self.succeeded();
        } else {
            self.write_if_old();
        }
    }

    fn succeeded(&mut self) {
        self.last_success = Some(Clock::System.now());
        if self.is_up {
            return self.write_if_old();
        }
        self.is_up = true;
        self.write();
    }

    pub(super) fn failed(&mut self) {
        self.is_up = false;
        self.write();
    }

    fn write_if_old(&mut self) {
        if self.written.as_ref().is_none_or(|written| written.elapsed() >= EVERY) {
            self.write();
        }
    }

    fn write(&mut self) {
        self.written = Some(Stopwatch::start());
        let written = self.check();
        if let Err(failure) = &written
            && !self.is_failure_told
        {
            let _ = complain(&format!("pilot: {}; going on without metrics", failure.text()));
        }
        self.is_failure_told = written.is_err();
    }

    fn text(&self) -> String {
        let log = self.log.replace(['\\', '"', '\n'], "_");
        let labels = format!("{{log=\"{log}\",destination=\"{}\"}}", self.destination);
        let seconds = self.last_success.map_or(0, |at| at.unix_micros().div_euclid(1_000_000));
        let mut text = String::new();
        let mut add = |kind: &str, name: &str, help: &str, value: String| {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{labels} {value}\n");
        };
        let entries = "Entries delivered since the start.";
        add("counter", "pilot_follow_entries_total", entries, self.entries.to_string());
        let up = "Whether the ledger can be read and the destination written.";
        add("gauge", "pilot_follow_up", up, u8::from(self.is_up).to_string());
        let lag = "Entries of the ledger that have not been delivered yet.";
        add("gauge", "pilot_follow_lag_entries", lag, self.size.saturating_sub(self.next).to_string());
        let last = "When entries were last delivered, or the ledger had no more, since 1970.";
        add("gauge", "pilot_follow_last_success_seconds", last, seconds.to_string());
        text
    }
}
