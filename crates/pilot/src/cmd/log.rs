//! `pilot log`: the transparency log.

use std::fmt::Write as _;
use std::path::PathBuf;

use pilot_setup::config::Config;
use pilot_setup::{log_key, private_file};
use pilot_store::archive::Report;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::files;
use crate::output::{Output, OutputArguments, print, print_json};

mod checkpoint;
mod examine;
mod follow;
mod monitor;
mod signed;
mod tiles;
mod witness;

pub(crate) use examine::examine;
pub(crate) use signed::examine_signed;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Print the log's verifier key: the line that others use to check its signatures
    Key(KeyArguments),
    /// Check the whole ledger, and report everything that is inconsistent or does not match what was signed;
    /// changes nothing
    Fsck(Arguments),
    /// Print the current checkpoint of the log, and check its signatures
    Checkpoint(checkpoint::Arguments),
    /// Follow the ledger and pass every entry on, in order and at least once: to a file, a pipe or a syslog server.
    /// `pilot watch` shows people what happens; this keeps its place and leaves nothing out
    Follow(follow::Arguments),
    /// Follow a log from outside: check that it only grows, who signed it and when, keep its checkpoints, and raise an
    /// alarm if it contradicts itself
    Monitor(monitor::Arguments),
    /// Run a witness: cosign checkpoints of other logs, each only if it continues the previous one
    Witness(witness::Arguments),
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct KeyArguments {
    #[command(flatten)]
    common: Arguments,
    /// Print the public key as PEM, for other tools: they check attestations with it
    #[arg(long)]
    pem: bool,
    /// Write the PRIVATE key to a new file as PEM, to move it into a hardware security module; delete the file afterwards
    #[arg(long, value_name = "FILE", conflicts_with = "pem")]
    private_pem: Option<PathBuf>,
}

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Key(arguments) => {
            let config = Config::load(&arguments.common.config, environment.variables())?;
            key(&config, arguments)
        }
        Command::Checkpoint(arguments) => checkpoint::run(arguments, environment),
        Command::Follow(arguments) => follow::run(arguments, environment),
        Command::Monitor(arguments) => monitor::run(arguments, environment),
        Command::Witness(arguments) => witness::run(arguments, environment),
        Command::Fsck(arguments) => {
            let config = Config::load(&arguments.config, environment.variables())?;
            let ledger = files::ledger(&config, "read")?;
            check(&examine_signed(&config, &*ledger)?, arguments.output.output)
        }
    }
}

fn key(config: &Config, arguments: &KeyArguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.private_pem {
        let key = log_key::load_checked(config).map_err(|error| Failure::Usage(error.to_string()))?;
        let written = private_file::write_new(path, key.to_pem().as_bytes());
        return written.map_err(|error| Failure::environment(path.display(), error));
    }
    let key = log_key::verifier(config).map_err(|error| Failure::Usage(error.to_string()))?;
    match (arguments.common.output.output, arguments.pem) {
        (Output::Json, _) => print_json(&serde_json::json!({ "verifier_key": key.to_string(), "pem": key.to_pem() })),
        (Output::Table, true) => print(&key.to_pem()),
        (Output::Table, false) => print(&format!("{key}\n")),
    }
}

fn check(report: &Report, output: Output) -> Result<(), Failure> {
    match output {
        Output::Json => print_json(report)?,
        Output::Table => print(&in_words(report))?,
    }
    // The remedy depends on the fault: a key or a checkpoint can be put back without touching the ledger.
    let remedy = "fix what is named, or restore the ledger from a backup";
    match report.faults.len() {
        0 => Ok(()),
        1 => Err(Failure::Refused(format!("the ledger has 1 fault; {remedy}"))),
        count => Err(Failure::Refused(format!("the ledger has {count} faults; {remedy}"))),
    }
}

pub(crate) fn in_words(report: &Report) -> String {
    let mut text = format!(
        "{} entries, {} documents ({} more erased), {} tiles, {} items ({} not replayed because documents were erased), {} definitions\n",
        report.entries,
        report.documents,
        report.erased,
        report.tiles,
        report.items,
        report.items_not_replayed,
        report.definitions
    );
    if let Some(root) = &report.root {
        let _ = writeln!(text, "root {root}");
    }
    for fault in &report.faults {
        let _ = writeln!(text, "{}: {}", fault.place, fault.what);
    }
    if report.faults.is_empty() {
        text.push_str("everything is consistent\n");
    }
    text
}
