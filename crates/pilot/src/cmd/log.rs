//! `pilot log`: the transparency log.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use pilot_evidence::note::NoteKey;
use pilot_server::config::Config;
use pilot_server::private_file::{self, Others};
use pilot_store::sqlite::fsck::{Progress, Report, fsck};

use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json};

mod checkpoint;
mod signed;
mod witness;

pub use signed::examine_signed;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Print the log's verifier key: the line that others use to check its signatures
    Key(Arguments),
    /// Check the whole ledger, and report everything that is inconsistent or does not match what was signed;
    /// changes nothing
    Fsck(Arguments),
    /// Print the current checkpoint of the log, and check its signatures
    Checkpoint(checkpoint::Arguments),
    /// Run a witness: cosign checkpoints of other logs, each only if it continues the previous one
    Witness(witness::Arguments),
}

#[derive(clap::Args)]
pub struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

pub fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Key(arguments) => {
            let config = Config::load(&arguments.config, environment.variables())?;
            key(&config.log_key_path(), arguments.output.output)
        }
        Command::Checkpoint(arguments) => checkpoint::run(arguments, environment),
        Command::Witness(arguments) => witness::run(arguments, environment),
        Command::Fsck(arguments) => {
            let config = Config::load(&arguments.config, environment.variables())?;
            let path = config.sqlite_path();
            let path = path.ok_or_else(|| Failure::Usage("store.url: only an embedded store can be read".into()))?;
            check(&examine_signed(&config, &path)?, arguments.output.output)
        }
    }
}

fn key(path: &Path, output: Output) -> Result<(), Failure> {
    let file = private_file::read(path, Others::MayNothing).map_err(|error| Failure::Usage(error.to_string()))?;
    let key = NoteKey::parse(&String::from_utf8_lossy(&file.bytes));
    let key = key.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let verifier = key.verifier().to_string();
    match output {
        Output::Json => print_json(&serde_json::json!({ "verifier_key": verifier })),
        Output::Table => print(&format!("{verifier}\n")),
    }
}

fn check(report: &Report, output: Output) -> Result<(), Failure> {
    match output {
        Output::Json => print_json(report)?,
        Output::Table => print(&in_words(report))?,
    }
    // What to do depends on what it is: a key or a checkpoint can be put back without touching the ledger.
    let remedy = "fix what is named, or restore the ledger from a backup";
    match report.faults.len() {
        0 => Ok(()),
        1 => Err(Failure::Refused(format!("the ledger has 1 fault; {remedy}"))),
        count => Err(Failure::Refused(format!("the ledger has {count} faults; {remedy}"))),
    }
}

/// Reads the whole store, and shows its progress.
pub fn examine(path: &Path) -> Result<Report, Failure> {
    let is_watched = std::io::stderr().is_terminal();
    let mut show = |progress: Progress| {
        if is_watched {
            show_progress(progress);
        }
    };
    let report = fsck(path, &mut show);
    if is_watched {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    report.map_err(|error| Failure::Environment(error.to_string()))
}

fn show_progress(Progress { step, done, of }: Progress) {
    let percent = done.saturating_mul(100).checked_div(of).unwrap_or(100);
    let _ = write!(std::io::stderr(), "\r\x1b[Kchecking {step}: {percent} %");
}

pub fn in_words(report: &Report) -> String {
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
