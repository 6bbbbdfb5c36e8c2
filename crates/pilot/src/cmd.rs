//! One file a subcommand.

pub mod backup;
pub mod check_config;
pub mod clock;
pub mod credential;
pub mod demo;
pub mod evidence;
pub mod help_pages;
pub mod init;
pub mod log;
pub mod restore;
pub mod rotation;
pub mod serve;
pub mod session;
pub mod support_bundle;
pub mod workflow;
