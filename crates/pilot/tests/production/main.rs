//! The production profile from outside: what it insists on, TLS, the mesh, rate limits, and where credentials come from.
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
#[path = "../front_door/wire.rs"]
mod wire;

mod authority;
mod check_config;
mod client;
mod credentials;
mod gate;
mod https;
mod mesh;
mod mutual_tls;
mod rate;
mod rotation_evidence;
mod secrets;
mod sources;
mod tls;
mod vault;
mod vault_double;
mod vault_server;
