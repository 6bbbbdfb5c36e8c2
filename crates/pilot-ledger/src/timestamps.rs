//! Has the log's checkpoints timestamped (RFC 3161), if an authority is configured. Nothing waits for it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use pilot_core::limits::{TIMESTAMP_BYTES_MAX, TIMESTAMP_DEADLINE};
use pilot_core::time::Time;
use pilot_evidence::timestamp::{Timestamp, TimestampError, request};
use pilot_evidence::verify::CLOCK_TOLERANCE;
use pilot_setup::{config, random};
use pilot_store::{Duty, StoreError};
use pilot_wire::clock::Stopwatch;
use pilot_wire::exposition::{Exposition, Kind};
use pilot_wire::outgoing::{Outgoing, OutgoingError, TrustError};

use crate::clock::LedgerClock;
use crate::dated::{Dated, Shelf};
use crate::signer::{SignError, Signer};

/// How often it is seen whether it is time to ask, and how long it is until the next try after a failure.
const ROUND: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
enum StampError {
    #[error("it cannot be reached: {0}")]
    Unreachable(#[from] OutgoingError),
    #[error("it answered {0}")]
    Status(u16),
    #[error("its answer cannot be used: {0}")]
    Reply(#[from] TimestampError),
    #[error("its answer has no certificate, so nobody could check it")]
    NoCertificate,
    #[error("its clock and that of this service are more than ten minutes apart: it says {0}")]
    Clock(Time),
    #[error("the checkpoint cannot be signed: {0}")]
    Sign(#[from] SignError),
    #[error("the ledger cannot be read or written: {0}")]
    Store(#[from] StoreError),
    #[error("no random numbers: {0}")]
    Random(#[from] random::NoRandomness),
}

pub struct Timestamps {
    authority: Option<Authority>,
    stamped: AtomicU64,
    failures: AtomicU64,
    trouble: Mutex<Option<String>>,
}

struct Authority {
    url: Uri,
    every: Duration,
    outgoing: Outgoing,
}

impl Authority {
    fn new(config: &config::Timestamps, ca_file: Option<&Path>) -> Result<Authority, TrustError> {
        let outgoing = Outgoing::new(config.url.scheme_str() == Some("https"), ca_file)?;
        Ok(Authority {
            url: config.url.clone(),
            every: Duration::from_mins(u64::from(config.every_minutes)),
            outgoing: outgoing.with_answer_bytes_max(TIMESTAMP_BYTES_MAX),
        })
    }
}

impl Timestamps {
    pub fn new(log: &config::Log) -> Result<Timestamps, TrustError> {
        let authority = log.timestamps.as_ref().map(|authority| Authority::new(authority, log.ca_file.as_deref()));
        Ok(Timestamps {
            authority: authority.transpose()?,
            stamped: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            trouble: Mutex::default(),
        })
    }

    /// Has the newest checkpoint timestamped, unless that has been done.
    async fn stamp(&self, authority: &Authority, signer: &Arc<Signer>, clock: &LedgerClock) -> Result<(), StampError> {
        let store = &**signer.store();
        let newest = Shelf::Stamped.newest_without(store, u64::MAX - 1).await?;
        let last = newest.map_or(0, |(size, _)| size);
        self.stamped.store(last, Ordering::Relaxed);
        let head = signer.checkpoint().await?;
        let size = head.checkpoint.size;
        if size <= last {
            return Ok(());
        }
        let (note, nonce) = (&head.note, random::bytes()?);
        let body = request(note.as_bytes(), nonce);
        let media = "application/timestamp-query";
        let reply = authority.outgoing.post_bytes(&authority.url, media, body, TIMESTAMP_DEADLINE).await?;
        if reply.status != 200 {
            return Err(StampError::Status(reply.status));
        }
        // Whether the authority is to be trusted is for those to decide who verify the evidence.
        let timestamp = Timestamp::parse(&reply.body)?;
        timestamp.check_of(note.as_bytes())?;
        timestamp.check_nonce(nonce)?;
        if !timestamp.has_certificate() {
            return Err(StampError::NoCertificate);
        }
        // One that contradicts the entries would refute honest evidence.
        let (now, at) = (clock.now(), timestamp.at);
        if at > now.plus(CLOCK_TOLERANCE) || at.plus(CLOCK_TOLERANCE) < now {
            return Err(StampError::Clock(at));
        }
        let dated = Dated { note: note.clone(), reply: Some(reply.body.to_vec()) };
        Shelf::Stamped.keep(store, size, dated).await?;
        self.stamped.store(size, Ordering::Relaxed);
        Ok(())
    }

    /// Says what is wrong once, and when it is over.
    fn tell(&self, outcome: &Result<(), StampError>) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(()) if trouble.take().is_some() => tracing::info!("the timestamping authority answers again"),
            Ok(()) => {}
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                let cause = error.to_string();
                if trouble.as_ref() != Some(&cause) {
                    tracing::warn!(cause, "the timestamping authority has not timestamped the log");
                }
                *trouble = Some(cause);
            }
        }
    }

    pub fn metrics(&self, text: &mut Exposition) {
        if self.authority.is_none() {
            return;
        }
        let is_up = u64::from(self.trouble.lock().unwrap_or_else(PoisonError::into_inner).is_none());
        let (stamped, failures) = (self.stamped.load(Ordering::Relaxed), self.failures.load(Ordering::Relaxed));
        let figures = [
            (
                "pilot_timestamps_up",
                Kind::Gauge,
                "Whether the last request to the timestamping authority succeeded.",
                is_up,
            ),
            ("pilot_timestamped_entries", Kind::Gauge, "Entries under the newest timestamp.", stamped),
            (
                "pilot_timestamp_failures_total",
                Kind::Counter,
                "Requests to the timestamping authority that returned no timestamp.",
                failures,
            ),
        ];
        for (name, kind, help, value) in figures {
            text.family(name, kind, help);
            text.sample(name, &[], value);
        }
    }
}

/// Runs as long as the service does. The first timestamp is asked for at once, so that a service that was away is dated
/// again soon.
pub async fn run(timestamps: Arc<Timestamps>, signer: Arc<Signer>, clock: LedgerClock) {
    let Some(authority) = &timestamps.authority else { return };
    let mut rest: Option<(Stopwatch, Duration)> = None;
    loop {
        let is_time = rest.as_ref().is_none_or(|(since, pause)| since.elapsed() >= *pause);
        if is_time && signer.store().holds(Duty::Witnesses) {
            let outcome = timestamps.stamp(authority, &signer, &clock).await;
            timestamps.tell(&outcome);
            rest =
                Some((Stopwatch::start(), if outcome.is_ok() { authority.every } else { PAUSE.min(authority.every) }));
        }
        tokio::time::sleep(ROUND).await;
    }
}
