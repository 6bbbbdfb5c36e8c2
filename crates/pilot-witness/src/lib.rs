//! A witness (C2SP tlog-witness): cosigns checkpoints of the logs it knows, each only if it continues the previous one.
//!
//! It is run by someone other than the log's operator: the partner organisation, or an auditor. It stores only its own
//! key and the newest checkpoint of each log.

mod state;
mod witness;

pub use state::State;
pub use witness::{Now, Verdict, Witness, WitnessService};
