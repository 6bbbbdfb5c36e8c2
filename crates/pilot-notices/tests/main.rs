//! Mails on their way to a real server.

mod server;
mod slow;
mod to_a_server;
