//! The identity mechanism `oauth` from outside, against a real identity provider that rotates its keys, is slow, and
//! is sometimes not there.
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

#[path = "../production/authority.rs"]
mod authority;
#[path = "../front_door/harness.rs"]
mod harness;
#[path = "../front_door/wire.rs"]
mod wire;

mod ends;
mod gate;
mod leaks;
mod outage;
mod provider;
mod sign_in;
mod stage;
