//! The shapes of what the service sends: items and their history, actors, credentials, proofs, problems.

pub mod access;
pub mod events;
pub mod health;
pub mod items;
pub mod log;
pub mod problem;
pub mod workflows;
