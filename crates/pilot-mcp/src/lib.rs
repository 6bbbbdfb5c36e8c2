//! The Model Context Protocol for AI agents: what an agent may ask the service for, as tools.
//!
//! The crate knows neither TLS nor tokens nor profiles: it talks to the service through [`Service`]. Which tools there
//! are follows from the role of the credential, and no tool decides anything: an agent can propose, wait and carry out,
//! and people approve (docs/adr/0092-an-agent-asks.md).

mod arguments;
mod bounds;
mod catalogue;
mod desk;
mod reader;
mod refusal;
mod server;
mod service;
mod texts;
mod tools;
mod view;

pub use server::{Agent, ServeError, serve, serve_stdio};
pub use service::{Answer, Method, Request, Service, Unreachable};
