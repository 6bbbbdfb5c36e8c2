//! Milliseconds since this program began.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "a measurement of real services takes real time")]
fn now() -> Instant {
    Instant::now()
}

static BEGAN: LazyLock<Instant> = LazyLock::new(now);

pub(crate) fn millis() -> u64 {
    u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}
