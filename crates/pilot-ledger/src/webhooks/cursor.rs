//! Where an endpoint is in the ledger, and what became of the last deliveries.

use std::time::Duration;

use pilot_core::limits::WEBHOOK_FAILING_MAX;
use pilot_core::time::Time;
use serde::{Deserialize, Serialize};

/// How long after each failure the next attempt is made; after the last one, always as long as that.
const RETRIES: [Duration; 6] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_mins(30),
    Duration::from_hours(1),
];
/// A receiver may ask for a later attempt, but not for a much later one.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);
/// By how many thousandths an attempt may be early or late, so that receivers are not called by everyone at once.
const JITTER: u64 = 200;
/// Longer than the longest pause between two attempts: nobody tried meanwhile, so nobody knows whether it failed.
const UNTRIED_MAX: Duration = Duration::from_hours(2);
/// What a receiver or a network says goes into the store and onto screens.
const REASON_CHARS_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Grows when a sender takes over and when someone moves the cursor. A sender that has an older one changes nothing.
    pub generation: u64,
    /// The entry to deliver next.
    pub next: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Time>,
    /// How often the next entry was tried.
    #[serde(default)]
    pub attempts: u32,
    /// What the receiver last said, or why it could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_answer_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
}

/// Why nothing is delivered until someone moves the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    /// The receiver answered 410.
    Gone,
    /// It has failed for too long.
    Failing,
}

impl Pause {
    pub const fn as_str(self) -> &'static str {
        match self {
            Pause::Gone => "the receiver answered 410 (gone)",
            Pause::Failing => "it has failed for 5 days",
        }
    }
}

/// Why a delivery did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) said: String,
    pub(super) is_gone: bool,
    pub(super) retry_after: Option<Duration>,
}

impl Cursor {
    pub fn at(next: u64) -> Cursor {
        Cursor {
            generation: 1,
            next,
            failing_since: None,
            attempts: 0,
            last_answer: None,
            last_answer_at: None,
            delivered_at: None,
            paused: None,
        }
    }

    /// For a new sender. A ledger that was restored with a loss may be shorter than it was.
    pub(super) fn taken_over(&self, size: u64) -> Cursor {
        Cursor { generation: self.generation.saturating_add(1), next: self.next.min(size), ..self.clone() }
    }

    /// Delivers from there on, even if it was paused.
    pub(super) fn moved(&self, next: u64) -> Cursor {
        let generation = self.generation.saturating_add(1);
        Cursor { generation, next, failing_since: None, attempts: 0, paused: None, ..self.clone() }
    }

    /// Passes over what is not for the endpoint. What failed before is no longer next.
    pub(super) fn skip_to(&mut self, next: u64) {
        self.next = next;
        self.failing_since = None;
        self.attempts = 0;
    }

    pub(super) fn delivered(&mut self, index: u64, status: u16, now: Time) {
        self.next = index.saturating_add(1);
        self.failing_since = None;
        self.attempts = 0;
        self.delivered_at = Some(now);
        self.note(&format!("answered {status}"), now);
    }

    /// Says whether that pauses the endpoint.
    pub(super) fn failed(&mut self, failure: &Failure, now: Time) -> Option<Pause> {
        let is_recent = self.last_answer_at.is_some_and(|at| now.since(at) <= UNTRIED_MAX);
        let since = self.failing_since.filter(|_| is_recent).unwrap_or(now);
        self.failing_since = Some(since);
        self.attempts = self.attempts.saturating_add(1);
        self.note(&failure.said, now);
        self.paused = match failure {
            Failure { is_gone: true, .. } => Some(Pause::Gone),
            _ if now.since(since) >= WEBHOOK_FAILING_MAX => Some(Pause::Failing),
            _ => None,
        };
        self.paused
    }

    fn note(&mut self, said: &str, now: Time) {
        self.last_answer = Some(said.chars().take(REASON_CHARS_MAX).collect());
        self.last_answer_at = Some(now);
    }

    pub(super) fn rest(&self, retry_after: Option<Duration>, dice: u64) -> Duration {
        rest_after(self.attempts, retry_after, dice)
    }
}

/// How long to wait after so many failures in a row. `dice` is any number.
pub fn rest_after(attempts: u32, retry_after: Option<Duration>, dice: u64) -> Duration {
    let [.., last] = RETRIES;
    let earlier = usize::try_from(attempts.saturating_sub(1)).ok();
    let rest = earlier.and_then(|earlier| RETRIES.get(earlier)).copied().unwrap_or(last);
    let thousandths = 1000 - JITTER + dice % (2 * JITTER + 1);
    let millis = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX).saturating_mul(thousandths) / 1000;
    Duration::from_millis(millis).max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_unix_micros(1_800_000_000_000_000);
    const HOUR: Duration = Duration::from_hours(1);

    fn failure(said: &str) -> Failure {
        Failure { said: said.to_owned(), is_gone: false, retry_after: None }
    }

    /// How long an endpoint that never answers is left alone after each attempt, in seconds.
    fn rests(count: usize, dice: u64) -> Vec<u64> {
        let (mut cursor, mut now, mut rests) = (Cursor::at(7), START, Vec::new());
        for _ in 0..count {
            cursor.failed(&failure("no answer"), now);
            let rest = cursor.rest(None, dice);
            now = now.plus(rest);
            rests.push(rest.as_secs());
        }
        rests
    }

    #[test]
    fn attempts_become_rarer_and_no_two_endpoints_call_at_the_same_moment() {
        assert_eq!(rests(8, JITTER), [5, 30, 120, 600, 1800, 3600, 3600, 3600]);
        assert_eq!(rests(6, 0), [4, 24, 96, 480, 1440, 2880]);
        assert_eq!(rests(6, 2 * JITTER), [6, 36, 144, 720, 2160, 4320]);
        assert_eq!(rests(1, 2 * JITTER + 1), [4], "any number is a throw");
    }

    #[test]
    fn a_receiver_can_ask_for_a_later_attempt_of_up_to_an_hour() {
        let mut cursor = Cursor::at(7);
        cursor.failed(&failure("answered 503"), START);
        let rest = |seconds| cursor.rest(Some(Duration::from_secs(seconds)), JITTER).as_secs();
        assert_eq!((rest(0), rest(3), rest(90), rest(86_400)), (5, 5, 90, 3600));
    }

    #[test]
    fn an_endpoint_that_fails_for_five_days_is_paused_and_one_that_is_gone_at_once() {
        let mut cursor = Cursor::at(7);
        for hour in 0..5 * 24 {
            assert_eq!(cursor.failed(&failure("no answer"), START.plus(HOUR * hour)), None);
        }
        let almost = WEBHOOK_FAILING_MAX.saturating_sub(Duration::from_micros(1));
        assert_eq!(cursor.failed(&failure("no answer"), START.plus(almost)), None);
        assert_eq!(cursor.failed(&failure("no answer"), START.plus(WEBHOOK_FAILING_MAX)), Some(Pause::Failing));
        assert_eq!((cursor.next, cursor.attempts, cursor.failing_since), (7, 122, Some(START)));
        let gone = Failure { is_gone: true, ..failure("answered 410") };
        assert_eq!(Cursor::at(7).failed(&gone, START), Some(Pause::Gone));
    }

    #[test]
    fn time_in_which_nobody_tried_is_not_time_in_which_it_failed() {
        let mut cursor = Cursor::at(7);
        cursor.failed(&failure("no answer"), START);
        cursor.failed(&failure("no answer"), START.plus(HOUR * 2));
        assert_eq!(cursor.failing_since, Some(START), "the longest pause between two attempts is shorter");
        // The service was stopped for a week.
        let later = START.plus(WEBHOOK_FAILING_MAX + HOUR * 48);
        assert_eq!(cursor.failed(&failure("no answer"), later), None);
        assert_eq!(cursor.failing_since, Some(later));
        assert_eq!(cursor.failed(&failure("no answer"), later.plus(HOUR)), None);
        assert_eq!(cursor.failing_since, Some(later));
    }

    #[test]
    fn an_entry_that_is_passed_over_no_longer_fails() {
        let mut cursor = Cursor::at(7);
        cursor.failed(&failure("no answer"), START);
        cursor.skip_to(8);
        assert_eq!((cursor.next, cursor.attempts, cursor.failing_since), (8, 0, None));
    }

    #[test]
    fn success_ends_the_failure_and_a_move_ends_the_pause() {
        let mut cursor = Cursor::at(7);
        cursor.failed(&failure("no answer"), START);
        cursor.delivered(7, 204, START.plus(Duration::from_secs(5)));
        assert_eq!((cursor.next, cursor.attempts, cursor.failing_since), (8, 0, None));
        assert_eq!(cursor.last_answer.as_deref(), Some("answered 204"));
        let mut cursor = Cursor { paused: Some(Pause::Failing), ..cursor };
        cursor = cursor.moved(3);
        assert_eq!((cursor.next, cursor.paused, cursor.generation), (3, None, 2));
        assert_eq!(cursor.taken_over(2).next, 2, "a ledger that lost entries is continued where it ends");
    }

    #[test]
    fn what_a_receiver_says_is_kept_in_part() {
        let mut cursor = Cursor::at(0);
        cursor.failed(&failure(&"ä".repeat(10_000)), START);
        assert_eq!(cursor.last_answer.unwrap().chars().count(), REASON_CHARS_MAX);
    }
}
