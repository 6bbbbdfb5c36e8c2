//! The shapes of what the service sends, with their schemas: items and their history, actors, credentials, proofs,
//! problems.

pub mod access;
pub mod events;
pub mod figures;
pub mod health;
pub mod items;
pub mod log;
mod named;
pub mod nodes;
pub mod outlook;
pub mod permits;
pub mod problem;
pub mod schemas;
pub mod webhooks;
pub mod workflows;
