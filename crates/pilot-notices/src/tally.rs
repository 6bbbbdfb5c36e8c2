//! What one notice has done, for metrics and the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pilot_core::time::Time;
use pilot_wire::exposition::{Exposition, Kind};

pub(crate) struct Tally {
    name: String,
    /// Without what is secret.
    shown: String,
    delivered: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: usize,
    failing_since: Option<Time>,
    /// What was said in the log.
    trouble: Option<String>,
}

impl Tally {
    pub(crate) fn new(name: &str, shown: &str) -> Tally {
        let none = AtomicU64::default;
        let (name, shown) = (name.to_owned(), shown.to_owned());
        Tally { name, shown, delivered: none(), failed: none(), refused: none(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn show(&self, waiting: usize, failing_since: Option<Time>) {
        let mut state = self.state();
        (state.waiting, state.failing_since) = (waiting, failing_since);
    }

    pub(crate) fn delivered(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        if self.state().trouble.take().is_some() {
            tracing::info!(notice = self.name, "messages of the notice `{}` arrive again", self.name);
        }
    }

    /// Names the person and no address.
    pub(crate) fn refused(&self, place: &str, said: &str) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let name = &self.name;
        tracing::warn!(
            notice = name,
            place,
            cause = said,
            "a message of the notice `{name}` was refused for good, and is not sent again; `*` is the chat"
        );
    }

    pub(crate) fn failed(&self, said: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.trouble(said);
    }

    /// Says what is wrong once.
    pub(crate) fn trouble(&self, said: &str) {
        let mut state = self.state();
        if state.trouble.as_deref() != Some(said) {
            let Tally { name, shown, .. } = self;
            tracing::warn!(
                notice = name,
                host = shown,
                cause = said,
                "messages of the notice `{name}` do not arrive; retrying"
            );
            state.trouble = Some(said.to_owned());
        }
    }
}

type Figure = fn(&State, Time) -> u64;

pub(crate) fn metrics(tallies: &[&Tally], now: Time, text: &mut Exposition) {
    if tallies.is_empty() {
        return;
    }
    let name = "pilot_notice_messages_total";
    text.family(name, Kind::Counter, "Messages to chats and people by outcome; refused ones are not tried again.");
    for tally in tallies {
        let counts = [("delivered", &tally.delivered), ("failed", &tally.failed), ("refused", &tally.refused)];
        for (outcome, count) in counts {
            text.sample(name, &[("notice", &tally.name), ("outcome", &outcome)], count.load(Ordering::Relaxed));
        }
    }
    let gauges: [(&str, &str, Figure); 2] = [
        ("pilot_notice_waiting_items", "Items that people are still to be told about.", |state, _| {
            state.waiting as u64
        }),
        ("pilot_notice_failing_seconds", "How long a message has failed to arrive.", |state, now| {
            state.failing_since.map_or(0, |since| now.since(since).as_secs())
        }),
    ];
    for (name, help, figure) in gauges {
        text.family(name, Kind::Gauge, help);
        for tally in tallies {
            text.sample(name, &[("notice", &tally.name)], figure(&tally.state(), now));
        }
    }
}
