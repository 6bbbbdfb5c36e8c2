//! A person's day at the terminal: items, inbox, feed, profiles.

mod completing;
mod desk;
mod editing;
mod inbox;
mod items;
mod lost_answers;
mod profiles;
mod screens;
mod waiting;
mod watching;
