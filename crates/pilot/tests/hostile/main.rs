//! Those who mean harm, against the real program: what each can make it cost is bounded, and others are served meanwhile.
//!
//! `cargo xtask bench flood` has the same clients in their long form, and measures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    dead_code,
    unreachable_pub,
    reason = "a test stops at the first surprise and prints its figures; the harness is shared, and each program of tests uses a part of it"
)]

#[path = "../front_door/harness.rs"]
mod harness;
#[path = "../api/team.rs"]
mod team;
#[path = "../front_door/wire.rs"]
mod wire;

mod attacks;
mod beside;
mod clients;
mod costs;
mod stage;
mod table;
