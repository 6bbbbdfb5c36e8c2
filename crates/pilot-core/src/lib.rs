//! The rules of Pilot: who may do what to which item, and when.
//!
//! Nothing here reads a clock, a file, the environment or a random source. Time, ids and nonces are parameters, so the
//! same input gives the same verdict in the server, in a test and in an auditor's verifier years later.

pub mod access_token;
pub mod actor;
pub mod bearer;
pub mod certain;
pub mod client_certificate;
pub mod credentials;
pub mod decide;
pub mod digest;
pub mod document;
pub mod entry;
pub mod fault;
pub mod item;
pub mod json;
pub mod key_set;
pub mod leak;
pub mod limits;
mod operator_file;
pub mod payload;
pub mod refusal;
pub mod role;
pub mod role_map;
pub mod role_set;
mod scan;
pub mod sha256;
pub mod time;
pub mod token;
pub mod visible;
pub mod workflow;
