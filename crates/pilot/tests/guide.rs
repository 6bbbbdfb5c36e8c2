//! Pages of the guide whose commands run as they are written, and print what the page shows.

mod ai_agents;
mod audit;
mod page;
mod recorded;
mod roles;
mod shell;
mod tutorial;
