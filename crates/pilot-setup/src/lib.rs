//! What the command line and the service read before anything runs: configuration, private files, credential sources.

pub mod backup_record;
mod child;
pub mod config;
pub mod contacts;
pub mod credential_source;
pub mod credentials;
pub mod database;
pub mod definitions;
pub mod error;
pub mod exposed;
pub mod log_key;
pub mod log_settings;
pub mod permit_key;
pub mod private_file;
pub mod production;
pub mod random;
pub mod reference;
pub mod secret_line;
pub mod webhook_key;
pub mod webhooks;
