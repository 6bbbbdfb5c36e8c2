//! A syslog server, over TLS (RFC 5425). Syslog acknowledges nothing, so each connection is used for a few seconds and
//! then closed: entries count as delivered when the receiver has closed it too, which it does only after it has read
//! them. Whatever was sent over a connection that ended in any other way is sent again.

use std::time::Duration;

use pilot_api::events::EventView;
use pilot_wire::clock::Stopwatch;
use pilot_wire::outgoing::{Line, Lines, OutgoingError};
use rustls::CertificateError;

use super::message::Frame;
use crate::client::feed::Event;
use crate::client::tls;
use crate::exit::Failure;

const CONNECT: Duration = Duration::from_secs(10);
const WRITE: Duration = Duration::from_secs(10);
const FINISH: Duration = Duration::from_secs(10);
/// After a kill, this much is sent twice.
const OPEN_MAX: Duration = Duration::from_secs(5);
const OPEN_BYTES_MAX: usize = 8 * 1024 * 1024;

pub(super) struct Syslog {
    /// As it was named, for messages.
    name: String,
    lines: Lines,
    frame: Frame,
    open: Option<Open>,
}

struct Open {
    line: Line,
    since: Stopwatch,
    bytes: usize,
}

impl Syslog {
    pub(super) fn new(name: String, lines: Lines, frame: Frame) -> Syslog {
        Syslog { name, lines, frame, open: None }
    }

    pub(super) async fn prepare(&mut self) -> Result<(), Failure> {
        if self.open.is_none() {
            let line = self.lines.connect(CONNECT).await.map_err(|error| self.failed(&error))?;
            self.open = Some(Open { line, since: Stopwatch::start(), bytes: 0 });
        }
        Ok(())
    }

    pub(super) async fn send(&mut self, entries: &[Event]) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        for entry in entries {
            let view: EventView = serde_json::from_str(&entry.data)
                .map_err(|error| Failure::environment("the entry is not what a pilot service sends", error))?;
            bytes.extend(self.frame.message(&view, &entry.data));
        }
        self.prepare().await?;
        let Some(open) = &mut self.open else { return Ok(()) };
        // The time counts from the first entry, not from the connection.
        if open.bytes == 0 {
            open.since = Stopwatch::start();
        }
        open.bytes += bytes.len();
        let written = open.line.write(&bytes, WRITE).await;
        written.map_err(|error| self.failed(&error))
    }

    pub(super) fn due_in(&self) -> Option<Duration> {
        let open = self.open.as_ref()?;
        if open.bytes >= OPEN_BYTES_MAX {
            return Some(Duration::ZERO);
        }
        Some(OPEN_MAX.saturating_sub(open.since.elapsed()))
    }

    pub(super) async fn settle(&mut self) -> Result<(), Failure> {
        let Some(Open { line, bytes, .. }) = self.open.take() else { return Ok(()) };
        match line.finish(FINISH).await {
            // Nothing was sent over it, so nothing can be lost.
            Err(_) if bytes == 0 => Ok(()),
            Err(OutgoingError::TooSlow(_)) => {
                let what = format!("it does not answer the end of the connection within {} s", FINISH.as_secs());
                Err(self.environment(&what))
            }
            finished => finished.map_err(|error| self.failed(&error)),
        }
    }

    pub(super) fn drop_connection(&mut self) {
        self.open = None;
    }

    fn failed(&self, error: &OutgoingError) -> Failure {
        let cause = match tls::fault(error) {
            Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                "its certificate was issued by an authority that is not trusted here; name it with --syslog-ca-file"
                    .into()
            }
            Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS".into(),
            _ => error.to_string(),
        };
        self.environment(&cause)
    }

    fn environment(&self, cause: &str) -> Failure {
        Failure::environment(format!("syslog server {}", self.name), cause)
    }
}
