//! The service without a network: who calls, and what is documented.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test stops at the first surprise, and prints its figures"
)]

mod access_tokens;
mod identity_provider;
mod reference;
mod register;
