//! Signing in at an identity provider by device grant (RFC 8628), and ending what was signed in (RFC 7009).

use std::path::Path;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Uri};
use pilot_core::time::Time;
use pilot_wire::outgoing::{self, Outgoing, Reply};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::query::encode;
use crate::exit::Failure;
use crate::profile::kept::{Grant, Kept};

pub(crate) mod device;
pub(crate) mod discovery;

const PATIENCE: Duration = Duration::from_secs(15);

/// The provider, and what it calls its parts.
#[derive(Deserialize)]
pub(crate) struct Provider {
    pub issuer: String,
    pub token_endpoint: String,
    pub device_authorization_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
}

/// A token as the provider issues it.
#[derive(Deserialize)]
pub(crate) struct Issued {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
}

/// What the provider says instead (RFC 6749, section 5.2).
#[derive(Deserialize, Default)]
pub(crate) struct Declined {
    pub error: String,
    #[serde(default)]
    pub error_description: String,
}

impl Issued {
    /// `renews` is the refresh token that was used; a provider that keeps it need not send it again.
    pub(crate) fn kept(self, grant: &Grant, now: Time) -> Kept {
        let Issued { access_token, refresh_token, expires_in } = self;
        let grant = Grant {
            refresh_token: refresh_token.or_else(|| grant.refresh_token.clone()),
            client_id: grant.client_id.clone(),
            token_endpoint: grant.token_endpoint.clone(),
            revocation_endpoint: grant.revocation_endpoint.clone(),
            expires_at: expires_in.map(|seconds| now.plus(Duration::from_secs(seconds))),
        };
        Kept { token: access_token, grant: Some(grant) }
    }
}

/// One client for all of the provider's endpoints. Nothing is sent to it without encryption, except on this machine.
pub(crate) struct Line {
    outgoing: Outgoing,
}

impl Line {
    pub(crate) fn new(url: &str, ca_file: Option<&Path>) -> Result<Line, Failure> {
        let is_encrypted = url.starts_with("https://");
        let outgoing = Outgoing::new(is_encrypted, ca_file);
        Ok(Line { outgoing: outgoing.map_err(|error| Failure::environment("TLS", error))? })
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<Option<T>, Failure> {
        let reply = self.outgoing.get_json(&endpoint(url)?, PATIENCE).await;
        let reply = reply.map_err(|error| Failure::environment(url, error))?;
        if reply.status != 200 {
            return Ok(None);
        }
        read(url, &reply).map(Some)
    }

    /// A form, and what was answered.
    pub(crate) async fn post(&self, url: &str, form: &[(&str, &str)]) -> Result<Reply, Failure> {
        let pairs: Vec<_> = form.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let media = HeaderValue::from_static("application/x-www-form-urlencoded");
        let headers = [(CONTENT_TYPE, media), (ACCEPT, HeaderValue::from_static("application/json"))];
        let request = outgoing::request(Method::POST, &endpoint(url)?, &headers, pairs.join("&"));
        self.outgoing.ask(request, PATIENCE).await.map_err(|error| Failure::environment(url, error))
    }
}

pub(crate) fn read<T: DeserializeOwned>(url: &str, reply: &Reply) -> Result<T, Failure> {
    serde_json::from_slice(&reply.body)
        .map_err(|_| Failure::Environment(format!("{url}: the answer is not what an identity provider sends")))
}

fn endpoint(url: &str) -> Result<Uri, Failure> {
    let uri: Option<Uri> = url.parse().ok();
    let is_safe = |uri: &Uri| match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(_)) => true,
        (Some("http"), Some(host)) => matches!(host, "127.0.0.1" | "[::1]" | "localhost"),
        _ => false,
    };
    uri.filter(is_safe).ok_or_else(|| Failure::Refused(format!("{url}: the provider's address is not an https URL")))
}

/// A new token in place of one that is about to expire. None if the provider does not renew it.
pub(crate) async fn renewed(kept: &Kept, ca_file: Option<&Path>, now: Time) -> Result<Option<Kept>, Failure> {
    let Some(grant) = &kept.grant else { return Ok(None) };
    let Some(refresh_token) = &grant.refresh_token else { return Ok(None) };
    let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token), ("client_id", &grant.client_id)];
    let url = &grant.token_endpoint;
    let reply = Line::new(url, ca_file)?.post(url, &form).await?;
    match reply.status {
        200 => read::<Issued>(url, &reply).map(|issued| Some(issued.kept(grant, now))),
        400 | 401 => Ok(None),
        status => Err(Failure::Environment(format!("{url}: answered {status}"))),
    }
}

/// Ends the tokens at the provider, and says what came of it.
pub(crate) async fn revoked(kept: &Kept, ca_file: Option<&Path>) -> String {
    let valid = |why: &str| format!("signed out here; the token itself is still valid: {why}");
    let Some(grant) = &kept.grant else {
        return valid("it did not come from an identity provider, so have the credential removed if nobody needs it");
    };
    let Some(url) = &grant.revocation_endpoint else {
        return valid("the identity provider has no revocation endpoint; it ends when it expires");
    };
    // The refresh token first: with it, the other one could be had again.
    let tokens = grant.refresh_token.iter().map(|token| (token, "refresh_token"));
    for (token, hint) in tokens.chain([(&kept.token, "access_token")]) {
        let declined = match revoke(url, token, hint, &grant.client_id, ca_file).await {
            Ok(()) => continue,
            Err(declined) => declined,
        };
        // A token that is signed cannot be taken back; what renews it can (RFC 7009, section 2.2.1).
        if declined.error == "unsupported_token_type" && hint == "access_token" && grant.refresh_token.is_some() {
            return "signed out; the refresh token was revoked, and the access token ends when it expires".into();
        }
        let Declined { error, error_description } = declined;
        return valid(&format!("the identity provider did not revoke the {hint}: {error} {error_description}"));
    }
    "signed out; the tokens were revoked at the identity provider".into()
}

async fn revoke(url: &str, token: &str, hint: &str, client_id: &str, ca_file: Option<&Path>) -> Result<(), Declined> {
    let failed = |failure: Failure| Declined { error: failure.text().to_owned(), error_description: String::new() };
    let form = [("token", token), ("token_type_hint", hint), ("client_id", client_id)];
    let reply = Line::new(url, ca_file).map_err(failed)?.post(url, &form).await.map_err(failed)?;
    match reply.status {
        200 => Ok(()),
        status => {
            let unknown = Declined { error: status.to_string(), error_description: String::new() };
            Err(serde_json::from_slice(&reply.body).unwrap_or(unknown))
        }
    }
}
