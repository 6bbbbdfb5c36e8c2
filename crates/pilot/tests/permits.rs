//! Permits: from the service to the target, and what the gate in front of a target lets through.

mod attestations;
mod behind_the_gate;
pub mod download;
mod hostile;
pub mod readers;
mod recipes;
mod scene;
mod tokens;
mod verify;
