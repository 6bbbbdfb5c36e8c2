//! The door: route table, access, identity mechanisms, handlers, problems. A request goes from the route table through
//! access to a handler, and nowhere else.

pub mod access;
pub mod answer;
pub mod api;
pub mod app;
pub mod audience;
pub mod budget;
pub mod call;
pub mod caller;
mod client_trust;
mod distinguished;
pub mod edge;
mod encoding;
mod examined;
pub mod exposure;
pub mod feed;
pub mod feeds;
mod flood;
pub mod identity;
pub mod log;
pub mod logging;
pub mod metrics;
pub mod openapi;
pub mod permits;
pub mod preflight;
pub mod problem;
mod process;
pub mod rate;
pub mod reference;
pub mod routes;
pub mod run;
pub mod start;
pub mod tls;
pub mod upload;
mod watched;
mod work_metrics;
pub mod workshop;
