//! The transparency log and the evidence drawn from it, in public formats. No I/O, no clock, no randomness.

pub mod attestation;
pub mod audit;
pub mod bundle;
pub mod checkpoint;
pub mod cosignature;
pub mod credentials;
pub mod merkle;
pub mod note;
pub mod permit;
pub mod policy;
pub mod proof;
pub mod replay;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "sample")]
pub mod sample;
pub mod tile;
pub mod timestamp;
pub mod tlog_proof;
pub mod verify;
pub mod witness;
