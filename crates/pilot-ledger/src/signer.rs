//! Signs the head of the log. What is signed was computed here, from the entries read back from the store, and is kept
//! in a second place before anyone is shown it.

mod edge;
mod opening;
mod signing;

pub use edge::edge_at;
pub use opening::{Refused, continued, read, read_checkpoint};
pub use signing::{SignError, Signed, Signer, run};
