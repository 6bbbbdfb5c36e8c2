//! Real time, which a benchmark measures.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::Instant;

pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn micros_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Prints two percentiles of what was measured.
pub(crate) fn print_percentiles(mut micros: Vec<u64>) {
    micros.sort_unstable();
    let percentile = |percent: usize| micros.get(micros.len() * percent / 100).copied().unwrap_or(0);
    println!("p50_micros {}\np99_micros {}", percentile(50), percentile(99));
}
