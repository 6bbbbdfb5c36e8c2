//! Where entries are passed on to. Each says in its own way when an entry has arrived.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use pilot_core::visible::visible_json;

use super::file::EntryFile;
use super::syslog::Syslog;
use crate::client::feed::Event;
use crate::exit::Failure;

pub(super) enum Destination {
    File(EntryFile),
    Stdout,
    Syslog(Box<Syslog>),
}

impl Destination {
    /// For the metrics.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Destination::File(_) => "file",
            Destination::Stdout => "stdout",
            Destination::Syslog(_) => "syslog",
        }
    }

    /// Finds out whether it can be written to.
    pub(super) async fn prepare(&mut self) -> Result<(), Failure> {
        match self {
            Destination::File(file) => file.prepare(),
            Destination::Stdout => Ok(()),
            Destination::Syslog(syslog) => syslog.prepare().await,
        }
    }

    pub(super) async fn send(&mut self, entries: &[Event]) -> Result<(), Failure> {
        match self {
            Destination::File(file) => file.write(&lines(entries)),
            Destination::Stdout => write_out(&lines(entries)),
            Destination::Syslog(syslog) => syslog.send(entries).await,
        }
    }

    /// When [`Destination::settle`] is to be called, given whether something was sent since; None if there is no need.
    pub(super) fn due_in(&self, has_sent: bool) -> Option<Duration> {
        match self {
            Destination::File(_) | Destination::Stdout => has_sent.then_some(Duration::ZERO),
            Destination::Syslog(syslog) => syslog.due_in(),
        }
    }

    /// After this, everything that was sent counts as delivered.
    pub(super) async fn settle(&mut self) -> Result<(), Failure> {
        match self {
            Destination::File(file) => file.sync(),
            Destination::Stdout => Ok(()),
            Destination::Syslog(syslog) => syslog.settle().await,
        }
    }

    /// Begins again, after something failed.
    pub(super) fn reset(&mut self) {
        match self {
            Destination::File(file) => file.close(),
            Destination::Stdout => {}
            Destination::Syslog(syslog) => syslog.drop_connection(),
        }
    }

    /// Whether it is worth trying again after a failure. A reader who is gone does not come back.
    pub(super) fn can_recover(&self) -> bool {
        !matches!(self, Destination::Stdout)
    }
}

fn lines(entries: &[Event]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.iter().map(|entry| entry.data.len() + 1).sum());
    for entry in entries {
        bytes.extend_from_slice(entry.data.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

fn write_out(lines: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = if stdout.is_terminal() {
        stdout.write_all(visible_json(&String::from_utf8_lossy(lines)).as_bytes())
    } else {
        stdout.write_all(lines)
    };
    written.and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::Environment("standard output: its reader has ended".into()),
        _ => Failure::environment("standard output", error),
    })
}
