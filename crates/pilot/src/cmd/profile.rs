//! `pilot profile`: the services of profiles.toml, and whether they know you.

use pilot_core::actor::Actor;
use serde_json::json;

use crate::client::Client;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, note, print, print_json, table};
use crate::profile::{Profile, Profiles};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List the profiles, and where the token of each comes from
    List(ListArguments),
    /// Ask the service of a profile who you are, with the profile's own token
    Check(CheckArguments),
}

#[derive(clap::Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct CheckArguments {
    /// The profile [default: the default one]
    name: Option<String>,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    let profiles = Profiles::read(environment)?;
    match command {
        Command::List(arguments) => list(&profiles, arguments.output.output),
        Command::Check(arguments) => {
            let chosen = profiles.chosen(arguments.name.as_deref(), environment)?;
            let (profile, _) =
                chosen.ok_or_else(|| Failure::Usage("name a profile: there is no default one".into()))?;
            check(profile, environment, arguments.output.output)
        }
    }
}

fn list(profiles: &Profiles, output: Output) -> Result<(), Failure> {
    let is_default = |profile: &Profile| profiles.default.as_deref() == Some(&*profile.name);
    let token = |profile: &Profile| match (&profile.token, &profile.pair) {
        (Some(source), _) => source.in_words(),
        (None, Some(_)) => "a certificate instead",
        (None, None) => "asked for",
    };
    if output == Output::Json {
        let view = |profile: &Profile| json!({ "name": profile.name, "url": profile.url, "token": token(profile), "is_default": is_default(profile) });
        return print_json(&json!({ "profiles": profiles.all.iter().map(view).collect::<Vec<_>>() }));
    }
    if let (true, Some(path)) = (profiles.all.is_empty(), &profiles.path) {
        note(&format!("{} has no profiles", path.display()))?;
    }
    let row = |profile: &Profile| {
        let mark = if is_default(profile) { "yes" } else { "" };
        vec![profile.name.clone(), profile.url.clone(), token(profile).to_owned(), mark.to_owned()]
    };
    print(&table(&["profile", "url", "token", "default"], profiles.all.iter().map(row)))
}

fn check(profile: &Profile, environment: &Environment, output: Output) -> Result<(), Failure> {
    let actor: Actor = Client::of_profile(profile, environment)?.get("/v1/session")?.read()?;
    match output {
        Output::Json => print_json(&json!({ "profile": profile.name, "actor_id": actor.actor_id, "role": actor.role })),
        Output::Table => {
            let row = vec![profile.name.clone(), actor.actor_id.to_string(), actor.role.to_string()];
            print(&table(&["profile", "actor", "role"], [row]))
        }
    }
}
