//! Definitions for people: as text, as diagrams, and what is wrong with one, shown where it is.
//!
//! Nothing here decides anything. The rules and their proof are in `pilot-core`, which a verifier can read without
//! this.

pub mod flaws;
pub mod graph;
pub mod report;
pub mod words;
