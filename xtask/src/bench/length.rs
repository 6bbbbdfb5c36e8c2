//! How long benchmarks take: as long as a figure needs, or shorter to try one out.

use crate::environment::variable;

/// `PILOT_BENCH_ROUND_SECONDS`: how long a round lasts. Figures of rounds under five seconds are not worth keeping.
pub(super) fn round_seconds() -> u32 {
    given("PILOT_BENCH_ROUND_SECONDS").unwrap_or(5).max(1)
}

/// `PILOT_BENCH_WAIT_SECONDS`: how long to wait at most for the machine to become quiet.
pub(super) fn wait_seconds_max() -> u32 {
    given("PILOT_BENCH_WAIT_SECONDS").unwrap_or(180)
}

fn given(name: &str) -> Option<u32> {
    variable(name)?.parse().ok()
}
