//! PostgreSQL servers for tests: each with files and a port of its own, and gone when the test program ends, however it
//! ends.

mod cluster;
mod database;
mod home;
mod installation;
mod processes;
mod standby;
mod tls;

pub use cluster::{Access, Cluster, Settings};
pub use database::Database;
pub use installation::psql;
pub use processes::until;
pub use tls::{CERTIFIED, ClientFiles, ServerKey};
