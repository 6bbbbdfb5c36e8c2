//! A message as a mail, and the way to the mail server.

mod by_byte;
mod letter;
mod sending;

pub use letter::{Letter, letter};
pub use pilot_setup::config::MailTls;
pub use sending::{MailError, MailServer, Mailer};
