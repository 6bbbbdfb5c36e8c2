//! The only place that reads the wall clock or a stopwatch. The guard in pilot-ledger also reads the time since boot.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The machine's clock. `None` if it is set to before 1970.
#[expect(clippy::disallowed_methods, reason = "this is the place meant for it")]
pub fn since_1970() -> Option<Duration> {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()
}

/// Whether the machine's clock is between 1970 and 9999. The HTTP library dates every answer and TLS every handshake,
/// and both fail on anything else, so nothing is passed to them while this is false.
pub fn has_date() -> bool {
    static HAD: AtomicBool = AtomicBool::new(true);
    let has = since_1970().is_some_and(|since| since.as_secs() < YEAR_10_000);
    if HAD.swap(has, Ordering::Relaxed) != has {
        if has {
            tracing::info!("the machine's clock has a valid date again; connections are accepted");
        } else {
            tracing::error!(
                "the machine's clock is before 1970 or after 9999; connections are closed until it is corrected"
            );
        }
    }
    has
}

const YEAR_10_000: u64 = 253_402_300_800;

/// Measures how long something took, on the monotonic clock.
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "this is the place meant for it")]
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    pub fn micros(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
