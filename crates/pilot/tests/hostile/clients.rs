//! Clients that mean harm: each tries to make the service pay more than its share, or to make others wait.
//!
//! Nothing but the standard library is used, so that `cargo xtask bench flood` has the same ones. Every client is bounded
//! in number and in time and ends by itself; that the service hangs up on it is no surprise to any of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[path = "clients/bodies.rs"]
mod bodies;
#[path = "clients/connections.rs"]
mod connections;
#[path = "clients/exchange.rs"]
pub(super) mod exchange;
#[path = "clients/http2.rs"]
mod http2;
#[path = "clients/reading.rs"]
mod reading;

/// The service, and those who mean harm to it.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub address: SocketAddr,
    /// Tokens of an initiator, an executor and an auditor.
    pub initiator: String,
    pub executor: String,
    pub auditor: String,
    /// A draft of the initiator's.
    pub item: String,
}

/// How much of an attack there is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// For tests: enough to go past a bound.
    Short,
    /// For measurements.
    Long,
}

/// One attack: how long it may go on, and what the service said to it.
pub(super) struct Run {
    until: Mutex<Instant>,
    span: Duration,
    form: Form,
    told: Mutex<BTreeMap<String, u64>>,
}

impl Run {
    pub(super) fn new(form: Form, span: Duration) -> Run {
        Run { until: Mutex::new(now() + span), span, form, told: Mutex::default() }
    }

    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// What an attack needs is there, and the time for the attack itself begins. Preparing took no longer than that.
    fn is_prepared(&self) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = now() + self.span;
    }

    /// Of a long attack only: what a short one sends is counted, and a busy machine takes longer for it.
    fn is_late(&self) -> bool {
        matches!(self.form, Form::Long) && self.is_over()
    }

    /// How long there is still to go.
    fn left(&self) -> Duration {
        self.until.lock().unwrap_or_else(PoisonError::into_inner).saturating_duration_since(now())
    }

    fn of(&self, short: usize, long: usize) -> usize {
        match self.form {
            Form::Short => short,
            Form::Long => long,
        }
    }

    fn note(&self, verdict: String) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner).entry(verdict).or_default() += 1;
    }

    /// Each kind of answer, such as `200` or `413 body_too_large`, and how often it was given.
    pub(super) fn told(&self) -> BTreeMap<String, u64> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "an attack lasts for a time of the real clock, and so do those beside it"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// A kind of attack.
#[derive(Clone, Copy)]
pub(super) struct Attack {
    pub name: &'static str,
    pub run: fn(&Target, &Run),
}

#[rustfmt::skip]
pub(super) const ATTACKS: &[Attack] = &[
    Attack { name: "many faults with long pointers", run: bodies::many_faults },
    Attack { name: "bodies of very many values", run: bodies::many_values },
    Attack { name: "deep nesting", run: bodies::deep_nesting },
    Attack { name: "large drafts, and lists of them", run: bodies::large_drafts },
    Attack { name: "refused large writes", run: bodies::refused_writes },
    Attack { name: "text like tokens", run: bodies::text_like_tokens },
    Attack { name: "long URLs of nobody", run: reading::long_urls },
    Attack { name: "feeds that are not read", run: connections::unread_feeds },
    Attack { name: "hoarded connections", run: connections::hoarded },
    Attack { name: "silent connections", run: connections::silent },
    Attack { name: "bodies that drip", run: connections::slow_bodies },
    Attack { name: "lists read slowly", run: connections::slow_readers },
    Attack { name: "abandoned searches", run: reading::abandoned_searches },
    Attack { name: "an item with many comments", run: reading::many_comments },
    Attack { name: "several exports at once", run: reading::exports },
    Attack { name: "health checks and documents", run: reading::health_and_docs },
    Attack { name: "wrong tokens", run: reading::wrong_tokens },
    Attack { name: "HTTP/2: bodies without an end", run: http2::endless_bodies },
    Attack { name: "HTTP/2: bodies in frames of a byte", run: http2::tiny_frames },
    Attack { name: "HTTP/2: answers that are not read", run: http2::unread_answers },
    Attack { name: "HTTP/2: small answers, not read", run: http2::small_unread_answers },
    Attack { name: "HTTP/2: long URLs on every stream", run: http2::long_urls },
    Attack { name: "HTTP/2: streams reset at once", run: http2::rapid_reset },
    Attack { name: "HTTP/2: pings and settings", run: http2::pings_and_settings },
];
