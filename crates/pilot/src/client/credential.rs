//! Who is calling: the token, by flag, environment, profile or prompt; or a certificate.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pilot_core::time::Time;
use pilot_core::token::Token;
use pilot_setup::private_file::{self, Others};
use pilot_wire::clock;
use pilot_wire::outgoing::Pair;
use zeroize::Zeroizing;

use crate::client::arguments::ClientArguments;
use crate::client::runtime::runtime;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::profile::kept::{Kept, Place};
use crate::profile::{Profile, TokenSource, helper};
use crate::sign_in::renewed;

/// What may be done to find a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Ask a program or the person.
    Full,
    /// Only look: nothing that could wait for anybody.
    Look,
}

/// The caller's own certificate and its key.
pub(super) fn pair(
    arguments: &ClientArguments,
    environment: &Environment,
    profile: Option<&Profile>,
) -> Result<Option<Pair>, Failure> {
    let given = |argument: &Option<PathBuf>, variable: &str| {
        argument.clone().or_else(|| environment.get(variable).map(PathBuf::from))
    };
    match (given(&arguments.client_cert, "PILOT_CLIENT_CERT"), given(&arguments.client_key, "PILOT_CLIENT_KEY")) {
        (Some(certificate), Some(key)) => Ok(Some(Pair { certificate, key })),
        (None, None) => Ok(profile.and_then(of_profile)),
        _ => Err(Failure::Usage("a certificate needs its key: give PILOT_CLIENT_CERT and PILOT_CLIENT_KEY".into())),
    }
}

pub(super) fn of_profile(profile: &Profile) -> Option<Pair> {
    profile.pair.clone().map(|(certificate, key)| Pair { certificate, key })
}

pub(super) fn token_of_profile(profile: &Profile, environment: &Environment) -> Result<Token, Failure> {
    let text = match &profile.token {
        Some(source) => kept(profile, source, environment, Effort::Full)?,
        None => asked()?,
    };
    parse(&text)
}

pub(super) fn parse(text: &str) -> Result<Token, Failure> {
    let trimmed = Zeroizing::new(text.trim_end_matches(['\r', '\n']).to_owned());
    Token::parse(trimmed).map_err(|error| Failure::Usage(error.to_string()))
}

/// None if a certificate says who is calling.
pub(super) fn token(
    arguments: &ClientArguments,
    environment: &Environment,
    profile: Option<&Profile>,
    has_pair: bool,
    effort: Effort,
) -> Result<Option<Token>, Failure> {
    let of_profile = profile.and_then(|profile| Some((profile, profile.token.as_ref()?)));
    let text = match (&arguments.token_file, environment.token(), of_profile) {
        // A pipe would wait for its writer, and a look would take from it what the command needs.
        (Some(path), ..) if effort == Effort::Full || path.is_file() => read_file(path)?,
        (None, Some(token), _) => token,
        (None, None, Some((profile, source))) => kept(profile, source, environment, effort)?,
        (None, None, None) if has_pair => return Ok(None),
        (None, None, None) if effort == Effort::Full => asked()?,
        _ => return Err(no_token()),
    };
    parse(&text).map(Some)
}

fn kept(
    profile: &Profile,
    source: &TokenSource,
    environment: &Environment,
    effort: Effort,
) -> Result<Zeroizing<String>, Failure> {
    match source {
        TokenSource::File(path) => {
            let found =
                private_file::read(path, Others::MayNothing).map_err(|error| Failure::Usage(error.to_string()))?;
            let bytes = Zeroizing::new(found.bytes);
            let text =
                std::str::from_utf8(&bytes).map_err(|_| Failure::Usage(format!("{}: is not text", path.display())))?;
            Ok(Zeroizing::new(text.to_owned()))
        }
        TokenSource::Command(argv) if effort == Effort::Full => runtime()?.block_on(helper::token(argv)),
        TokenSource::Command(_) => Err(no_token()),
        TokenSource::Keyring => {
            let place = Place::of(&profile.name, &profile.url, environment);
            let kept = place.read()?.ok_or_else(|| {
                let name = &profile.name;
                Failure::Usage(format!("no token is kept for the profile {name}; run `pilot login --profile {name}`"))
            })?;
            let kept = if effort == Effort::Full { fresh(kept, &place, profile)? } else { kept };
            Ok(Zeroizing::new(kept.token.clone()))
        }
    }
}

/// The same, or a new one if it is about to expire and can be renewed.
fn fresh(kept: Kept, place: &Place, profile: &Profile) -> Result<Kept, Failure> {
    let now = clock::since_1970().map_or(Time::EPOCH, |since| Time::EPOCH.plus(since));
    let expires_at = kept.grant.as_ref().and_then(|grant| grant.expires_at);
    if expires_at.is_none_or(|expires_at| now.plus(SOON) < expires_at) {
        return Ok(kept);
    }
    match runtime()?.block_on(renewed(&kept, profile.ca_file.as_deref(), now))? {
        Some(new) => {
            let token = Kept { token: new.token.clone(), grant: None };
            place.keep(new)?;
            Ok(token)
        }
        // Another command may have renewed it meanwhile: some providers take each refresh token once.
        None => Ok(place.read()?.unwrap_or(kept)),
    }
}

/// A command takes less time than this.
const SOON: Duration = Duration::from_secs(30);

fn no_token() -> Failure {
    let text =
        "no token: set PILOT_TOKEN, or use --token-file FILE (never pass it as an argument: others could see it)";
    Failure::Usage(text.into())
}

pub(super) fn asked() -> Result<Zeroizing<String>, Failure> {
    rpassword::prompt_password("Token: ").map(Zeroizing::new).map_err(|_| no_token())
}

fn read_file(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let mut text = Zeroizing::new(String::new());
    // As much as a signed token may have, and its line end.
    let limit = 8 * 1024 + 2;
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(limit).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    read.map_err(|error| Failure::environment(path.display(), error))?;
    Ok(text)
}
