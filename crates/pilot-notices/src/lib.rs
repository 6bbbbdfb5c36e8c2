//! Tells people where they already are, in chats and by mail, that something waits for them. A notice has links and no
//! buttons: nobody decides anything in a chat.
//!
//! Each notice is a place in the ledger, as a webhook is. What it says is read when it is sent.

mod address_book;
mod book;
mod desk;
pub mod mail;
pub mod message;
mod reminders;
#[cfg(test)]
mod samples;
mod sender;
pub mod slack;
mod story;
mod tally;
mod team;
pub mod teams;
#[cfg(test)]
mod tests;
mod ways;
mod words;

pub use sender::People;
pub use team::{Notices, TrialError, run};
