//! Bundles of ledgers made by the rules, and of ledgers that were not.

mod access;
mod definitions;
mod exceptions;
mod forged;
mod insider;
mod legality;
mod pieces;
mod random_days;
mod redaction;
mod report;
mod tables;
mod tampering;
mod vectors;
mod verdicts;
