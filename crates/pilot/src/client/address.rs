//! Which service is meant: its address, by flag, environment or profile.

use std::net::IpAddr;

use http::Uri;

use crate::client::arguments::ClientArguments;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::profile::{Profile, Profiles};

const DEFAULT: &str = "http://127.0.0.1:7450";

/// The service's address, and the profile if it is meant for that service. What a profile keeps for one service is never
/// sent to another.
pub(super) fn chosen<'p>(
    arguments: &ClientArguments,
    environment: &Environment,
    profiles: &'p Profiles,
) -> Result<(Uri, Option<&'p Profile>), Failure> {
    let given = arguments.url.as_deref().or(environment.get("PILOT_URL")).map(parse).transpose()?;
    let chosen = profiles.chosen(arguments.profile.as_deref(), environment)?;
    let (base, profile) = match (given, chosen) {
        (None, None) => (parse(DEFAULT)?, None),
        (None, Some((profile, _))) => (parse(&profile.url)?, Some(profile)),
        (Some(base), None) => (base, None),
        (Some(base), Some((profile, is_named))) => {
            let is_same = origin(&base) == origin(&parse(&profile.url)?);
            if is_named && !is_same {
                let name = &profile.name;
                let remedy = "leave one of them out: its token is only for its own service";
                return Err(Failure::Usage(format!("the profile {name} is not for {base}; {remedy}")));
            }
            (base, Some(profile).filter(|_| is_same))
        }
    };
    check_encryption(&base, arguments.insecure_http)?;
    Ok((base, profile))
}

pub(super) fn check_encryption(base: &Uri, is_waived: bool) -> Result<(), Failure> {
    if is_encrypted(base) || is_this_machine(base) || is_waived {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{base} is on another machine and does not use https, so anyone on the network path could read the token. Use an \
         https:// address, or --insecure-http to accept that"
    )))
}

pub(super) fn parse(url: &str) -> Result<Uri, Failure> {
    let remedy = "give it as https://host:port or http://host:port";
    let wrong = |why: &str| Failure::Usage(format!("the service's address {why}; {remedy}"));
    let uri: Uri = url.parse().map_err(|_| wrong("is not a URL"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if !authority.as_str().contains('@') => Ok(uri),
        _ => Err(wrong("is not an http URL")),
    }
}

pub(super) fn is_encrypted(base: &Uri) -> bool {
    base.scheme_str() == Some("https")
}

/// Whether two addresses are those of one service.
pub(crate) fn is_same_service(one: &str, other: &str) -> bool {
    let (one, other) = (parse(one).ok(), parse(other).ok());
    one.as_ref().map(origin).is_some_and(|one| Some(one) == other.as_ref().map(origin))
}

fn origin(base: &Uri) -> (bool, String, u16) {
    let port = base.port_u16().unwrap_or(if is_encrypted(base) { 443 } else { 80 });
    (is_encrypted(base), base.host().unwrap_or_default().to_ascii_lowercase(), port)
}

/// What is sent there does not leave it. A name is trusted only if every resolver must resolve it to this machine (RFC
/// 6761).
fn is_this_machine(base: &Uri) -> bool {
    let host = base.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
