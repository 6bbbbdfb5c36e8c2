//! How a monitor makes itself heard: on standard error, by a program, and by metrics.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pilot_core::time::Time;
use pilot_setup::private_file;
use serde_json::json;

use super::look::{Looked, Trouble};
use crate::exit::Failure;

pub(super) struct Alarms<'a> {
    program: Option<&'a Path>,
    metrics: Option<&'a Path>,
    /// What is wrong now, so that the same is not told every minute.
    current: Option<(&'static str, String)>,
    raised: BTreeMap<&'static str, u64>,
    last_success: Option<Time>,
}

impl<'a> Alarms<'a> {
    pub(super) fn new(program: Option<&'a Path>, metrics: Option<&'a Path>) -> Alarms<'a> {
        Alarms { program, metrics, current: None, raised: BTreeMap::new(), last_success: None }
    }

    /// Tells what a look has found, if it is news.
    pub(super) fn tell(
        &mut self,
        log: &str,
        size: Option<u64>,
        looked: &Result<Looked, Trouble>,
        now: Time,
    ) -> Result<(), Failure> {
        match looked {
            Ok(_) => {
                self.last_success = Some(now);
                self.current = None;
            }
            Err(trouble) => {
                let (kind, what) = match trouble {
                    Trouble::Contradiction { kind, what } | Trouble::Doubt { kind, what } => (*kind, what.clone()),
                    Trouble::Unreachable(failure) => ("unreachable", failure.text().to_owned()),
                };
                let is_news = self.current.as_ref().is_none_or(|(known, _)| *known != kind);
                self.current = Some((kind, what.clone()));
                if is_news {
                    *self.raised.entry(kind).or_insert(0) += 1;
                    let _ = writeln!(std::io::stderr(), "pilot: ALARM ({kind}) for log {log}: {what}");
                    self.run(log, kind, &what, now)?;
                }
            }
        }
        self.write(log, size)
    }

    /// An alarm that cannot be delivered is an error of its own: a silent monitor would be worse than none.
    fn run(&self, log: &str, kind: &str, what: &str, now: Time) -> Result<(), Failure> {
        let Some(program) = self.program else { return Ok(()) };
        let failed = |error: std::io::Error| Failure::environment(program.display(), error);
        let message = json!({ "log": log, "kind": kind, "what": what, "at": now }).to_string() + "\n";
        let mut child = Command::new(program).stdin(Stdio::piped()).spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read it may still do its work.
            let _ = stdin.write_all(message.as_bytes());
        }
        let status = child.wait().map_err(failed)?;
        if status.success() {
            return Ok(());
        }
        let _ = writeln!(
            std::io::stderr(),
            "pilot: {}: {status}; the alarm may not have been delivered",
            program.display()
        );
        Ok(())
    }

    fn write(&self, log: &str, size: Option<u64>) -> Result<(), Failure> {
        let Some(path) = self.metrics else { return Ok(()) };
        let label = format!("{{log=\"{}\"}}", log.replace(['\\', '"', '\n'], "_"));
        let mut text = String::new();
        let mut gauge = |name: &str, help: &str, value: String| {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name}{label} {value}\n");
        };
        gauge("pilot_monitor_entries", "Entries of the log that were checked.", size.unwrap_or(0).to_string());
        gauge(
            "pilot_monitor_ok",
            "Whether the last look found nothing wrong.",
            u8::from(self.current.is_none()).to_string(),
        );
        let seconds = self.last_success.map_or(0, |at| at.unix_micros().div_euclid(1_000_000));
        gauge(
            "pilot_monitor_last_success_seconds",
            "When the log was last found in order, since 1970.",
            seconds.to_string(),
        );
        let name = "pilot_monitor_alarms_total";
        let _ = write!(text, "# HELP {name} Alarms raised since the start.\n# TYPE {name} counter\n");
        for (kind, count) in &self.raised {
            let _ = writeln!(text, "{name}{{log=\"{}\",kind=\"{kind}\"}} {count}", log.replace(['\\', '"', '\n'], "_"));
        }
        private_file::replace_public(path, text.as_bytes()).map_err(|error| Failure::environment(path.display(), error))
    }
}
