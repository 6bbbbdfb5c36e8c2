//! `pilot evidence`: what an auditor does with a bundle. Checking one needs no network and no service.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pilot_core::document::ContentDigest;
use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::report::report;
use pilot_evidence::verify::trust;
use pilot_evidence::verify::{Conclusion, Trust, verify};

use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json};

mod erase;
mod export;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Export a bundle from the service, for an item or a period
    Export(export::Arguments),
    /// Check a bundle: integrity, completeness, and whether everything in it happened by the rules
    Verify(VerifyArguments),
    /// Turn a bundle into a readable page: one self-contained HTML file
    Report(ReportArguments),
    /// Erase what people wrote about an item that has ended; the service must be stopped, and the item's proofs remain valid
    Erase(erase::Arguments),
    /// Leave documents out of a bundle; the rest still proves everything that does not depend on them
    Redact(RedactArguments),
}

#[derive(clap::Args)]
pub(crate) struct TrustArguments {
    /// The log's verifier key, as `pilot log key` prints it, or a file with that line
    #[arg(long, value_name = "KEY")]
    key: String,
    /// A witness's verifier key, given the same way; may be repeated
    #[arg(long, value_name = "KEY")]
    witness_key: Vec<String>,
    /// How many of these witnesses must have signed [default: all of them]
    #[arg(long, value_name = "N")]
    witnesses: Option<usize>,
    /// Accept that documents were erased or left out: exit with 0 instead of 4 if everything else holds
    #[arg(long)]
    allow_left_out: bool,
}

#[derive(clap::Args)]
pub(crate) struct VerifyArguments {
    /// The bundle
    bundle: PathBuf,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct ReportArguments {
    /// The bundle
    bundle: PathBuf,
    #[command(flatten)]
    trust: TrustArguments,
    /// Where to write the page [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct RedactArguments {
    /// The bundle; it is not changed
    bundle: PathBuf,
    /// The new bundle to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// A document to leave out, as sha256:…; may be repeated
    #[arg(long, value_name = "DIGEST", required_unless_present = "all_documents", conflicts_with = "all_documents")]
    document: Vec<ContentDigest>,
    /// Leave out every document
    #[arg(long)]
    all_documents: bool,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Export(arguments) => export::run(arguments, environment),
        Command::Erase(arguments) => erase::run(arguments, environment),
        Command::Verify(arguments) => check(arguments),
        Command::Report(arguments) => tell(arguments),
        Command::Redact(arguments) => leave_out(arguments),
    }
}

impl TrustArguments {
    fn read(&self) -> Result<Trust, Failure> {
        read_trust(&self.key, &self.witness_key, self.witnesses)
    }
}

pub(crate) fn read_trust(key: &str, witness_keys: &[String], witnesses: Option<usize>) -> Result<Trust, Failure> {
    let trust = trust::read(key, witness_keys, witnesses, |path| std::fs::read(path));
    trust.map_err(|error| match error {
        error if error.is_of_the_machine() => Failure::Environment(error.to_string()),
        error => Failure::Usage(error.to_string()),
    })
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::environment(path.display(), error))
}

/// Evidence is only for those it was given to: nobody else on the machine can read it, and nothing is overwritten.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(|error| Failure::environment(path.display(), error))
}

fn check(arguments: &VerifyArguments) -> Result<(), Failure> {
    let trust = arguments.trust.read()?;
    let verdict = verify(&read(&arguments.bundle)?, &trust);
    match arguments.output.output {
        Output::Json => print_json(&verdict)?,
        Output::Table => print(&verdict.to_text())?,
    }
    concluded(verdict.verdict, arguments.trust.allow_left_out)
}

fn concluded(verdict: Conclusion, allow_left_out: bool) -> Result<(), Failure> {
    match verdict {
        Conclusion::Holds => Ok(()),
        Conclusion::HoldsAsFarAsChecked if allow_left_out => Ok(()),
        Conclusion::HoldsAsFarAsChecked => Err(Failure::NotAllChecked(
            "documents were erased or left out, so not everything could be checked (--allow-left-out accepts that)"
                .into(),
        )),
        Conclusion::DoesNotHold => Err(Failure::Refused("the evidence does not hold".into())),
    }
}

/// The page is generated even if the evidence does not hold or could not be checked completely, and says so; so does
/// the exit code.
fn tell(arguments: &ReportArguments) -> Result<(), Failure> {
    let trust = arguments.trust.read()?;
    let bundle = read(&arguments.bundle)?;
    let page = report(&bundle, &trust).map_err(|verdict| Failure::Refused(verdict.sentence()))?;
    match &arguments.out {
        Some(path) => write_new(path, page.as_bytes())?,
        None => print(&page)?,
    }
    concluded(verify(&bundle, &trust).verdict, arguments.trust.allow_left_out)
}

fn leave_out(arguments: &RedactArguments) -> Result<(), Failure> {
    let redaction = if arguments.all_documents {
        Redaction::All
    } else {
        Redaction::Documents(arguments.document.iter().cloned().collect())
    };
    let (smaller, left_out) =
        redact(&read(&arguments.bundle)?, &redaction).map_err(|error| Failure::Refused(error.to_string()))?;
    write_new(&arguments.out, &smaller)?;
    match arguments.output.output {
        Output::Json => print_json(&serde_json::json!({ "left_out": left_out })),
        Output::Table => {
            let lines: String = left_out.iter().map(|path| format!("{path} left out\n")).collect();
            print(&format!("{lines}{} written; the log's signature stays valid\n", arguments.out.display()))
        }
    }
}
