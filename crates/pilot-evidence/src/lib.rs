//! The transparency log and the evidence drawn from it, in public formats. No I/O, no clock, no randomness.

pub mod note;
