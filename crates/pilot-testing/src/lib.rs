//! What the tests of several crates share. No program links it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::must_use_candidate,
    clippy::missing_panics_doc,
    reason = "a test stops at the first surprise"
)]

mod dice;
pub mod postgres;
mod scratch;

pub use dice::{Dice, asked, asked_for, fresh_seed};
pub use scratch::{Scratch, scratch_in_memory};
