//! The HTTP service: a request goes from the route table through access to a handler, and nowhere else.

pub mod access;
pub mod answer;
pub mod api;
pub mod app;
pub mod body;
pub mod clock;
pub mod config;
pub mod console;
pub mod deadline;
pub mod framing;
pub mod identity;
pub mod listen;
pub mod log;
pub mod metrics;
pub mod openapi;
pub mod private_file;
pub mod problem;
pub mod random;
pub mod reference;
pub mod routes;
pub mod start;
