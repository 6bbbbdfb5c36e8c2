//! A witness (C2SP tlog-witness): cosigns checkpoints of logs it was told about, each only if it continues the one before.
//!
//! It is run by somebody else than the log: the partner organisation, or an auditor. It keeps nothing but the newest
//! checkpoint of each log, and its own key.

mod state;
mod witness;

pub use state::State;
pub use witness::{Now, Verdict, Witness, WitnessService};
