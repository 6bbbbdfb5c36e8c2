//! The only place that reads a clock. Handlers and rules are given the time; tests move it.
//!
//! There are two kinds of time. What is compared with the ledger (deadlines, windows, leases, what a caller may do now)
//! goes by the [`LedgerClock`], which never goes back. What others have dated (credentials, certificates, signed tokens)
//! goes by the machine's [`Clock`]. The service reads it through a [`ClockGuard`], so that a leap moves neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pilot_core::time::Time;

mod guard;
mod keeper;
mod ledger;
mod record;

pub use guard::{ClockGuard, SinceBoot};
pub use keeper::{ClockKeeper, run};
pub use ledger::{Change, Elapsed, LedgerClock, Watch};
pub use record::{Accepted, Record, RecordError, boot_id};

/// What the machine says the time is. An operator, or whatever keeps it right, may set it to anything at any moment.
#[derive(Clone)]
pub enum Clock {
    System,
    /// As far as it can be believed.
    Guarded(Arc<ClockGuard>),
    /// Stands still until a test moves it.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    pub fn manual(start: Time) -> Clock {
        Clock::Manual(Arc::new(AtomicI64::new(start.unix_micros())))
    }

    pub fn now(&self) -> Time {
        match self {
            Clock::System => Time::from_unix_micros(
                since_1970().map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)),
            ),
            Clock::Guarded(guard) => guard.now(),
            Clock::Manual(micros) => Time::from_unix_micros(micros.load(Ordering::SeqCst)),
        }
    }
}

/// None when the machine's clock says that it is earlier.
#[expect(clippy::disallowed_methods, reason = "this is the place meant for it")]
fn since_1970() -> Option<Duration> {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()
}

/// Whether what the machine's clock says has a date of four digits, from 1970 on. The HTTP library dates every answer,
/// TLS every handshake, and both give up on anything else: so nothing is handed to them meanwhile.
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
