//! The integrations in `examples`: what their pages say is typed, and the approved bytes are what is carried out.

mod ai_agent;
mod database_migration;
mod opentofu;
mod pipelines;
mod ssh_gate;
mod stage;
