//! One file per subcommand.

pub(crate) mod attestation;
pub(crate) mod backup;
pub(crate) mod check_config;
pub(crate) mod clock;
pub(crate) mod complete;
pub(crate) mod credential;
pub(crate) mod demo;
pub(crate) mod evidence;
pub(crate) mod gate;
pub(crate) mod help_pages;
pub(crate) mod inbox;
pub(crate) mod init;
pub(crate) mod item;
pub(crate) mod log;
pub(crate) mod login;
pub(crate) mod permit;
pub(crate) mod profile;
pub(crate) mod restore;
pub(crate) mod rotation;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod store;
pub(crate) mod support_bundle;
pub(crate) mod watch;
pub(crate) mod work;
pub(crate) mod workflow;
