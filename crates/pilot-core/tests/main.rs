//! What the rules promise, with input and verdict.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test stops at the first surprise, and prints its figures"
)]

mod credential_file;
mod payloads;
mod robustness;
mod rules_table;
mod scenarios;
mod scenarios_of_execution;
mod scenarios_of_machines;
mod stage;
