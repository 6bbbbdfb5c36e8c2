//! The device grant: a code to type in a browser, and asking until it was.

use std::time::Duration;

use pilot_core::time::Time;
use pilot_wire::clock::Stopwatch;
use pilot_wire::outgoing::Reply;
use serde::Deserialize;

use crate::exit::Failure;
use crate::output::note;
use crate::profile::kept::{Grant, Kept};
use crate::sign_in::discovery::Found;
use crate::sign_in::{Declined, Issued, Line, read};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// What RFC 8628 says where the provider does not.
const INTERVAL: u64 = 5;
const SLOWER: u64 = 5;
/// Nobody takes longer, whatever the provider says.
const PATIENCE_MAX: u64 = 30 * 60;
const INTERVAL_MAX: u64 = 60;

#[derive(Deserialize)]
struct Device {
    #[serde(rename = "device_code")]
    code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

/// What the answer to one question means.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Issued,
    /// Ask again after this many seconds.
    Again(u64),
    Over(&'static str),
    Failed(String),
}

pub(crate) async fn sign_in(
    found: &Found,
    client_id: &str,
    scope: &str,
    line: &Line,
    now: impl Fn() -> Time,
) -> Result<Kept, Failure> {
    let provider = &found.provider;
    let url = provider.device_authorization_endpoint.as_ref().ok_or_else(|| {
        let issuer = &provider.issuer;
        Failure::Refused(format!("{issuer}: has no device grant (RFC 8628); use a profile with token_command instead"))
    })?;
    let form = [("client_id", client_id), ("scope", scope), ("resource", &found.resource)];
    let reply = line.post(url, &form).await?;
    if reply.status != 200 {
        let Declined { error, error_description } = serde_json::from_slice(&reply.body).unwrap_or_default();
        return Err(Failure::Refused(format!("{url}: {} {error} {error_description}", reply.status)));
    }
    let device: Device = read(url, &reply)?;
    let Device { user_code, verification_uri, .. } = &device;
    let short_cut = device.verification_uri_complete.as_ref();
    let short_cut = short_cut.map_or(String::new(), |url| format!("\nor open {url}, and check the code there"));
    note(&format!("open {verification_uri}\nand type {user_code}{short_cut}"))?;
    let issued = poll(provider.token_endpoint.as_str(), &device, client_id, &found.resource, line).await?;
    let grant = Grant {
        refresh_token: None,
        client_id: client_id.to_owned(),
        token_endpoint: provider.token_endpoint.clone(),
        revocation_endpoint: provider.revocation_endpoint.clone(),
        expires_at: None,
    };
    Ok(issued.kept(&grant, now()))
}

async fn poll(url: &str, device: &Device, client_id: &str, resource: &str, line: &Line) -> Result<Issued, Failure> {
    let (waiting, limit) = (Stopwatch::start(), Duration::from_secs(device.expires_in.min(PATIENCE_MAX)));
    let mut interval = device.interval.unwrap_or(INTERVAL).clamp(1, INTERVAL_MAX);
    let form = [("grant_type", GRANT), ("device_code", &device.code), ("client_id", client_id), ("resource", resource)];
    while waiting.elapsed() < limit {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        let reply = line.post(url, &form).await;
        match reply.as_ref().map_or_else(|_| unreachable_step(interval), |reply| step(reply, interval)) {
            Step::Issued => return reply.and_then(|reply| read(url, &reply)),
            Step::Again(next) => interval = next,
            Step::Over(why) => return Err(Failure::Refused(why.to_owned())),
            Step::Failed(why) => return Err(Failure::Refused(format!("{url}: {why}"))),
        }
    }
    Err(Failure::Refused(EXPIRED.into()))
}

const EXPIRED: &str = "the code has expired; sign in again";

/// A provider that cannot be reached is asked less often (RFC 8628, section 3.5).
fn unreachable_step(interval: u64) -> Step {
    Step::Again((interval * 2).min(INTERVAL_MAX))
}

fn step(reply: &Reply, interval: u64) -> Step {
    if reply.status == 200 {
        return Step::Issued;
    }
    if reply.status >= 500 || reply.status == 429 {
        return unreachable_step(interval);
    }
    let Declined { error, error_description } = serde_json::from_slice(&reply.body).unwrap_or_default();
    match &*error {
        "authorization_pending" => Step::Again(interval),
        "slow_down" => Step::Again((interval + SLOWER).min(INTERVAL_MAX)),
        "access_denied" => Step::Over("the sign-in was denied"),
        "expired_token" => Step::Over(EXPIRED),
        _ => Step::Failed(format!("{} {error} {error_description}", reply.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_of_the_standard_means_what_the_standard_says() {
        let said = |status: u16, error: &str| {
            let body = format!("{{\"error\":\"{error}\"}}").into_bytes().into();
            step(&Reply { status, body }, 5)
        };
        assert_eq!(said(200, ""), Step::Issued);
        assert_eq!(said(400, "authorization_pending"), Step::Again(5));
        assert_eq!(said(400, "slow_down"), Step::Again(10));
        assert_eq!(said(503, ""), Step::Again(10));
        assert_eq!(said(429, ""), Step::Again(10));
        assert_eq!(said(400, "access_denied"), Step::Over("the sign-in was denied"));
        assert_eq!(said(400, "expired_token"), Step::Over(EXPIRED));
        assert!(matches!(said(400, "invalid_client"), Step::Failed(why) if why.contains("invalid_client")));
        let at_most =
            (0..100).fold(5, |interval, _| match step(&Reply { status: 500, body: Vec::new().into() }, interval) {
                Step::Again(next) => next,
                other => panic!("{other:?}"),
            });
        assert_eq!(at_most, INTERVAL_MAX);
    }
}
