//! The front door, from outside: the real program, real files, real sockets, real restarts.
//!
//! Every test has a directory and a server of its own, talks to 127.0.0.1 or [::1] alone, and ends only what it started.
mod at_once;
mod authorization;
mod command_line;
mod framing;
mod help_pages;
mod leaks;
mod malformed;
mod onboarding;
mod rotation;
mod shutdown;
mod slow_clients;
mod start_refusals;
mod supervisor;
mod unwanted_bodies;
mod workflow;
