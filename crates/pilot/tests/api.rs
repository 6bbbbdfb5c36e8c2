//! The API from outside: the real program, and people who use it, misuse it and attack it over HTTP.
//!
//! Every test has an installation of its own. What people send and what they are told stands in the test itself.

mod accepted;
mod bad_input;
mod bounds;
mod clock;
mod compression;
mod contents;
mod doors;
mod duels;
mod evidence;
mod feed;
mod figures;
mod keys;
mod leaks;
mod ledger;
mod lists;
mod machines;
mod order;
mod outlook;
mod story;
mod team_day;
mod timers;
mod who_can;
