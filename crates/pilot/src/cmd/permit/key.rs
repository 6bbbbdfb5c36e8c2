//! `pilot permit key`: replaces the key that signs permit tokens, without a moment in which targets know none.

use std::path::PathBuf;

use pilot_setup::config::Config;
use pilot_setup::permit_key::{self, PermitKeyError, PermitKeys};
use pilot_setup::private_file;
use serde_json::json;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::files::{lock, refuse_root};
use crate::output::{Output, OutputArguments, print, print_json, table};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show the keys, and which one signs
    List(ConfigArguments),
    /// Add a second key: published from the next start on, but not used yet
    New(ConfigArguments),
    /// Let a key sign from the next start on; the other stays published
    Use(KeyArguments),
    /// Remove a key that no longer signs
    Retire(KeyArguments),
}

#[derive(clap::Args)]
pub(crate) struct ConfigArguments {
    /// The configuration of the installation
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct KeyArguments {
    /// The key's id, as `pilot permit key list` shows it
    // One id in 64 begins with a hyphen: it is base64url.
    #[arg(allow_hyphen_values = true)]
    key_id: String,
    #[command(flatten)]
    of: ConfigArguments,
}

pub(super) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::List(of) => show(of, &permit_key::load(&path(of, environment)?)?, ""),
        Command::New(of) => {
            let next = "Restart the service, on every node with the same permit.key. When targets have read the new key \
                        (they keep the old list for five minutes or more), run `pilot permit key use KEY-ID`.";
            change(of, environment, PermitKeys::with_new, next)
        }
        Command::Use(KeyArguments { key_id, of }) => {
            let next = "Restart the service, on every node with the same permit.key. An hour later, when the last token \
                        by the other key has expired, run `pilot permit key retire` for that one.";
            change(of, environment, |keys| keys.using(key_id), next)
        }
        Command::Retire(KeyArguments { key_id, of }) => {
            let next = "Restart the service, on every node with the same permit.key.";
            change(of, environment, |keys| keys.without(key_id), next)
        }
    }
}

fn path(of: &ConfigArguments, environment: &Environment) -> Result<PathBuf, Failure> {
    let config = Config::load(&of.config, environment.variables())?;
    refuse_root(&config)?;
    let path = config.permit_key_path();
    if !path.exists() {
        return Err(Failure::Usage(format!(
            "{}: does not exist; the service creates it at its first start with [permits] in its configuration",
            path.display()
        )));
    }
    Ok(path)
}

fn change(
    of: &ConfigArguments,
    environment: &Environment,
    change: impl FnOnce(PermitKeys) -> Result<PermitKeys, PermitKeyError>,
    next: &str,
) -> Result<(), Failure> {
    let path = path(of, environment)?;
    let _lock = lock(&path)?;
    let keys = change(permit_key::load(&path)?).map_err(|error| Failure::Refused(error.to_string()))?;
    let written = private_file::replace(&path, keys.to_text().as_bytes());
    written.map_err(|error| Failure::environment(path.display(), error))?;
    show(of, &keys, next)
}

fn show(of: &ConfigArguments, keys: &PermitKeys, next: &str) -> Result<(), Failure> {
    let does = |id: &String| if id == keys.signing_id() { "signs" } else { "is published" };
    let keys: Vec<_> = keys.ids().into_iter().map(|id| (does(&id), id)).collect();
    match of.output.output {
        Output::Json => {
            let keys: Vec<_> = keys.iter().map(|(does, id)| json!({"key_id": id, "signs": *does == "signs"})).collect();
            print_json(&json!({ "keys": keys }))
        }
        Output::Table => {
            let rows = keys.into_iter().map(|(does, id)| vec![id, does.to_owned()]);
            let next = if next.is_empty() { String::new() } else { format!("\n{next}\n") };
            print(&(table(&["key id", "it"], rows) + &next))
        }
    }
}
