//! Those who mean harm, against the real program: what each can make it cost is bounded, and others are served meanwhile.
//!
//! `cargo xtask bench flood` has the same clients in their long form, and measures.

mod attacks;
mod beside;
#[allow(dead_code, reason = "their long form, `cargo xtask bench flood`, uses the rest")]
mod clients;
mod costs;
mod stage;
mod table;
