//! Nothing acknowledged is ever lost: the real program, killed, starved of disk and lied to by it.
//!
//! The faults need root: a file system of their own, and a tracer that injects errors.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test stops at the first surprise, and prints its figures"
)]

mod client;
mod disk;
mod faults;
mod hang;
#[path = "../front_door/harness.rs"]
#[allow(dead_code, reason = "the front door uses all of it")]
mod harness;
mod history;
mod kill;
mod ledger;
mod linear;
mod power;
mod shim;
mod syscalls;
mod trace;
#[path = "../front_door/wire.rs"]
#[allow(dead_code, reason = "the front door uses all of it")]
mod wire;
