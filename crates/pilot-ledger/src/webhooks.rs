//! Tells others about entries of the ledger, by HTTP. An endpoint is a cursor: entries are delivered one after the other,
//! and the cursor moves on when the receiver has said that it has one.
//!
//! The cursor is a fact in the store, so it survives the process and is shared by nodes. It is saved after deliveries: what
//! was delivered since is delivered again after a crash, and nothing is left out.

mod cursor;
mod message;
mod place;
mod sender;
mod tally;
mod team;

pub use cursor::{Cursor, Pause, rest_after};
pub use place::{ReplayError, replay};
pub use sender::{Deliver, Delivery, Next, Sender, Sources};
pub use team::{Place, Standing, Webhooks, run};

#[cfg(test)]
mod tests;
