//! The `pilot` program: the service, its tools and its client in one binary.

mod authority;
mod client;
mod cmd;
mod content;
mod difference;
mod draft;
mod environment;
mod exit;
mod files;
mod gate;
mod items;
mod mcp;
mod moment;
mod output;
mod part;
mod permit;
mod profile;
mod reason;
mod sign_in;
mod supervisor;
mod terminal;
mod work;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::environment::Environment;
use crate::exit::Failure;

/// The C library's own allocator is slow when threads share it, or when much is freed at once
/// (docs/adr/0037-what-a-transition-costs.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The workflow service for operations that no one should be able to carry out alone.
#[derive(Parser)]
#[command(name = "pilot", version, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 refused or failed verification, 2 wrong usage or configuration, 3 network, disk or database, 4 evidence that holds only as far as it could be checked, 8 not yet."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service until SIGTERM or Ctrl-C
    Serve(cmd::serve::Arguments),
    /// Check everything a start would, without starting
    CheckConfig(cmd::check_config::Arguments),
    /// Run a service with five actors for a first look; everything is deleted at the end
    Demo(cmd::demo::Arguments),
    /// Create a new installation: configuration, empty role map, log signing key
    Init(cmd::init::Arguments),
    /// Create, remove, list and check credentials
    #[command(subcommand)]
    Credential(cmd::credential::Command),
    /// Replace an actor's token, step by step, with a record
    #[command(subcommand)]
    Rotation(cmd::rotation::Command),
    /// Ask the service who you are, and compare it with the approved role map
    Session(cmd::session::Arguments),
    /// Create, list, show, edit and move items, and wait for them
    #[command(subcommand)]
    Item(cmd::item::Command),
    /// What waits for you; at a terminal, decide on it
    Inbox(cmd::inbox::Arguments),
    /// Follow the ledger as it grows
    Watch(cmd::watch::Arguments),
    /// Sign in: get a token for a profile and keep it in the session keyring
    Login(cmd::login::LoginArguments),
    /// Sign out: forget the token of a profile, and revoke it where that is possible
    Logout(cmd::login::LogoutArguments),
    /// The services you work with, as in profiles.toml
    #[command(subcommand)]
    Profile(cmd::profile::Command),
    /// Execute what was cleared: run a command for each item and report how it ended
    Work(cmd::work::Arguments),
    /// Serve an AI agent: the Model Context Protocol on standard input and output
    Mcp(cmd::mcp::Arguments),
    /// Prove, draw and explain workflow definitions
    #[command(subcommand)]
    Workflow(cmd::workflow::Command),
    /// Export, verify, report on, redact and erase evidence
    #[command(subcommand)]
    Evidence(cmd::evidence::Command),
    /// Get and check attestations: signed statements about items, for pipelines
    #[command(subcommand)]
    Attestation(cmd::attestation::Command),
    /// Check permits: what an executor shows to a target
    #[command(subcommand)]
    Permit(cmd::permit::Command),
    /// Run a command if a permit shows that exactly this was approved
    Gate(cmd::gate::Arguments),
    /// The transparency log
    #[command(subcommand)]
    Log(cmd::log::Command),
    /// Messages to chats and people
    #[command(subcommand)]
    Notice(cmd::notice::Command),
    /// Keys and endpoints of webhooks
    #[command(subcommand)]
    Webhook(cmd::webhook::Command),
    /// Copy everything a service needs into a new directory, while it runs, and verify the copy
    Backup(cmd::backup::Arguments),
    /// Replace a lost ledger with a backup, if nothing newer is known
    Restore(cmd::restore::Arguments),
    /// Move the ledger between the embedded store and PostgreSQL
    #[command(subcommand)]
    Store(cmd::store::Command),
    /// Show and change what the service logs, while it runs
    #[command(subcommand)]
    Logging(cmd::logging::Command),
    /// Accept the machine's clock after it jumped ahead
    #[command(subcommand)]
    Clock(cmd::clock::Command),
    /// Write a file for support: version, configuration, figures and log lines, without secrets
    SupportBundle(cmd::support_bundle::Arguments),
    /// What a shell offers for the word at the cursor
    #[command(hide = true)]
    Complete(cmd::complete::Arguments),
    /// Hold a command within its lease; `pilot work` starts this
    #[command(hide = true)]
    Keep(work::keeper::Arguments),
    /// Write manual pages and shell completions, for a package
    #[command(hide = true)]
    HelpPages(cmd::help_pages::Arguments),
}

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|command| command == "serve") {
        use_small_pages();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return exit::usage(&error),
    };
    // One cryptography provider for the whole process, chosen before anything else can choose another.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let environment = Environment::read();
    match run(arguments.command, &environment) {
        Ok(code) => code,
        Err(failure) => output::report(&failure),
    }
}

/// The allocator asks for pages of 2 MiB, of which a service at rest uses little: they more than double its memory and buy
/// nothing under load. Asked for before anything else takes memory (docs/adr/0096-what-is-paid-for-every-request.md).
fn use_small_pages() {
    // A kernel that refuses costs memory only.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

fn run(command: Command, environment: &Environment) -> Result<ExitCode, Failure> {
    if let Command::Work(arguments) = &command {
        return cmd::work::run(arguments, environment);
    }
    run_plain(command, environment).map(|()| ExitCode::SUCCESS)
}

/// The commands that end with 0 when they are done.
fn run_plain(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Work(_) => Ok(()),
        Command::Keep(arguments) => work::keeper::run(&arguments),
        Command::Serve(arguments) => cmd::serve::run(&arguments, environment),
        Command::CheckConfig(arguments) => cmd::check_config::run(&arguments, environment),
        Command::Demo(arguments) => cmd::demo::run(&arguments),
        Command::Init(arguments) => cmd::init::run(&arguments),
        Command::Credential(command) => cmd::credential::run(command, environment),
        Command::Rotation(command) => cmd::rotation::run(command, environment),
        Command::Session(arguments) => cmd::session::run(&arguments, environment),
        Command::Item(command) => cmd::item::run(command, environment),
        Command::Inbox(arguments) => cmd::inbox::run(&arguments, environment),
        Command::Watch(arguments) => cmd::watch::run(&arguments, environment),
        Command::Login(arguments) => cmd::login::login(&arguments, environment),
        Command::Logout(arguments) => cmd::login::logout(&arguments, environment),
        Command::Profile(command) => cmd::profile::run(&command, environment),
        Command::Mcp(arguments) => cmd::mcp::run(&arguments, environment),
        Command::Workflow(command) => cmd::workflow::run(&command, environment),
        Command::Evidence(command) => cmd::evidence::run(&command, environment),
        Command::Attestation(command) => cmd::attestation::run(&command, environment),
        Command::Permit(command) => cmd::permit::run(&command, environment),
        Command::Gate(arguments) => cmd::gate::run(&arguments, environment),
        Command::Log(command) => cmd::log::run(&command, environment),
        Command::Notice(command) => cmd::notice::run(&command, environment),
        Command::Webhook(command) => cmd::webhook::run(&command, environment),
        Command::Backup(arguments) => cmd::backup::run(&arguments, environment),
        Command::Restore(arguments) => cmd::restore::run(&arguments, environment),
        Command::Store(command) => cmd::store::run(&command),
        Command::Logging(command) => cmd::logging::run(&command, environment),
        Command::Clock(command) => cmd::clock::run(&command, environment),
        Command::SupportBundle(arguments) => cmd::support_bundle::run(&arguments, environment),
        Command::Complete(arguments) => cmd::complete::run(&arguments, &Arguments::command(), environment),
        Command::HelpPages(arguments) => cmd::help_pages::run(&arguments, Arguments::command()),
    }
}
