//! `pilot mcp`: an AI agent at the real service, over standard input and output.

mod agent;
mod clients;
mod hostile;
mod journey;
mod starting;
