//! The machine's clock, as the service uses it.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use pilot_core::time::Time;

use super::guard::ClockGuard;
use super::wall::Wall;

/// The time by which credentials, certificates and signed tokens are judged.
#[derive(Clone)]
pub enum Clock {
    System,
    /// As far as it can be trusted.
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
            Clock::System => Wall::System.now(),
            Clock::Guarded(guard) => guard.now(),
            Clock::Manual(micros) => Wall::Manual(Arc::clone(micros)).now(),
        }
    }
}
