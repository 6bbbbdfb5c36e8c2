//! What the tests share: a service of their own, people to work with it, and the wire.

pub mod authority;
pub mod harness;
pub mod pty;
pub mod team;
pub mod wire;
