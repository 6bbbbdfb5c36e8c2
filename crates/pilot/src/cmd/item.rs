//! `pilot item`: a person's work with items.

use crate::environment::Environment;
use crate::exit::Failure;

pub(crate) mod act;
pub(crate) mod decision;
mod edit;
pub(crate) mod list;
mod new;
mod show;
pub(crate) mod shown;
mod target;
mod wait;
mod written;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Create an item
    New(new::Arguments),
    /// List items, newest first
    List(list::Arguments),
    /// Show everything needed for a decision on an item
    Show(show::Arguments),
    /// Change the title or payload of your own item, while it is a draft or returned
    Edit(edit::Arguments),
    /// Take an action: submit, approve, clear, start, …
    Act(act::Arguments),
    /// Wait until an item has come this far: exit 0 if it has, 1 if it no longer can, 8 if not yet
    Wait(wait::Arguments),
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::New(arguments) => new::run(&arguments, environment),
        Command::List(arguments) => list::run(&arguments, environment),
        Command::Show(arguments) => show::run(&arguments, environment),
        Command::Edit(arguments) => edit::run(&arguments, environment),
        Command::Act(arguments) => act::run(&arguments, environment),
        Command::Wait(arguments) => wait::run(&arguments, environment),
    }
}
