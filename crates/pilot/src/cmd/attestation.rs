//! `pilot attestation`: a signed statement about an item's outcome, for pipelines. Checking it needs no network and no
//! service.

use std::io::{Read as _, stdin};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use pilot_core::item::ItemId;
use pilot_core::workflow::Span;
use pilot_evidence::attestation::{Envelope, Statement};
use pilot_evidence::verify::CLOCK_TOLERANCE;
use pilot_evidence::verify::trust::Given;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::client::{Client, ClientArguments};
use crate::cmd::evidence::{read, read_trust};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json, table};
use crate::part::Part;
use crate::permit::now;

/// An envelope names a few people and artifacts. Nothing larger is one.
const ENVELOPE_BYTES_MAX: u64 = 1024 * 1024;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Download a statement about an item: an in-toto statement in a DSSE envelope, signed by the log
    Get(GetArguments),
    /// Check such a statement offline, and that it says what is required
    Verify(VerifyArguments),
}

#[derive(clap::Args)]
pub(crate) struct GetArguments {
    /// The item's id
    item: ItemId,
    /// Where to write it; an existing file is replaced [default: attestation-ID.json, here]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct VerifyArguments {
    /// The statement, or - for standard input
    attestation: PathBuf,
    /// The log's verifier key, as `pilot log key` prints it, or a file with that line
    #[arg(long, value_name = "KEY")]
    key: String,
    /// The state the item must be in
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// The workflow the item must belong to
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// The digest of the definition the item must have been decided by, sha256:…
    #[arg(long, value_name = "DIGEST")]
    definition: Option<String>,
    /// A file that must be among the artifacts of the operation, by its SHA-256; may be repeated
    #[arg(long, value_name = "FILE", requires = "state")]
    artifact: Vec<PathBuf>,
    /// Accept an item that someone holds
    #[arg(long)]
    allow_held: bool,
    /// The age from which on it is refused, such as 10m or 24h
    #[arg(long, value_name = "DURATION")]
    max_age: Option<Span>,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Get(arguments) => get(arguments, environment),
        Command::Verify(arguments) => verify(arguments),
    }
}

fn get(arguments: &GetArguments, environment: &Environment) -> Result<(), Failure> {
    let item = &arguments.item;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("attestation-{item}.json")));
    let client = Client::new(&arguments.client, environment)?;
    let mut part = Part::create(&out)?;
    client.download(&format!("/v1/items/{item}/attestation"), |_, piece| part.write(piece))?;
    part.finish(&out)?;
    match arguments.output.output {
        Output::Json => print_json(&json!({ "attestation": out })),
        Output::Table => print(&format!("{}\n", out.display())),
    }
}

fn verify(arguments: &VerifyArguments) -> Result<(), Failure> {
    let trust = read_trust(Given { key: Some(&arguments.key), ..Given::default() })?;
    let statement = Envelope::open(&envelope(&arguments.attestation)?, &trust.key);
    let statement = statement.map_err(|error| Failure::Refused(error.to_string()))?;
    let wrong = required(arguments, &statement)?;
    match arguments.output.output {
        Output::Json => print_json(&statement)?,
        Output::Table => print(&words(&statement))?,
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Refused(wrong.join("; "))) }
}

fn envelope(path: &Path) -> Result<Vec<u8>, Failure> {
    if path != Path::new("-") {
        return read(path);
    }
    let mut bytes = Vec::new();
    let read = stdin().take(ENVELOPE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| Failure::environment("standard input", error))?;
    Ok(bytes)
}

/// What is required and not so.
fn required(arguments: &VerifyArguments, statement: &Statement) -> Result<Vec<String>, Failure> {
    let outcome = &statement.predicate;
    let mut wrong = Vec::new();
    if let Some(state) = arguments.state.as_ref().filter(|state| **state != *outcome.state) {
        wrong.push(format!("the item is in the state {}, and {state} is required", outcome.state));
    }
    if let Some(name) = arguments.workflow.as_ref().filter(|name| **name != *outcome.workflow.name) {
        wrong.push(format!("the item belongs to {}, and {name} is required", outcome.workflow.name));
    }
    if let Some(digest) = arguments.definition.as_ref().filter(|digest| **digest != *outcome.workflow.digest) {
        wrong.push(format!("its definition is {}, and {digest} is required", outcome.workflow.digest));
    }
    if outcome.held && !arguments.allow_held {
        wrong.push("the item is held; --allow-held accepts that".to_owned());
    }
    for path in &arguments.artifact {
        let found = HEXLOWER.encode(&Sha256::digest(read(path)?));
        // The first subject is the item's content.
        if !statement.subject.iter().skip(1).any(|subject| subject.digest.sha256 == found) {
            wrong.push(format!("{} is not among its artifacts: its sha256 is {found}", path.display()));
        }
    }
    let now = now()?;
    if outcome.attested_at > now.plus(CLOCK_TOLERANCE) {
        wrong.push(format!("it is dated {}, which is in the future", outcome.attested_at));
    }
    let age = now.since(outcome.attested_at);
    if let Some(max) = arguments.max_age.as_ref().filter(|max| age > max.length) {
        wrong.push(format!("it was made at {}, which is longer ago than {max}", outcome.attested_at));
    }
    Ok(wrong)
}

fn words(statement: &Statement) -> String {
    let outcome = &statement.predicate;
    let people: Vec<_> = outcome.people.iter().map(|actor| format!("{} ({})", actor.actor_id, actor.role)).collect();
    let votes: Vec<_> = outcome.votes.iter().map(|vote| format!("{} by {}", vote.action, vote.actor_id)).collect();
    let state = match (outcome.is_final, outcome.held) {
        (true, _) => format!("{}, final", outcome.state),
        (false, true) => format!("{}, held", outcome.state),
        (false, false) => outcome.state.to_string(),
    };
    let mut rows = vec![
        vec!["item".to_owned(), outcome.item.to_string()],
        vec!["workflow".to_owned(), format!("{} v{}", outcome.workflow.name, outcome.workflow.version)],
        vec!["state".to_owned(), format!("{state}, since {}", outcome.entered_at)],
        vec!["people".to_owned(), people.join(", ")],
        vec!["votes".to_owned(), votes.join(", ")],
        vec![
            "made".to_owned(),
            format!("{}, log {} with {} entries", outcome.attested_at, outcome.log.origin, outcome.log.size),
        ],
    ];
    for subject in &statement.subject {
        rows.push(vec!["subject".to_owned(), format!("{} sha256:{}", subject.name, subject.digest.sha256)]);
    }
    table(&["WHAT", "VALUE"], rows)
}
