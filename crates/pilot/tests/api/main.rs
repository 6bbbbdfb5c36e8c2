//! The API from outside: the real program, and people who use it, misuse it and attack it over HTTP.
//!
//! Every test has an installation of its own. What people send and what they are told stands in the test itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::too_many_lines,
    dead_code,
    unreachable_pub,
    reason = "a test stops at the first surprise and prints its figures; the harness is shared, and each program of tests uses a part of it"
)]

#[path = "../front_door/harness.rs"]
mod harness;
#[path = "../front_door/wire.rs"]
mod wire;

mod accepted;
mod bad_input;
mod bounds;
mod clock;
mod doors;
mod duels;
mod evidence;
mod feed;
mod keys;
mod leaks;
mod ledger;
mod lists;
mod order;
mod story;
mod team;
mod team_day;
mod timers;
