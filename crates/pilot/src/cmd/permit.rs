//! `pilot permit`: what an executor shows to a target. Checking it needs no network and no service.

use std::path::{Path, PathBuf};

use pilot_core::workflow::Span;
use pilot_evidence::permit::Permit;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json, table};
use crate::permit;
use crate::permit::fresh::FreshArguments;
use crate::permit::spent::Spent;

mod compare;
mod get;
mod key;
mod token;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Download the permit of an item whose lease you hold
    Get(get::Arguments),
    /// Get a token for one target, such as a secret manager or a cluster, while you hold the item's lease
    Token(token::Arguments),
    /// The keys that sign permit tokens
    #[command(subcommand)]
    Key(key::Command),
    /// Check a permit offline: signatures, witnesses, proofs, rules, window, age, and what was approved
    #[command(after_help = permit::LIMITS)]
    Verify(VerifyArguments),
}

/// How a permit is checked, wherever it is used.
#[derive(clap::Args)]
pub(crate) struct CheckArguments {
    /// Whom to trust: a C2SP tlog-policy file with the log's key, the witnesses and their quorum
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// The age from which on a permit is refused, such as 90s, 10m or 1h
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    max_age: Span,
    /// Mark the attempt as used in this directory, and refuse it if it already is
    #[arg(long, value_name = "DIR")]
    spent: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) fresh: FreshArguments,
}

#[derive(clap::Args)]
pub(crate) struct VerifyArguments {
    /// The permit, or - for standard input
    permit: PathBuf,
    #[command(flatten)]
    check: CheckArguments,
    /// A file that must be the approved operation byte for byte: the text, or the object as canonical JSON (RFC 8785)
    #[arg(long, value_name = "FILE")]
    operation: Option<PathBuf>,
    /// A file that must be the approved artifact of this name, by the payload's operation.artifacts; may be repeated
    #[arg(long, value_name = "NAME=FILE")]
    artifact: Vec<String>,
    #[command(flatten)]
    output: OutputArguments,
}

/// A permit that holds, and where its use is recorded.
pub(crate) struct Checked {
    permit: Permit,
    spent: Option<Spent>,
}

impl CheckArguments {
    /// Everything that can be checked before something is compared with the permit.
    pub(crate) fn check(&self, path: &Path) -> Result<Checked, Failure> {
        let policy = permit::read_policy(&self.policy)?;
        let spent = self.spent.as_deref().map(Spent::open).transpose()?;
        let permit = permit::verify(&permit::read(path)?, &policy, self.max_age.length)?;
        Ok(Checked { permit, spent })
    }
}

impl Checked {
    pub(crate) fn permit(&self) -> &Permit {
        &self.permit
    }

    /// Marks the attempt as used; false if nobody wants that recorded.
    pub(crate) fn spend(&self) -> Result<bool, Failure> {
        self.spent.as_ref().map_or(Ok(false), |spent| spent.mark(&self.permit).map(|()| true))
    }
}

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Get(arguments) => get::run(arguments, environment),
        Command::Token(arguments) => token::run(arguments, environment),
        Command::Key(command) => key::run(command, environment),
        Command::Verify(arguments) => verify(arguments, environment),
    }
}

fn verify(arguments: &VerifyArguments, environment: &Environment) -> Result<(), Failure> {
    let checked = arguments.check.check(&arguments.permit)?;
    let permit = checked.permit();
    if let Some(path) = &arguments.operation {
        compare::operation(permit, path)?;
    }
    for artifact in &arguments.artifact {
        compare::artifact(permit, artifact)?;
    }
    arguments.check.fresh.ask(permit, environment)?;
    checked.spend()?;
    match arguments.output.output {
        Output::Json => print_json(&compare::view(permit)),
        Output::Table => {
            let rows = compare::rows(permit).into_iter().map(|(name, value)| vec![name.to_owned(), value]);
            print(&(table(&["what", "value"], rows) + "The permit holds.\n"))
        }
    }
}
