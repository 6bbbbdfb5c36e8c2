//! `pilot evidence`: what an auditor does with a bundle. Checking one needs no network and no service.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use pilot_core::document::ContentDigest;
use pilot_evidence::audit::{Sampling, Tables, tables_from};
use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::bundle::source::Source;
use pilot_evidence::report::report_from;
use pilot_evidence::verify::trust::{self, Given};
use pilot_evidence::verify::{Gap, Stage, Trust, Verdict, predecessor, verify_from};

use crate::authority::authorities;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, ProgressLine, print, print_json, table};

mod erase;
mod export;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Export a bundle from the service, for an item or a period
    Export(export::Arguments),
    /// Check a bundle: integrity, completeness, and whether everything in it happened by the rules
    Verify(VerifyArguments),
    /// Turn a bundle into a readable page, one self-contained HTML file, or into tables for a spreadsheet
    Report(ReportArguments),
    /// Erase what people wrote about an item that has ended; the service must be stopped, and the item's proofs remain valid
    Erase(erase::Arguments),
    /// Leave documents out of a bundle; the rest still proves everything that does not depend on them
    Redact(RedactArguments),
}

#[derive(clap::Args)]
pub(crate) struct TrustArguments {
    /// The log's verifier key, as `pilot log key` prints it, or a file with that line
    #[arg(long, value_name = "KEY", required_unless_present = "policy")]
    key: Option<String>,
    /// A witness's verifier key, given the same way; may be repeated
    #[arg(long, value_name = "KEY")]
    witness_key: Vec<String>,
    /// How many of these witnesses must have signed [default: all of them]
    #[arg(long, value_name = "N")]
    witnesses: Option<usize>,
    /// A policy (C2SP tlog-policy) in place of these options: logs, witnesses, groups of them, and a quorum
    #[arg(long, value_name = "FILE", conflicts_with_all = ["witness_key", "witnesses"])]
    policy: Option<PathBuf>,
    /// The certificate of the CA that certifies a timestamping authority, as PEM: its timestamps date checkpoints; may
    /// be repeated
    #[arg(long, value_name = "FILE")]
    tsa: Vec<PathBuf>,
    /// A definition, or its digest: items must have moved by one of these; may be repeated
    #[arg(long, value_name = "FILE|DIGEST")]
    definition: Vec<String>,
    /// A role map, or its digest: one of these must have been in force; may be repeated
    #[arg(long, value_name = "FILE|DIGEST")]
    role_map: Vec<String>,
    /// A checkpoint of the log that you kept: the log must continue it
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The bundle of the previous period, which this one must follow; may be repeated, the oldest first
    #[arg(long, value_name = "FILE")]
    after: Vec<PathBuf>,
    /// Exit with 4 if anything at all was not checked
    #[arg(long)]
    strict: bool,
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
    /// Where to write the page [default: standard output, or nowhere with --csv]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write tables into this new directory: checks, exceptions, items, moves and access, as CSV
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Also draw this many items, as samples.csv; the same seed always draws the same items
    #[arg(long, value_name = "N", requires = "csv", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// What to draw by; choose it after you received the bundle [default: the root of the bundle's checkpoint]
    #[arg(long, value_name = "TEXT", requires = "sample")]
    seed: Option<String>,
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
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let (policy, checkpoint) = (path(&self.policy), path(&self.checkpoint));
        let mut trust = read_trust(Given {
            key: self.key.as_deref(),
            witness_keys: &self.witness_key,
            witnesses: self.witnesses,
            policy: policy.as_deref(),
            definitions: &self.definition,
            role_maps: &self.role_map,
            checkpoint: checkpoint.as_deref(),
            strict: self.strict,
        })?;
        if !self.tsa.is_empty() {
            trust.authorities = Some(authorities(&self.tsa)?);
        }
        for earlier in &self.after {
            let previous = predecessor(&bundle(earlier)?, &trust.earlier(), &mut watch());
            let previous = previous.map_err(|error| Failure::environment(earlier.display(), error))?;
            let wrong =
                |verdict: Box<Verdict>| Failure::Refused(format!("{}: {}", earlier.display(), verdict.sentence()));
            trust.pins.after = Some(previous.map_err(wrong)?);
        }
        Ok(trust)
    }
}

pub(crate) fn read_trust(given: Given<'_>) -> Result<Trust, Failure> {
    let trust = trust::read(given, |path| std::fs::read(path));
    trust.map_err(|error| match error {
        error if error.is_of_the_machine() => Failure::Environment(error.to_string()),
        error => Failure::Usage(error.to_string()),
    })
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::environment(path.display(), error))
}

/// A bundle, read when it is needed: it may be larger than the memory of this machine. A pipe can be read only once.
fn bundle(path: &Path) -> Result<Source<'static>, Failure> {
    let opened = File::open(path).and_then(|mut file| {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Ok(bytes.into());
        }
        let read_at = move |at: u64, buffer: &mut [u8]| file.read_exact_at(buffer, at);
        Ok(Source::Elsewhere { length: metadata.len(), read_at: Box::new(read_at) })
    });
    opened.map_err(|error| Failure::environment(path.display(), error))
}

/// Shows how far a verification is, in percent.
fn watch() -> impl FnMut(Stage, u64, u64) {
    let (line, mut shown) = (ProgressLine::default(), None);
    move |stage, done, total| {
        let now = (stage, done.saturating_mul(100) / total.max(1));
        if shown.replace(now) != Some(now) {
            let what = match stage {
                Stage::Reading => "reading the bundle",
                Stage::Replaying => "asking the rules again",
            };
            line.show(&format!("{what}: {} %", now.1));
        }
    }
}

/// Evidence is only for those it was given to: nobody else on the machine can read it, and nothing is overwritten.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(|error| Failure::environment(path.display(), error))
}

fn check(arguments: &VerifyArguments) -> Result<(), Failure> {
    let trust = arguments.trust.read()?;
    let verdict = verified(&arguments.bundle, &trust)?;
    match arguments.output.output {
        Output::Json => print_json(&verdict)?,
        Output::Table => print(&verdict.to_text())?,
    }
    concluded(&verdict, arguments.trust.allow_left_out)
}

fn verified(path: &Path, trust: &Trust) -> Result<Verdict, Failure> {
    let verdict = verify_from(&bundle(path)?, trust, &mut watch());
    verdict.map_err(|error| Failure::environment(path.display(), error))
}

fn concluded(verdict: &Verdict, allow_left_out: bool) -> Result<(), Failure> {
    match (verdict.exit_code(allow_left_out), verdict.gaps.contains(&Gap::LeftOut)) {
        (0, _) => Ok(()),
        (4, is_left_out) => {
            let hint = if is_left_out { " (--allow-left-out accepts missing documents)" } else { "" };
            Err(Failure::NotAllChecked(format!("not everything could be checked: {}{hint}", verdict.reservations())))
        }
        _ => Err(Failure::Refused("the evidence does not hold".into())),
    }
}

/// Page and tables are written even if the evidence does not hold or could not be checked completely, and say so; so
/// does the exit code.
fn tell(arguments: &ReportArguments) -> Result<(), Failure> {
    let trust = arguments.trust.read()?;
    let (path, bundle) = (&arguments.bundle, bundle(&arguments.bundle)?);
    let unreadable = |error| Failure::environment(path.display(), error);
    let refused = |verdict: Box<Verdict>| Failure::Refused(verdict.sentence());
    if let Some(directory) = arguments.csv.as_ref().filter(|directory| directory.exists()) {
        return Err(there_already(directory));
    }
    if arguments.out.is_some() || arguments.csv.is_none() {
        let page = report_from(&bundle, &trust, &mut watch()).map_err(unreadable)?.map_err(refused)?;
        match &arguments.out {
            Some(path) => write_new(path, page.as_bytes())?,
            None => print(&page)?,
        }
    }
    let verdict = match &arguments.csv {
        None => verify_from(&bundle, &trust, &mut watch()).map_err(unreadable)?,
        Some(directory) => {
            let sampling = arguments.sample.map(|count| Sampling {
                count: usize::try_from(count).unwrap_or(usize::MAX),
                seed: arguments.seed.clone(),
            });
            let made = tables_from(&bundle, &trust, sampling.as_ref(), &mut watch()).map_err(unreadable)?;
            let made = made.map_err(refused)?;
            write_tables(directory, &made)?;
            made.verdict
        }
    };
    concluded(&verdict, arguments.trust.allow_left_out)
}

fn there_already(directory: &Path) -> Failure {
    Failure::Usage(format!("{}: already exists; choose another directory with --csv", directory.display()))
}

/// Only for the person who asked, like every other copy of evidence.
fn write_tables(directory: &Path, Tables { verdict, tables, seed }: &Tables) -> Result<(), Failure> {
    DirBuilder::new().mode(0o700).create(directory).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => there_already(directory),
        _ => Failure::environment(directory.display(), error),
    })?;
    for file in tables {
        write_new(&directory.join(file.name), file.text.as_bytes())?;
    }
    let row = |file: &pilot_evidence::audit::Table| {
        vec![directory.join(file.name).display().to_string(), file.rows.to_string()]
    };
    let seed = seed.as_ref().map(|seed| format!("seed {seed}\n")).unwrap_or_default();
    print(&format!("{}{seed}{}\n", table(&["file", "rows"], tables.iter().map(row)), verdict.sentence()))
}

/// A period may have very many documents.
const LEFT_OUT_SHOWN: usize = 20;

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
            let shown = left_out.iter().take(LEFT_OUT_SHOWN);
            let lines: String = shown.map(|path| format!("{path} left out\n")).collect();
            let more = match left_out.len().saturating_sub(LEFT_OUT_SHOWN) {
                0 => String::new(),
                more => format!("and {more} more; --output json has them all\n"),
            };
            print(&format!("{lines}{more}{} written; the log's signature stays valid\n", arguments.out.display()))
        }
    }
}
