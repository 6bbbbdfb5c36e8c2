//! Definitions for people: in words, as pictures, and what is wrong with one, shown where it stands.
//!
//! Nothing here decides anything. The rules and their proof are in `pilot-core`, which a verifier can read without this.

pub mod flaws;
pub mod graph;
pub mod report;
pub mod words;
