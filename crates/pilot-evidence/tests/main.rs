//! Evidence as its readers have it: made, tampered with, judged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    unreachable_pub,
    reason = "a test stops at the first surprise and prints its figures, and its trees are small"
)]

mod bundle;
mod oracles;
