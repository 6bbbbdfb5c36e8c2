//! Handlers: one file for each kind of operation, one function for each operation.

pub mod actors;
pub mod answers;
pub mod attestations;
pub mod console;
pub mod contents;
pub mod credentials;
pub mod cursor;
pub mod events;
pub mod evidence;
pub mod figures;
pub mod health;
pub mod items;
pub mod lists;
pub mod log;
pub mod looks;
pub mod nodes;
pub mod ops;
pub mod permits;
pub mod reference;
pub mod request;
pub mod resource;
pub mod session;
pub mod transitions;
pub mod who_can;
pub mod whole_item;
pub mod workflows;
