//! The log as it is operated: its second place, its witnesses, backups and restores, with real processes.
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
#[path = "../api/team.rs"]
mod team;
#[path = "../front_door/wire.rs"]
mod wire;

mod backup;
mod fsck;
mod leaps;
mod machine;
mod older;
mod revocations;
mod second_place;
mod witnesses;
