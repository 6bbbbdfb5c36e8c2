//! The rules of Pilot: who may do what to which item, and when.
//!
//! Nothing here reads a clock, a file, the environment or a random source. Time, ids and nonces are parameters, so the
//! same input gives the same verdict in the server, in a test and in an auditor's verifier years later.

pub mod actor;
pub mod bearer;
pub mod credentials;
pub mod digest;
pub mod fault;
pub mod json;
pub mod leak;
pub mod limits;
pub mod role;
pub mod role_map;
pub mod time;
pub mod token;
