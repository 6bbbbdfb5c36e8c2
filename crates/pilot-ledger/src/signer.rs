//! Signs the head of the log. The signed root is computed here, from entries read back from the store, and the
//! checkpoint is stored in the second place before anyone sees it.

mod edge;
mod note;
mod opening;
mod signing;

pub use edge::edge_at;
pub use note::read_checkpoint;
pub use opening::{Refused, continued, read};
pub use signing::{SignError, Signed, Signer, run};
