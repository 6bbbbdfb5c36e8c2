//! One witness, as far as this service knows it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Uri;
use pilot_evidence::cosignature::CosignerVerifier;
use pilot_setup::config;
use pilot_wire::clock::Stopwatch;
use pilot_wire::exposition::Kind;

use super::trouble::OfferError;

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);

pub struct Witness {
    pub(super) url: Uri,
    pub(super) key: CosignerVerifier,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_asked: bool,
    /// The size it has cosigned up to, according to its last answer.
    cosigned: u64,
    /// Why it did not cosign what it was last offered.
    trouble: Option<String>,
    is_in_conflict: bool,
    failed: Option<Stopwatch>,
    pause: Duration,
    failures: u64,
    conflicts: u64,
}

type Value = fn(&Witness) -> u64;

/// Name, type, description and value of each metric.
pub(super) const FIGURES: [(&str, Kind, &str, Value); 5] = [
    ("pilot_witness_up", Kind::Gauge, "Whether the witness cosigned the last checkpoint offered to it.", |witness| {
        u64::from(witness.state().trouble.is_none())
    }),
    (
        "pilot_witness_cosigned_entries",
        Kind::Gauge,
        "Entries under the newest cosignature of the witness.",
        |witness| witness.state().cosigned,
    ),
    (
        "pilot_witness_in_conflict",
        Kind::Gauge,
        "Whether the witness knows a different history of this log (a fork).",
        |witness| u64::from(witness.state().is_in_conflict),
    ),
    (
        "pilot_witness_conflicts_total",
        Kind::Counter,
        "Answers in which the witness reported a different history.",
        |witness| witness.state().conflicts,
    ),
    (
        "pilot_witness_failures_total",
        Kind::Counter,
        "Requests to the witness that returned no cosignature.",
        |witness| witness.state().failures,
    ),
];

impl Witness {
    pub fn new(config: &config::Witness) -> Witness {
        Witness { url: add_checkpoint(&config.url), key: config.key.clone(), state: Mutex::default() }
    }

    pub fn name(&self) -> &str {
        &self.key.name
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn cosigned_size(&self) -> u64 {
        self.state().cosigned
    }

    /// The size the witness says it is at; the next offer begins there.
    pub(super) fn is_at(&self, size: u64) {
        self.state().cosigned = size;
    }

    /// Whether it should be asked now; if so, marks it as being asked.
    pub(super) fn is_to_be_asked(&self, size: u64, is_urgent: bool) -> bool {
        let mut state = self.state();
        let pause = u64::try_from(state.pause.as_micros()).unwrap_or(u64::MAX);
        let is_resting = !is_urgent && state.failed.as_ref().is_some_and(|since| since.micros() < pause);
        let is_done = state.cosigned >= size && state.trouble.is_none();
        if state.is_asked || is_resting || is_done {
            return false;
        }
        state.is_asked = true;
        true
    }

    pub(super) fn answered(&self, size: u64, error: Option<&OfferError>) {
        let name = self.name();
        let mut state = self.state();
        state.is_asked = false;
        let Some(error) = error else {
            if state.trouble.take().is_some() {
                tracing::info!(witness = name, "witness `{name}` cosigns again");
            }
            *state = State { cosigned: size, failures: state.failures, conflicts: state.conflicts, ..State::default() };
            return;
        };
        let trouble = error.to_string();
        let is_news = state.trouble.as_ref() != Some(&trouble);
        state.failures += 1;
        state.is_in_conflict = error.is_conflict();
        state.conflicts += u64::from(error.is_conflict());
        // A witness that is down comes back; a conflict does not go away by itself.
        state.pause = if error.is_conflict() { PAUSE_MAX } else { (state.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX) };
        state.failed = Some(Stopwatch::start());
        state.trouble = Some(trouble.clone());
        drop(state);
        match (is_news, error.is_conflict()) {
            (true, true) => tracing::error!(
                witness = name,
                cause = trouble,
                "witness `{name}` knows A DIFFERENT HISTORY of this log: an old backup was restored, or two servers use its key; read docs/operate/witnesses.md"
            ),
            (true, false) => tracing::warn!(witness = name, cause = trouble, "witness `{name}` has not cosigned"),
            (false, _) => {}
        }
    }

    /// Why this witness does not cover this many entries, if it does not.
    pub(super) fn complaint(&self, size: u64) -> Option<String> {
        let state = self.state();
        match &state.trouble {
            Some(trouble) => Some(format!("{} ({trouble})", self.name())),
            None if state.cosigned < size => Some(format!("{} (has not answered yet)", self.name())),
            None => None,
        }
    }
}

/// The submission prefix plus the only operation.
fn add_checkpoint(prefix: &Uri) -> Uri {
    let path = format!("{}/add-checkpoint", prefix.path().trim_end_matches('/'));
    let mut parts = prefix.clone().into_parts();
    parts.path_and_query = path.parse().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| prefix.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operation_is_put_behind_the_prefix() {
        for (prefix, expected) in [
            ("https://w.example", "https://w.example/add-checkpoint"),
            ("https://w.example/", "https://w.example/add-checkpoint"),
            ("http://127.0.0.1:7/a/b/", "http://127.0.0.1:7/a/b/add-checkpoint"),
        ] {
            assert_eq!(add_checkpoint(&prefix.parse().unwrap()), expected);
        }
    }
}
