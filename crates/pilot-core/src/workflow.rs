//! Definitions: the rules an item moves by, as data.
//!
//! A [`Definition`] exists only for rules that were read without a fault and proved by [`check`], so code that has one
//! need not ask whether it is sound.

pub mod builtin;
pub mod canonical;
pub mod check;
mod definition;
mod parse;
pub mod people;
pub mod registry;
pub mod report;
mod rules;
mod schema;
mod search;
pub mod source;

pub use definition::{Action, Definition};
pub use rules::{
    Due, Hold, Input, Kind, Mark, Name, Own, QuorumIf, RESERVED_ACTIONS, Rule, Rules, Span, State, Timer, When,
};
pub use schema::PayloadSchema;
