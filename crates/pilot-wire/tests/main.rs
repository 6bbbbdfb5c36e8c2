//! The wire against peers that lie, and beside the library it is made of.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and prints its figures"
)]

mod beside_hyper;
mod outgoing;
mod targets;
