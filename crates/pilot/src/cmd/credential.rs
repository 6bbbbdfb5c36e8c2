//! `pilot credential`: creates tokens with their digests, and edits and checks the credential file.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use pilot_core::actor::{Actor, ActorId};
use pilot_core::credentials::{Credential, CredentialId, Credentials, Schema};
use pilot_core::digest::Fingerprint;
use pilot_core::role::Role;
use pilot_core::token::Token;
use pilot_ledger::clock::Clock;
use pilot_setup::private_file;
use pilot_setup::random;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::files::{FileArguments, Files, list_faults, lock, read_credentials, read_role_map, write_credentials};
use crate::output::{Output, OutputArguments, note, print, print_json};

mod convert;
mod life;
mod trust;
mod view;

pub(crate) use life::LifeArguments;
use view::{CredentialView, print_list};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Create a token, add its digest to the credential file, and show the token once
    New(NewArguments),
    /// Remove a credential; its token is refused after the next restart
    Remove(RemoveArguments),
    /// List the credentials by actor, role and fingerprint; never a digest
    List(ListArguments),
    /// Check the credential file, and compare it with the role map
    Check(ListArguments),
    /// After a restore with a loss: accept older credentials although their revocation may be lost
    Trust(trust::Arguments),
    /// Convert a file from schema_version 1 to schema_version 2, which production reads; every token keeps working
    Convert(convert::Arguments),
}

#[derive(clap::Args)]
pub(crate) struct NewArguments {
    /// The accountable person or machine
    #[arg(long, value_name = "ACTOR_ID")]
    actor: ActorId,
    /// initiator, approver, security_admin, executor or auditor
    #[arg(long)]
    role: Role,
    /// Write the token to this new file (mode 0600) instead of showing it
    #[arg(long, value_name = "FILE")]
    token_out: Option<PathBuf>,
    /// The format of a new file: 1 for a pilot, 2 for production, where credentials expire [default: what the
    /// configuration reads]
    #[arg(long, value_name = "VERSION", value_parser = schema_version)]
    schema_version: Option<Schema>,
    #[command(flatten)]
    life: LifeArguments,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    output: OutputArguments,
}

fn schema_version(text: &str) -> Result<Schema, &'static str> {
    match text {
        "1" => Ok(Schema::One),
        "2" => Ok(Schema::Two),
        _ => Err("use 1 (credentials do not expire) or 2 (credentials expire)"),
    }
}

#[derive(clap::Args)]
pub(crate) struct RemoveArguments {
    /// The credential's fingerprint, as `pilot credential list` shows it
    #[arg(long, value_name = "HEX", required_unless_present = "actor")]
    fingerprint: Option<String>,
    /// Remove every credential of this actor
    #[arg(long, value_name = "ACTOR_ID", conflicts_with = "fingerprint")]
    actor: Option<ActorId>,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::New(arguments) => new(arguments, environment),
        Command::Remove(arguments) => remove(&arguments, environment),
        Command::List(arguments) => list(&arguments, environment),
        Command::Check(arguments) => check(&arguments, environment),
        Command::Trust(arguments) => trust::run(&arguments, environment),
        Command::Convert(arguments) => convert::run(&arguments, environment),
    }
}

fn new(arguments: NewArguments, environment: &Environment) -> Result<(), Failure> {
    let files = arguments.files.find(environment)?;
    let path = files.editable()?;
    let actor = Actor::new(arguments.actor.clone(), arguments.role);
    check_role_map(files.role_map.as_deref(), &actor)?;
    let _lock = lock(path)?;
    let before = if path.exists() {
        let before = read_credentials(path)?;
        if let Some(asked) = arguments.schema_version.filter(|asked| *asked != before.schema()) {
            let (path, asked, has) = (path.display(), asked.version(), before.schema().version());
            let remedy = "name a new file, or see `pilot credential convert`";
            return Err(Failure::Usage(format!("{path}: has schema_version {has}, not {asked}; {remedy}")));
        }
        before
    } else {
        Credentials::new(schema_of_new_file(&arguments, &files, path)?, Vec::new())
    };
    let mut entries = before.entries().to_vec();
    let token = Token::generate(&random::bytes()?);
    let credential = arguments.life.credential(before.schema(), actor, &token, Clock::System.now())?;
    entries.push(credential.clone());
    let new = NewToken::keep(token, credential, arguments.token_out)?;
    write_credentials(path, before.schema(), entries)?;
    new.hand_over(arguments.output.output)?;
    note("It takes effect when the service is started or restarted.")
}

/// What the service will read. If nothing says which profile that is, it is not guessed: with the other format the
/// service would not start.
fn schema_of_new_file(arguments: &NewArguments, files: &Files, path: &Path) -> Result<Schema, Failure> {
    let schema = arguments.schema_version.or(files.schema).or_else(|| arguments.life.schema());
    schema.ok_or_else(|| {
        let path = path.display();
        Failure::Usage(format!(
            "{path}: is a new file; name the service that will read it with --config pilot.toml, or give \
             --schema-version 1 (a pilot) or --schema-version 2 (production, where credentials expire)"
        ))
    })
}

/// With a credential that the role map does not cover, the service would not start, so it is not created.
fn check_role_map(role_map: Option<&Path>, actor: &Actor) -> Result<(), Failure> {
    let Some(path) = role_map else { return Ok(()) };
    match read_role_map(path)?.role_of(&actor.actor_id) {
        Some(role) if role == actor.role => Ok(()),
        Some(role) => {
            let (path, Actor { actor_id, role: asked, .. }) = (path.display(), actor);
            let refused = format!("{path} approves the role {role} for {actor_id}, not {asked}; nothing was changed");
            Err(Failure::Refused(refused))
        }
        None => Err(Failure::Refused(format!(
            "{} does not list {}; have the actor approved there first: {{\"actor_id\":\"{}\",\"role\":\"{}\"}}",
            path.display(),
            actor.actor_id,
            actor.actor_id,
            actor.role
        ))),
    }
}

/// A token on its way to its actor. Until it is handed over, everything that has happened can be undone.
pub(crate) struct NewToken {
    token: Zeroizing<String>,
    credential: Credential,
    file: Option<PathBuf>,
    is_handed_over: bool,
}

impl NewToken {
    /// Puts the token into its own new file first, when one was asked for: a digest in the credential file whose token
    /// nobody has would be useless.
    pub(crate) fn keep(token: Token, credential: Credential, file: Option<PathBuf>) -> Result<NewToken, Failure> {
        let token = token.hand_over();
        if let Some(path) = &file {
            let written = private_file::write_new(path, format!("{}\n", *token).as_bytes());
            written.map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    Failure::Usage(format!("{}: already exists; name a new file. Nothing was changed", path.display()))
                }
                _ => Failure::environment(path.display(), error),
            })?;
        }
        Ok(NewToken { token, credential, file, is_handed_over: false })
    }

    /// Shows the token, the only time anyone sees it, or says where it is.
    pub(crate) fn hand_over(mut self, output: Output) -> Result<(), Failure> {
        self.is_handed_over = true;
        let view = CredentialView::from(&self.credential);
        let digest = self.credential.digest.to_hex();
        let shown = self.file.is_none().then_some(self.token.as_str());
        if output == Output::Json {
            return print_json(&NewView { credential: view, token_sha3_256: digest, token: shown });
        }
        let place = self.file.as_ref().map_or_else(|| self.token.as_str().into(), |path| path.to_string_lossy());
        let expires_at = view.expires_at.map(|expires_at| expires_at.to_string());
        let rows = [
            ("actor", Some(view.actor_id.as_str())),
            ("role", Some(view.role.as_str())),
            ("credential", view.credential_id.as_ref().map(CredentialId::as_str)),
            ("fingerprint", Some(&view.fingerprint)),
            ("expires at", expires_at.as_deref()),
            ("digest", Some(&digest)),
            (if shown.is_some() { "token" } else { "token in" }, Some(&place)),
        ];
        let rows = rows.into_iter().filter_map(|(name, value)| Some(format!("{name:<13}{}\n", value?)));
        print(&rows.collect::<String>())?;
        if shown.is_some() && std::io::stdout().is_terminal() {
            note("The token is shown only once. Give it to the actor through an approved secret channel.")?;
        }
        Ok(())
    }
}

impl Drop for NewToken {
    fn drop(&mut self) {
        if let Some(path) = self.file.as_ref().filter(|_| !self.is_handed_over) {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[derive(Serialize)]
struct NewView<'a> {
    #[serde(flatten)]
    credential: CredentialView,
    token_sha3_256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

fn remove(arguments: &RemoveArguments, environment: &Environment) -> Result<(), Failure> {
    let files = arguments.files.find(environment)?;
    let fingerprint = arguments.fingerprint.as_deref().map(parse_fingerprint).transpose()?;
    let path = files.editable()?;
    let _lock = lock(path)?;
    let before = read_credentials(path)?;
    let is_meant = |credential: &Credential| match (&fingerprint, &arguments.actor) {
        (Some(fingerprint), _) => credential.digest.fingerprint() == *fingerprint,
        (None, Some(actor)) => credential.actor.actor_id == *actor,
        (None, None) => false,
    };
    let (removed, kept): (Vec<_>, Vec<_>) = before.entries().iter().cloned().partition(is_meant);
    if removed.is_empty() {
        return Err(Failure::Refused("no such credential; `pilot credential list` shows them".into()));
    }
    if kept.is_empty() {
        return Err(Failure::Refused("this would leave no credential at all, and the service would not start".into()));
    }
    write_credentials(path, before.schema(), kept)?;
    let removed: Vec<_> = removed.iter().map(CredentialView::from).collect();
    match arguments.output.output {
        Output::Json => print_json(&serde_json::json!({ "removed": removed }))?,
        Output::Table => {
            for view in removed {
                print(&format!("removed {} of {} ({})\n", view.fingerprint, view.actor_id, view.role))?;
            }
        }
    }
    note("It takes effect when the service is restarted.")
}

fn parse_fingerprint(text: &str) -> Result<Fingerprint, Failure> {
    Fingerprint::from_hex(text)
        .ok_or_else(|| Failure::Usage("a fingerprint is 16 lowercase hexadecimal characters".into()))
}

fn list(arguments: &ListArguments, environment: &Environment) -> Result<(), Failure> {
    let files = arguments.files.find(environment)?;
    let parsed = Credentials::parse_either(&files.fetch()?.bytes);
    let credentials = parsed.map_err(|faults| Failure::Usage(list_faults(&files.source, &faults)))?;
    print_list(&credentials, arguments.output.output)
}

fn check(arguments: &ListArguments, environment: &Environment) -> Result<(), Failure> {
    let files = arguments.files.find(environment)?;
    let refuse = |faults: Vec<_>| Failure::Refused(list_faults(&files.source, &faults));
    let fetched = files.fetch()?;
    let credentials = (files.format)(&fetched.bytes).map_err(refuse)?;
    if let Some(exposed) = &fetched.exposed {
        note(&format!("warning: {exposed}"))?;
    }
    let compared = match &files.role_map {
        None => "not compared with a role map",
        Some(path) => {
            let faults = credentials.check_against(&read_role_map(path)?);
            if !faults.is_empty() {
                return Err(refuse(faults));
            }
            "agrees with the role map"
        }
    };
    let count = credentials.entries().len();
    match arguments.output.output {
        Output::Json => print_json(&serde_json::json!({ "credentials": count, "role_map": compared })),
        Output::Table => print(&format!("{}: {count} credential(s), no fault; {compared}\n", files.source)),
    }
}
