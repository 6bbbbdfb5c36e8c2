//! The executor agent. `pilot work` takes cleared items, runs a command for each and reports how it ended.
//!
//! The agent never says more than was seen: see `outcome.rs`. What it has done is in `journal.rs`, and `keeper.rs` ends
//! a command whose lease runs out even if the agent cannot.

pub(crate) mod agent;
mod artifacts;
mod attempt;
mod boot;
mod captured;
pub(crate) mod gauges;
pub(crate) mod group;
pub(crate) mod health;
pub(crate) mod journal;
pub(crate) mod keeper;
mod lease;
mod mask;
mod outcome;
pub(crate) mod pool;
mod report;
mod run;
pub(crate) mod service;
pub(crate) mod settings;
