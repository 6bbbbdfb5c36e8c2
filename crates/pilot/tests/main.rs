//! The program as its users have it: over HTTP, on the command line, on a disk that fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::too_many_lines,
    unreachable_pub,
    reason = "a test stops at the first surprise, and prints its figures"
)]

mod api;
mod durability;
mod evidence;
mod examples;
mod front_door;
mod guide;
mod hostile;
mod mcp;
mod nodes;
mod oauth;
mod operations;
mod permits;
mod production;
mod support;
mod terminal;
mod work;
