//! Nothing acknowledged is ever lost: the real program, killed, starved of disk and lied to by it.
//!
//! The faults need root: a file system of their own, and a tracer that injects errors.
pub mod client;
mod disk;
pub use disk::SmallDisk;
mod faults;
mod hang;
mod history;
mod kill;
pub mod ledger;
mod linear;
mod power;
mod shim;
mod syscalls;
mod trace;
