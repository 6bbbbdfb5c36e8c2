//! What one endpoint's sender has done, for metrics and the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pilot_core::time::Time;
use pilot_wire::exposition::{Exposition, Kind};

use super::cursor::{Cursor, Pause};

pub(super) struct Tally {
    name: String,
    /// Without the path.
    host: String,
    delivered: AtomicU64,
    failed: AtomicU64,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    /// `None` while another node sends.
    cursor: Option<Cursor>,
    /// When the entry was made that is next; if it cannot be read, since when it is known to be there.
    oldest: Option<Time>,
    /// What was said in the log.
    trouble: Option<String>,
}

impl Tally {
    pub(super) fn new(name: &str, host: &str) -> Tally {
        let (delivered, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Tally { name: name.to_owned(), host: host.to_owned(), delivered, failed, shown: Mutex::default() }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `next_at` is when the next entry was made. If it has not been read, `unread` is now.
    pub(super) fn show(&self, cursor: &Cursor, next_at: Option<Time>, unread: Option<Time>) {
        let mut shown = self.shown();
        shown.oldest = next_at.or_else(|| unread.map(|now| shown.oldest.unwrap_or(now)));
        shown.cursor = Some(cursor.clone());
    }

    pub(super) fn stand_down(&self) {
        let mut shown = self.shown();
        (shown.cursor, shown.oldest) = (None, None);
    }

    pub(super) fn delivered(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        if self.shown().trouble.take().is_some() {
            tracing::info!(endpoint = self.name, "the webhook `{}` takes deliveries again", self.name);
        }
    }

    /// Says what is wrong once.
    pub(super) fn failed(&self, index: u64, cause: &str, pause: Option<Pause>) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let Tally { name, host, .. } = self;
        if let Some(pause) = pause {
            let why = pause.as_str();
            tracing::error!(
                endpoint = name,
                host,
                index,
                cause,
                "the webhook `{name}` is paused: {why}. Repair the receiver, then run `pilot webhook replay {name} --from {index}`"
            );
        } else if self.shown().trouble.as_deref() != Some(cause) {
            tracing::warn!(
                endpoint = name,
                host,
                index,
                cause,
                "entry {index} was not delivered to the webhook `{name}`; it is tried again"
            );
        }
        self.shown().trouble = Some(cause.to_owned());
    }

    pub(super) fn ledger_trouble(&self, cause: &str) {
        let mut shown = self.shown();
        if shown.trouble.as_deref() != Some(cause) {
            tracing::warn!(endpoint = self.name, cause, "the webhook `{}` waits for the ledger; retrying", self.name);
            shown.trouble = Some(cause.to_owned());
        }
    }
}

type Figure = fn(&Cursor, Option<Time>, u64, Time) -> u64;

/// Of those whose sender is on this node.
const GAUGES: &[(&str, &str, Figure)] = &[
    ("pilot_webhook_lag_entries", "Entries that the endpoint has not passed yet.", |cursor, _, size, _| {
        size.saturating_sub(cursor.next)
    }),
    ("pilot_webhook_oldest_seconds", "Age of the oldest entry that it has not passed yet.", |_, oldest, _, now| {
        oldest.map_or(0, |at| now.since(at).as_secs())
    }),
    ("pilot_webhook_failing_seconds", "How long no delivery to it has succeeded.", |cursor, _, _, now| {
        cursor.failing_since.map_or(0, |since| now.since(since).as_secs())
    }),
    ("pilot_webhook_paused", "Whether nothing is sent to it until someone resumes it.", |cursor, _, _, _| {
        u64::from(cursor.paused.is_some())
    }),
];

pub(super) fn metrics(tallies: &[&Tally], size: u64, now: Time, text: &mut Exposition) {
    if tallies.is_empty() {
        return;
    }
    let name = "pilot_webhook_deliveries_total";
    text.family(name, Kind::Counter, "Deliveries to webhook endpoints by outcome.");
    for tally in tallies {
        for (outcome, count) in [("delivered", &tally.delivered), ("failed", &tally.failed)] {
            text.sample(name, &[("endpoint", &tally.name), ("outcome", &outcome)], count.load(Ordering::Relaxed));
        }
    }
    for (name, help, figure) in GAUGES {
        text.family(name, Kind::Gauge, help);
        for tally in tallies {
            let shown = tally.shown();
            if let Some(cursor) = &shown.cursor {
                text.sample(name, &[("endpoint", &tally.name)], figure(cursor, shown.oldest, size, now));
            }
        }
    }
}
