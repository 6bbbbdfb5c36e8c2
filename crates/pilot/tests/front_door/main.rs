//! The front door, from outside: the real program, real files, real sockets, real restarts.
//!
//! Every test has a directory and a server of its own, talks to 127.0.0.1 or [::1] alone, and ends only what it started.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test stops at the first surprise, and prints its figures"
)]

mod authorization;
mod command_line;
mod framing;
mod harness;
mod help_pages;
mod leaks;
mod malformed;
mod onboarding;
mod rotation;
mod shutdown;
mod slow_clients;
mod start_refusals;
mod supervisor;
mod unwanted_bodies;
mod wire;
mod workflow;
