//! `pilot rotation report` from the ledger: what verified evidence says about credentials.

use std::path::{Path, PathBuf};

use pilot_core::actor::ActorId;
use pilot_evidence::bundle::Scope;
use pilot_evidence::credentials::{CredentialEvent, tell};
use pilot_evidence::verify::trust::Given;
use pilot_evidence::verify::{About, Trust, Verdict};
use pilot_setup::config::Config;
use pilot_setup::log_key;
use serde_json::json;

use crate::client::query::encode;
use crate::client::{Client, ClientArguments};
use crate::cmd::evidence::{read, read_trust, write_new};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, print, print_json, table};

#[derive(clap::Args)]
pub(super) struct EvidenceArguments {
    /// Report from the ledger, from this time on: 2026-11-01T00:00:00Z. Needs an auditor's token
    #[arg(long, value_name = "TIME", requires = "to")]
    from: Option<String>,
    /// And before this time
    #[arg(long, value_name = "TIME", requires = "from")]
    to: Option<String>,
    /// Report from this evidence bundle of a period, without asking the service
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    bundle: Option<PathBuf>,
    /// Keep the verified bundle here, for others to verify
    #[arg(long, value_name = "FILE", requires = "from")]
    bundle_out: Option<PathBuf>,
    /// The log's verifier key, as `pilot log key` prints it, or a file with that line [default: the configuration's own]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    client: ClientArguments,
}

impl EvidenceArguments {
    pub(super) fn is_asked_for(&self) -> bool {
        self.from.is_some() || self.bundle.is_some()
    }

    /// A key on its own would silently verify nothing.
    pub(super) fn check_alone(&self) -> Result<(), Failure> {
        match self.key {
            Some(_) => Err(Failure::Usage("--key is for evidence: give --from and --to, or --bundle".into())),
            None => Ok(()),
        }
    }
}

pub(super) fn report(
    arguments: &EvidenceArguments,
    actor: Option<&ActorId>,
    config: Option<&Path>,
    output: Output,
    environment: &Environment,
) -> Result<(), Failure> {
    let trust = whom_to_trust(arguments, config, environment)?;
    if let Some(out) = arguments.bundle_out.as_ref().filter(|out| out.exists()) {
        return Err(Failure::Usage(format!("{}: already exists; name a new file", out.display())));
    }
    let bundle = match &arguments.bundle {
        Some(path) => read(path)?,
        None => fetch(arguments, environment)?,
    };
    let (verdict, mut events) = tell(&bundle, &trust);
    let about = held(&verdict)?;
    if let Some(out) = &arguments.bundle_out {
        write_new(out, &bundle)?;
    }
    events.retain(|event| actor.is_none_or(|actor| event.credential.actor_id.as_ref() == Some(actor)));
    match output {
        Output::Json => print_json(&json!({ "events": events, "verified": about })),
        Output::Table => print(&(rows(&events) + &summary(about, arguments))),
    }
}

/// The key that was given, or the ledger's own if the user can read it.
fn whom_to_trust(
    arguments: &EvidenceArguments,
    config: Option<&Path>,
    environment: &Environment,
) -> Result<Trust, Failure> {
    if let Some(key) = &arguments.key {
        return read_trust(Given { key: Some(key), ..Given::default() });
    }
    let here = Path::new("pilot.toml");
    let Some(path) = config.or_else(|| here.exists().then_some(here)) else {
        let remedy = "--key KEY, the line that `pilot log key` prints, from someone you trust";
        return Err(Failure::Usage(format!("the key to verify the evidence with is missing: give {remedy}")));
    };
    let config = Config::load(path, environment.variables())?;
    let key = log_key::verifier(&config);
    let key = key.map_err(|error| Failure::Usage(format!("{error}; or name the verifier key with --key")))?;
    Ok(Trust::log(key))
}

/// Without documents: they are about items, and none is needed here.
fn fetch(arguments: &EvidenceArguments, environment: &Environment) -> Result<Vec<u8>, Failure> {
    let (from, to) = (arguments.from.as_deref().unwrap_or_default(), arguments.to.as_deref().unwrap_or_default());
    let path = format!("/v1/evidence?from={}&to={}&documents=none", encode(from), encode(to));
    let mut bundle = Vec::new();
    Client::new(&arguments.client, environment)?.download(&path, |_, bytes| {
        bundle.extend_from_slice(bytes);
        Ok(())
    })?;
    Ok(bundle)
}

/// Reports only from evidence that holds and is complete for its period.
fn held(verdict: &Verdict) -> Result<&About, Failure> {
    match &verdict.about {
        Some(about) if verdict.holds && matches!(about.scope, Scope::Period { .. }) => Ok(about),
        Some(_) if verdict.holds => Err(Failure::Usage(
            "this bundle is about an item; a report of credentials needs one about a period: `pilot evidence export --from … --to …`".into(),
        )),
        _ => Err(Failure::Refused(format!("{}\nthe evidence does not hold, so nothing is reported from it", verdict.to_text()))),
    }
}

fn rows(events: &[CredentialEvent]) -> String {
    if events.is_empty() {
        return "nothing happened to credentials in this time\n".to_owned();
    }
    let rows = events.iter().map(|event| {
        let text = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        vec![
            event.at.to_string(),
            text(event.credential.actor_id.as_ref().map(ToString::to_string)),
            text(event.credential.name().map(ToString::to_string)),
            event.words(),
            event.entry.to_string(),
        ]
    });
    table(&["time", "actor", "credential", "what", "entry"], rows)
}

fn summary(about: &About, arguments: &EvidenceArguments) -> String {
    let Scope::Period { first, end, .. } = &about.scope else { return String::new() };
    let what = match end.saturating_sub(*first) {
        0 => "no entry".to_owned(),
        1 => format!("entry {first}"),
        _ => format!("entries {first} to {}", end.saturating_sub(1)),
    };
    let kept = arguments.bundle_out.as_ref().map(|out| format!("; the evidence is in {}", out.display()));
    format!("\nverified: {what} of {}, none missing{}\n", about.origin, kept.unwrap_or_default())
}
