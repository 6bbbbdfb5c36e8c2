//! The gate: runs a command if a permit shows that exactly this was approved, and runs exactly what was checked.

mod environment;
mod files;
mod operation;
mod run;

pub(crate) use environment::{Allowed, refused_name};
pub(crate) use run::prepare;
