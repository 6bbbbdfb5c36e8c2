//! Every engine keeps the same promises, and finds the damage done to it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test stops at the first surprise, and prints its figures"
)]

mod archive;
mod damage;
mod postgres;
mod sqlite;
mod transfer;
mod upgrade;
