//! `pilot log checkpoint`: the signed head of a log, from the service or from the second place.

use std::path::PathBuf;

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::cosignature::CosignerVerifier;
use pilot_evidence::note::{Note, VerifierKey};
use pilot_ledger::second_place;
use pilot_setup::config::Config;
use pilot_setup::log_key;

use crate::client::{Client, ClientArguments};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Read the checkpoint in the second place of this configuration, instead of asking the service
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "token_file"])]
    config: Option<PathBuf>,
    /// The log's verifier key; without it the signature of a service's answer is not checked
    #[arg(long, value_name = "VERIFIER KEY")]
    key: Option<String>,
    /// A witness that must have cosigned; may be repeated
    #[arg(long, value_name = "VERIFIER KEY")]
    witness: Vec<String>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let (note, own_key) = match &arguments.config {
        Some(path) => kept(&Config::load(path, environment.variables())?)?,
        None => (asked(&arguments.client, environment)?, None),
    };
    let key = match &arguments.key {
        Some(line) => Some(VerifierKey::parse(line).map_err(|error| Failure::Usage(format!("--key: {error}")))?),
        None => own_key,
    };
    let wrong = |error: &dyn std::fmt::Display| Failure::Refused(format!("the checkpoint does not verify: {error}"));
    let opened = Note::parse(&note).map_err(|error| wrong(&error))?;
    let checkpoint = match &key {
        Some(key) => Checkpoint::open(&note, key),
        None => Checkpoint::parse(opened.text),
    };
    let checkpoint = checkpoint.map_err(|error| wrong(&error))?;
    for line in &arguments.witness {
        let witness = CosignerVerifier::parse(line).map_err(|error| Failure::Usage(format!("--witness: {error}")))?;
        witness.verify(&opened).map_err(|error| wrong(&format!("witness {}: {error}", witness.name)))?;
    }
    match arguments.output.output {
        Output::Table => print(&note),
        Output::Json => print_json(&serde_json::json!({
            "origin": checkpoint.origin,
            "size": checkpoint.size,
            "root": checkpoint.root.to_base64(),
            "verified": key.is_some(),
            "signed_by": opened.signatures.iter().map(|line| line.name).collect::<Vec<_>>(),
            "note": note,
        })),
    }
}

fn kept(config: &Config) -> Result<(String, Option<VerifierKey>), Failure> {
    let path = config.checkpoint_path();
    let note = second_place::read(&path).map_err(|error| Failure::environment(path.display(), error))?;
    let note = note.ok_or_else(|| Failure::Refused(format!("{}: there is no checkpoint yet", path.display())))?;
    // A user who can read the checkpoint may not be allowed to read the key.
    let key = log_key::verifier(config).ok();
    Ok((note, key))
}

fn asked(arguments: &ClientArguments, environment: &Environment) -> Result<String, Failure> {
    Client::new(arguments, environment)?.get("/v1/log/checkpoint")?.text()
}
