//! Limits that were reached: counted, logged, and reported by `/readyz`.
//!
//! A limit keeps one caller from hurting another, and operators have to learn when that was needed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Stopwatch;

/// What ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    Connections,
    AddressConnections,
    AddressArrivals,
    ActorFeeds,
    Feeds,
    HeldBytes,
    LongTasks,
    Streams,
}

impl Cap {
    pub const ALL: [Cap; 8] = [
        Cap::Connections,
        Cap::AddressConnections,
        Cap::AddressArrivals,
        Cap::ActorFeeds,
        Cap::Feeds,
        Cap::HeldBytes,
        Cap::LongTasks,
        Cap::Streams,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Cap::Connections => "connections",
            Cap::AddressConnections => "connections_of_an_address",
            Cap::AddressArrivals => "new_connections_of_an_address",
            Cap::ActorFeeds => "feeds_of_an_actor",
            Cap::Feeds => "feeds",
            Cap::HeldBytes => "held_bytes",
            Cap::LongTasks => "long_tasks_of_a_caller",
            Cap::Streams => "http2_requests",
        }
    }
}

/// How long `/readyz` reports a limit that was reached.
const TOLD: Duration = Duration::from_mins(1);
/// The least time between two log lines about the same limit.
const LOGGED: Duration = Duration::from_secs(10);

pub struct Caps {
    running: Stopwatch,
    reached: [Reached; Cap::ALL.len()],
}

#[derive(Default)]
struct Reached {
    times: AtomicU64,
    /// Milliseconds since the start, plus one; zero for never.
    last: AtomicU64,
    logged: AtomicU64,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { running: Stopwatch::start(), reached: Default::default() }
    }
}

impl Caps {
    /// `whose` goes into the log line: an address or an actor.
    pub fn reached(&self, cap: Cap, whose: &dyn std::fmt::Display) {
        let Some(reached) = self.reached.get(cap as usize) else { return };
        let now = self.now();
        let times = reached.times.fetch_add(1, Ordering::Relaxed) + 1;
        reached.last.store(now, Ordering::Relaxed);
        let logged = reached.logged.load(Ordering::Relaxed);
        let is_due = logged == 0 || now.saturating_sub(logged) >= millis(LOGGED);
        if is_due && reached.logged.compare_exchange(logged, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            tracing::warn!(cap = cap.as_str(), times, whose = %whose, "a limit was reached: {}", cap.as_str());
        }
    }

    /// The limits reached within the last minute.
    pub fn lately(&self) -> Vec<&'static str> {
        let now = self.now();
        let is_recent = |reached: &Reached| {
            let last = reached.last.load(Ordering::Relaxed);
            last > 0 && now.saturating_sub(last) <= millis(TOLD)
        };
        Cap::ALL
            .iter()
            .zip(&self.reached)
            .filter(|(_, reached)| is_recent(reached))
            .map(|(cap, _)| cap.as_str())
            .collect()
    }

    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Cap::ALL.iter().zip(&self.reached).map(|(cap, reached)| (cap.as_str(), reached.times.load(Ordering::Relaxed)))
    }

    fn now(&self) -> u64 {
        self.running.micros() / 1000 + 1
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
