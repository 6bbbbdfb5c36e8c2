//! `pilot login` and `pilot logout`: the token of a profile that is kept in the session keyring.

use pilot_core::actor::Actor;
use pilot_core::time::Time;
use pilot_wire::clock;

use crate::client::{Client, runtime};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{note, print};
use crate::profile::kept::{Kept, Kind, Place};
use crate::profile::{Profile, Profiles, TokenSource};
use crate::sign_in::{Line, device, discovery, revoked};

#[derive(clap::Args)]
#[command(after_help = "\
The profile needs keyring = \"session\". If the service trusts an identity provider, you sign in there with a browser, on \
this machine or another; otherwise you are asked for your token. The token is kept in the kernel's session keyring, which \
ends with your session, or in a file that only you can read if there is no keyring.")]
pub(crate) struct LoginArguments {
    /// The profile to sign in for [env: PILOT_CLIENT_PROFILE] [default: the default one]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// This program's client at the identity provider
    #[arg(long, value_name = "ID", default_value = "pilot-terminal")]
    client_id: String,
    /// The scopes to ask for, such as offline_access for a token that can be renewed
    #[arg(long, value_name = "NAMES", default_value = "openid offline_access")]
    scope: String,
}

#[derive(clap::Args)]
pub(crate) struct LogoutArguments {
    /// The profile to sign out of [env: PILOT_CLIENT_PROFILE] [default: the default one]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

pub(crate) fn login(arguments: &LoginArguments, environment: &Environment) -> Result<(), Failure> {
    let profiles = Profiles::read(environment)?;
    let profile = chosen(&profiles, arguments.profile.as_deref(), environment)?;
    let found = runtime()?.block_on(discovery::discover(&profile.url, profile.ca_file.as_deref()))?;
    let kept = match found {
        Some(found) => {
            let line = Line::new(&found.provider.issuer, profile.ca_file.as_deref())?;
            runtime()?.block_on(device::sign_in(&found, &arguments.client_id, &arguments.scope, &line, now))?
        }
        None => Kept { token: Client::asked_token()?.to_string(), grant: None },
    };
    let place = Place::of(&profile.name, &profile.url, environment);
    // Asked before it is kept: a token that the service does not know is of no use to anybody.
    let actor: Actor = Client::with_kept(profile, &kept)?.get("/v1/session")?.read()?;
    match place.keep(kept)? {
        Kind::Keyring => {}
        Kind::File(path, why) => note(&format!("{why}; the token is kept in {}", path.display()))?,
    }
    print(&format!("signed in to {} as {} ({})\n", profile.url, actor.actor_id, actor.role))
}

pub(crate) fn logout(arguments: &LogoutArguments, environment: &Environment) -> Result<(), Failure> {
    let profiles = Profiles::read(environment)?;
    let profile = chosen(&profiles, arguments.profile.as_deref(), environment)?;
    let place = Place::of(&profile.name, &profile.url, environment);
    let Some(kept) = place.read()? else {
        return print(&format!("no token is kept for the profile {}\n", profile.name));
    };
    let said = runtime()?.block_on(revoked(&kept, profile.ca_file.as_deref()));
    place.forget()?;
    print(&format!("{said}\n"))
}

fn chosen<'p>(profiles: &'p Profiles, name: Option<&str>, environment: &Environment) -> Result<&'p Profile, Failure> {
    let chosen = profiles.chosen(name, environment)?;
    let (profile, _) = chosen.ok_or_else(|| Failure::Usage("name a profile: there is no default one".into()))?;
    if profile.token == Some(TokenSource::Keyring) {
        return Ok(profile);
    }
    let name = &profile.name;
    Err(Failure::Usage(format!("the profile {name} does not keep its token in a keyring; write keyring = \"session\"")))
}

fn now() -> Time {
    clock::since_1970().map_or(Time::EPOCH, |since| Time::EPOCH.plus(since))
}
