//! The server in this process, with a service made for the tests: what it does when the service, the client or the clock
//! does not behave.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test stops at the first surprise"
)]

mod bounds;
mod client;
mod fake;
mod once;
