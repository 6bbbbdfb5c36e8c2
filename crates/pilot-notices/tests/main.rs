//! Mails on their way to a real server.

#[cfg(test)]
mod injected;
#[cfg(test)]
mod letter;
#[cfg(test)]
mod server;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod to_a_server;
