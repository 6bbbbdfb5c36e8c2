//! The wall clock of the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use pilot_core::time::Time;
use pilot_wire::clock::since_1970;

/// What the machine says the time is. An operator or a time service may set it to anything at any moment.
#[derive(Clone)]
pub enum Wall {
    System,
    /// The clock of a database that several nodes share: the machine's, and how far the other one is ahead of it, in
    /// microseconds.
    Shared(Arc<AtomicI64>),
    /// In microseconds since 1970; stands still until a test moves it.
    Manual(Arc<AtomicI64>),
}

impl Wall {
    pub fn now(&self) -> Time {
        match self {
            Wall::System => Time::from_unix_micros(of_machine()),
            Wall::Shared(ahead) => Time::from_unix_micros(of_machine().saturating_add(ahead.load(Ordering::Acquire))),
            Wall::Manual(micros) => Time::from_unix_micros(micros.load(Ordering::SeqCst)),
        }
    }
}

fn of_machine() -> i64 {
    since_1970().map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
