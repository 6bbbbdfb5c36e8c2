//! The log as it is operated: its second place, its witnesses, backups and restores, with real processes.

mod audit_sink;
mod backup;
mod fsck;
mod leaps;
mod logging;
pub mod machine;
mod metrics;
mod migrate;
mod monitor;
mod notices;
mod older;
mod revocations;
pub mod second_place;
mod signer;
mod timestamps;
mod traces;
pub mod webhooks;
pub mod witnesses;
