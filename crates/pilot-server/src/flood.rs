//! A flood of refusals is answered late: a client that waits for an answer before asking again then asks less often,
//! and the processor is left to the others.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use pilot_wire::clock::Stopwatch;

/// How many refusals a second are answered without delay. People and programs with a bug never come close.
const REFUSALS_AT_ONCE: u64 = 100;
const HELD_FOR: Duration = Duration::from_millis(500);
const HELD_MAX: usize = 16 * 1024;

pub(crate) struct Flood {
    started: Stopwatch,
    /// The second, counted from the start, in the upper half; how many refusals it has seen, in the lower.
    second: AtomicU64,
    held: AtomicUsize,
}

impl Default for Flood {
    fn default() -> Flood {
        Flood { started: Stopwatch::start(), second: AtomicU64::new(0), held: AtomicUsize::new(0) }
    }
}

/// One waiting refusal. It is also counted out when the caller hangs up: otherwise enough hang-ups would end all
/// waiting.
struct Held<'a>(&'a AtomicUsize);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Flood {
    /// Delays a refusal when there are many of them.
    pub(crate) async fn hold_back(&self) {
        self.hold_back_in(self.started.micros() / 1_000_000).await;
    }

    async fn hold_back_in(&self, second: u64) {
        if !self.take(second) {
            return;
        }
        // Waiting takes memory, so not everyone does.
        let before = self.held.fetch_add(1, Ordering::Relaxed);
        let _held = Held(&self.held);
        if before < HELD_MAX {
            tokio::time::sleep(HELD_FOR).await;
        }
    }

    /// Whether this refusal exceeds those that are answered immediately within a second.
    fn take(&self, second: u64) -> bool {
        let counted = |state: u64| if state >> 32 == second { state + 1 } else { (second << 32) + 1 };
        let before = self.second.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| Some(counted(state)));
        counted(before.unwrap_or(0)) & u64::from(u32::MAX) > REFUSALS_AT_ONCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_hangs_up_while_held_back_is_counted_out() {
        let flood = Flood::default();
        while !flood.take(7) {}
        {
            let mut held = std::pin::pin!(flood.hold_back_in(7));
            let given_up = tokio::time::timeout(HELD_FOR / 2, held.as_mut()).await;
            assert!(given_up.is_err(), "it is held back");
            assert_eq!(flood.held.load(Ordering::Relaxed), 1);
        }
        assert_eq!(flood.held.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn when_as_many_wait_as_may_the_next_one_is_answered_at_once() {
        let flood = Flood::default();
        while !flood.take(7) {}
        // The clock of the test moves only while everything waits.
        let waited = async |held: usize| {
            flood.held.store(held, Ordering::Relaxed);
            let began = tokio::time::Instant::now();
            flood.hold_back_in(7).await;
            assert_eq!(flood.held.load(Ordering::Relaxed), held);
            began.elapsed()
        };
        assert_eq!(waited(HELD_MAX - 1).await, HELD_FOR);
        assert_eq!(waited(HELD_MAX).await, Duration::ZERO);
    }

    #[test]
    fn a_hundred_refusals_a_second_are_answered_at_once_and_those_beyond_are_held_back() {
        let flood = Flood::default();
        for second in [0, 1, 7] {
            let held: Vec<_> = (0..300).filter(|_| flood.take(second)).collect();
            assert_eq!(held, (100..300).collect::<Vec<_>>(), "second {second}");
        }
    }
}
