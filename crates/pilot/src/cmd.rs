//! One file a subcommand.

pub mod check_config;
pub mod credential;
pub mod demo;
pub mod evidence;
pub mod init;
pub mod log;
pub mod rotation;
pub mod serve;
pub mod session;
pub mod workflow;
