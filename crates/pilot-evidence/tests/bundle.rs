//! Bundles of ledgers made by the rules, and of ledgers that were not.

mod definitions;
mod forged;
mod insider;
mod legality;
mod pieces;
mod random_days;
mod redaction;
mod report;
mod tampering;
mod verdicts;
