//! The credential file from a key-value store that speaks Vault's protocol: sign in, read one secret, sign out.

use std::path::Path;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Uri};
use http_body_util::LengthLimitError;
use pilot_core::json::{self, Bounds};
use pilot_core::limits::{FILE_VALUES_MAX, PRIVATE_FILE_BYTES_MAX};
use serde_json::Value;
use zeroize::Zeroizing;

use super::fetched::{Fetched, plain_words};
use crate::config::{Login, Vault};
use crate::error::{StartError, with_cause};
use crate::private_file::{self, Others};
use pilot_wire::outgoing::{Outgoing, OutgoingError, Reply, request};

const BOUNDS: Bounds = Bounds { depth: 16, values: FILE_VALUES_MAX };
/// As a JSON string, each quotation mark and line end of the file takes twice its space.
const ANSWER_BYTES_MAX: u64 = 2 * PRIVATE_FILE_BYTES_MAX;
/// Nothing waits long for signing out.
const GOODBYE_PATIENCE: Duration = Duration::from_secs(2);
const SECRET_BYTES_MAX: usize = 8 * 1024;
const SAID_CHARS_MAX: usize = 300;

/// A token or a secret_id, which must not appear anywhere.
struct Secret(Zeroizing<String>);

pub(super) async fn fetch(vault: &Vault, others: Others) -> Result<Fetched, StartError> {
    let https = vault.url.starts_with("https:");
    let outgoing = Outgoing::new(https, vault.ca_file.as_deref()).map_err(|error| refused(error.to_string()))?;
    let bytes_max = usize::try_from(ANSWER_BYTES_MAX).unwrap_or(usize::MAX);
    let client = Client { vault, outgoing: outgoing.with_answer_bytes_max(bytes_max) };
    match &vault.login {
        Login::Token { file } => client.read(&read_secret(file, others)?).await,
        Login::AppRole { mount, role_id, secret_id_file } => {
            let secret_id = read_secret(secret_id_file, others)?;
            let token = client.sign_in(mount, role_id, &secret_id).await?;
            let fetched = client.read(&token).await;
            client.sign_out(&token).await;
            fetched
        }
    }
}

fn refused(what: impl std::fmt::Display) -> StartError {
    StartError::Refused(format!("credentials.vault: {what}"))
}

fn read_secret(path: &Path, others: Others) -> Result<Secret, StartError> {
    let file = private_file::read(path, others).map_err(|error| refused(with_cause(&error)))?;
    if let Some(exposed) = file.exposed {
        tracing::warn!("{exposed}");
    }
    let text = Zeroizing::new(String::from_utf8(file.bytes).unwrap_or_default());
    let secret = Zeroizing::new(text.trim_ascii().to_owned());
    let is_usable =
        (1..=SECRET_BYTES_MAX).contains(&secret.len()) && secret.bytes().all(|byte| byte.is_ascii_graphic());
    let wrong = "must contain exactly one line of visible ASCII characters";
    if is_usable { Ok(Secret(secret)) } else { Err(refused(format!("{}: {wrong}", path.display()))) }
}

struct Client<'v> {
    vault: &'v Vault,
    outgoing: Outgoing,
}

impl Client<'_> {
    async fn sign_in(&self, mount: &str, role_id: &str, secret_id: &Secret) -> Result<Secret, StartError> {
        let body = serde_json::json!({ "role_id": role_id, "secret_id": *secret_id.0 }).to_string();
        let reply = self.ask(Method::POST, &format!("auth/{mount}/login"), None, body, self.vault.timeout).await?;
        let said = said(&reply, secret_id);
        match reply.status {
            200 => {
                let token = self.parse(&reply)?.pointer("/auth/client_token").and_then(Value::as_str).map(str::to_owned);
                token.map(|token| Secret(Zeroizing::new(token))).ok_or_else(|| self.strange("to the sign-in"))
            }
            400 | 401 | 403 => Err(self.refused(&format!(
                "does not accept the AppRole ({said}); check role_id and mount, and whether secret_id_file contains a secret_id that is still valid"
            ))),
            404 => Err(self.refused(&format!("has no AppRole method at auth/{mount} ({said}); check mount"))),
            _ => Err(self.cannot(&reply, &said)),
        }
    }

    async fn read(&self, token: &Secret) -> Result<Fetched, StartError> {
        let Vault { path, .. } = self.vault;
        let reply = self.ask(Method::GET, path, Some(token), String::new(), self.vault.timeout).await?;
        let said = said(&reply, token);
        match reply.status {
            200 => self.find_file(&self.parse(&reply)?),
            401 | 403 => Err(self.refused(&format!(
                "denies reading {path} ({said}); the token may have expired, or its policy lacks `path \"{path}\" {{ capabilities = [\"read\"] }}`"
            ))),
            404 => Err(self.refused(&format!(
                "has nothing at {path} ({said}); write it there, and note that KV version 2 has `data/` after its mount, as in secret/data/pilot"
            ))),
            _ => Err(self.cannot(&reply, &said)),
        }
    }

    /// The short-lived token has served its purpose. If it cannot be revoked, it expires by itself.
    async fn sign_out(&self, token: &Secret) {
        let patience = GOODBYE_PATIENCE.min(self.vault.timeout);
        let left = self.ask(Method::POST, "auth/token/revoke-self", Some(token), "{}".into(), patience).await;
        if !left.is_ok_and(|reply| matches!(reply.status, 200 | 204)) {
            tracing::info!(
                "the secret manager did not revoke the token that the credentials were read with; it will expire by itself"
            );
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        token: Option<&Secret>,
        body: String,
        patience: Duration,
    ) -> Result<Reply, StartError> {
        let url = &self.vault.url;
        let uri: Uri = format!("{url}/v1/{path}")
            .parse()
            .map_err(|_| refused(format!("{url}/v1/{path} is not a valid address")))?;
        let json = HeaderValue::from_static("application/json");
        let mut headers = vec![(ACCEPT, json.clone()), (CONTENT_TYPE, json)];
        // Required by some agents in front of a Vault, against requests that a browser was tricked into sending.
        headers.push((HeaderName::from_static("x-vault-request"), HeaderValue::from_static("true")));
        let value = |text: &str| {
            HeaderValue::from_str(text).map_err(|_| refused("a configured value cannot be sent in a header"))
        };
        if let Some(namespace) = &self.vault.namespace {
            headers.push((HeaderName::from_static("x-vault-namespace"), value(namespace)?));
        }
        if let Some(Secret(token)) = token {
            let mut token = value(token)?;
            token.set_sensitive(true);
            headers.push((HeaderName::from_static("x-vault-token"), token));
        }
        let reply = self.outgoing.ask(request(method, &uri, &headers, body), patience).await;
        reply.map_err(|error| self.unheard(error))
    }

    fn unheard(&self, error: OutgoingError) -> StartError {
        let url = &self.vault.url;
        if let OutgoingError::Failed(cause) = &error {
            if cause.is::<LengthLimitError>() {
                return self.refused(&format!("answered more than {} MiB", ANSWER_BYTES_MAX / 1024 / 1024));
            }
            let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            if inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some() {
                return self.refused(&format!("is not trusted ({cause}); set ca_file to its issuer's certificate"));
            }
        }
        let remedy = "check url and that the secret manager is running; the service cannot start until it answers";
        StartError::environment(format!("credentials.vault: {url} cannot be reached; {remedy}"), error)
    }

    /// The server answered, but not like one that is ready for us.
    fn cannot(&self, reply: &Reply, said: &str) -> StartError {
        let url = &self.vault.url;
        match reply.status {
            300..=399 => {
                self.refused("answers with a redirect, which is not followed; set url to the address it leads to")
            }
            412 | 429 | 472 | 473 | 500.. => StartError::Environment {
                what: format!("credentials.vault: {url} is not ready ({said}); unseal or repair it, and start again"),
                source: None,
            },
            _ => self.strange(&format!("({said})")),
        }
    }

    fn refused(&self, what: &str) -> StartError {
        refused(format!("{} {what}", self.vault.url))
    }

    fn strange(&self, what: &str) -> StartError {
        self.refused(&format!("does not answer {what} as Vault does; check url"))
    }

    fn parse(&self, reply: &Reply) -> Result<Value, StartError> {
        json::parse(&reply.body, BOUNDS).map_err(|_| self.strange("with valid JSON"))
    }

    /// Version 2 of the store wraps what version 1 returns directly.
    fn find_file(&self, reply: &Value) -> Result<Fetched, StartError> {
        let Vault { path, field, .. } = self.vault;
        let Some(data) = reply.get("data").filter(|data| data.is_object()) else {
            return Err(self.strange("the read request"));
        };
        let is_second = data.pointer("/metadata/version").is_some_and(Value::is_u64);
        let fields = if is_second { data.get("data").unwrap_or(data) } else { data };
        let bytes = match fields.get(field) {
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(object @ Value::Object(_)) => object.to_string().into_bytes(),
            Some(_) => {
                let wrong = "is neither the text of the credential file nor the object itself";
                return Err(self.refused(&format!("has `{field}` at {path}, but it {wrong}")));
            }
            None => {
                let remedy =
                    format!("write it with `vault kv put … {field}=@credentials.json`, or set field to another name");
                return Err(self.refused(&format!("has no field `{field}` at {path}; {remedy}")));
            }
        };
        if bytes.len() as u64 > PRIVATE_FILE_BYTES_MAX {
            let mib = PRIVATE_FILE_BYTES_MAX / 1024 / 1024;
            return Err(self.refused(&format!("has more than {mib} MiB in `{field}` at {path}")));
        }
        Ok(Fetched::new(bytes, None))
    }
}

/// The status and what the server says about it, without anything that could be a secret.
fn said(reply: &Reply, secret: &Secret) -> String {
    let value: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let texts = value.get("errors").and_then(Value::as_array).into_iter().flatten().chain(value.get("error"));
    let text = texts.filter_map(Value::as_str).collect::<Vec<_>>().join("; ");
    let text = text.replace(secret.0.as_str(), "(withheld)");
    let text: String = plain_words(&text).chars().take(SAID_CHARS_MAX).collect();
    if text.is_empty() { reply.status.to_string() } else { format!("{}: {text}", reply.status) }
}
