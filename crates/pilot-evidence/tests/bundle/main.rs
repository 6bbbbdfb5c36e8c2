//! Bundles of ledgers made by the rules, and of ledgers that were not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, unreachable_pub, reason = "tests stop at the first surprise")]

mod forged;
mod legality;
mod random_days;
mod redaction;
mod report;
mod tampering;
mod verdicts;
