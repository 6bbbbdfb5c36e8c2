//! Tells people where they already are, in chats and by mail, that something waits for them. A notice has links and no
//! buttons: nobody decides anything in a chat.

pub mod mail;
pub mod message;
pub mod slack;
pub mod teams;
mod words;

#[cfg(test)]
mod samples;
