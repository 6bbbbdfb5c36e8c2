//! The client side: the service's address, the caller's token, and requests.

use std::path::PathBuf;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderName, HeaderValue};
use http::uri::InvalidUri;
use http::{Method, Request, StatusCode, Uri};
use pilot_api::problem::ProblemView;
use pilot_core::time::Time;
use pilot_core::token::Token;
use pilot_wire::outgoing::{self, Outgoing, OutgoingError};
use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::profile::kept::Kept;
use crate::profile::{Profile, Profiles};

mod address;
mod arguments;
mod credential;
pub(crate) mod feed;
pub(crate) mod follow;
pub(crate) mod query;
pub(crate) mod repeat;
mod runtime;
pub(crate) mod tls;

pub(crate) use address::is_same_service;
pub(crate) use arguments::ClientArguments;
pub(crate) use credential::Effort;
pub(crate) use runtime::runtime;

const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    base: Uri,
    /// None when a certificate says who is calling.
    token: Option<Token>,
    outgoing: Outgoing,
}

/// A request to the service.
#[derive(Clone)]
pub(crate) struct Ask<'a> {
    method: Method,
    path: &'a str,
    body: Option<&'a Value>,
    headers: Vec<(HeaderName, String)>,
    patience: Duration,
}

impl<'a> Ask<'a> {
    pub(crate) fn get(path: &'a str) -> Ask<'a> {
        Ask { method: Method::GET, path, body: None, headers: Vec::new(), patience: PATIENCE }
    }

    pub(crate) fn post(path: &'a str, body: &'a Value) -> Ask<'a> {
        Ask { method: Method::POST, body: Some(body), ..Ask::get(path) }
    }

    pub(crate) fn patch(path: &'a str, body: &'a Value) -> Ask<'a> {
        Ask { method: Method::PATCH, ..Ask::post(path, body) }
    }

    #[must_use]
    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Ask<'a> {
        self.headers.push((name, value.into()));
        self
    }

    /// The same key makes a request that may have arrived safe to repeat.
    #[must_use]
    pub(crate) fn key(self, key: &str) -> Ask<'a> {
        self.header(HeaderName::from_static("idempotency-key"), key)
    }

    #[must_use]
    pub(crate) fn within(self, patience: Duration) -> Ask<'a> {
        Ask { patience, ..self }
    }
}

pub(crate) struct Reply(outgoing::Reply);

impl Client {
    pub(crate) fn new(arguments: &ClientArguments, environment: &Environment) -> Result<Client, Failure> {
        Client::with_effort(arguments, environment, Effort::Full)
    }

    /// A client whose token is looked for with as much effort as this.
    pub(crate) fn with_effort(
        arguments: &ClientArguments,
        environment: &Environment,
        effort: Effort,
    ) -> Result<Client, Failure> {
        let profiles = Profiles::read(environment)?;
        let (base, profile) = address::chosen(arguments, environment, &profiles)?;
        let pair = credential::pair(arguments, environment, profile)?;
        if pair.is_some() && !address::is_encrypted(&base) {
            return Err(Failure::Usage("a client certificate can be used only with an https:// service".into()));
        }
        let by_variable = || environment.get("PILOT_CA_FILE").map(PathBuf::from);
        let ca_file = arguments.ca_file.clone().or_else(by_variable).or_else(|| profile?.ca_file.clone());
        let outgoing = tls::outgoing(address::is_encrypted(&base), ca_file.as_deref(), pair.as_ref())?;
        let outgoing = outgoing.with_answer_bytes_max(ANSWER_BYTES_MAX);
        let token = credential::token(arguments, environment, profile, pair.is_some(), effort)?;
        Ok(Client { base, token, outgoing })
    }

    /// A client that uses what the profile says and nothing else.
    pub(crate) fn of_profile(profile: &Profile, environment: &Environment) -> Result<Client, Failure> {
        let base = address::parse(&profile.url)?;
        address::check_encryption(&base, false)?;
        let pair = credential::of_profile(profile);
        let outgoing = tls::outgoing(address::is_encrypted(&base), profile.ca_file.as_deref(), pair.as_ref())?;
        let token = match &profile.token {
            None if pair.is_some() => None,
            _ => Some(credential::token_of_profile(profile, environment)?),
        };
        Ok(Client { base, token, outgoing: outgoing.with_answer_bytes_max(ANSWER_BYTES_MAX) })
    }

    /// A client with a token that a sign-in has just brought.
    pub(crate) fn with_kept(profile: &Profile, kept: &Kept) -> Result<Client, Failure> {
        let base = address::parse(&profile.url)?;
        address::check_encryption(&base, false)?;
        let outgoing = tls::outgoing(address::is_encrypted(&base), profile.ca_file.as_deref(), None)?;
        let token = credential::parse(&kept.token)?;
        Ok(Client { base, token: Some(token), outgoing: outgoing.with_answer_bytes_max(ANSWER_BYTES_MAX) })
    }

    /// A token that the person types.
    pub(crate) fn asked_token() -> Result<Zeroizing<String>, Failure> {
        credential::asked()
    }

    /// Where people look at this in a browser.
    pub(crate) fn console_link(&self, id: &str) -> String {
        format!("{}/console/items/{id}", self.base.to_string().trim_end_matches('/'))
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// The service's address.
    pub(crate) fn url(&self) -> String {
        self.base.to_string().trim_end_matches('/').to_owned()
    }

    /// A client for a token the program holds itself.
    pub(crate) fn with_token(url: &str, token: Token) -> Result<Client, Failure> {
        let base = address::parse(url)?;
        let outgoing = tls::outgoing(address::is_encrypted(&base), None, None)?.with_answer_bytes_max(ANSWER_BYTES_MAX);
        Ok(Client { base, token: Some(token), outgoing })
    }

    pub(crate) fn get(&self, path: &str) -> Result<Reply, Failure> {
        self.send(Ask::get(path))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Reply, Failure> {
        self.send(Ask::post(path, body))
    }

    /// One request, for a command that has nothing else to do meanwhile.
    pub(crate) fn send(&self, ask: Ask<'_>) -> Result<Reply, Failure> {
        runtime()?.block_on(self.ask(ask))
    }

    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Result<Reply, Failure> {
        let patience = ask.patience;
        let reply = self.outgoing.ask(self.request(ask)?, patience).await;
        reply.map(Reply).map_err(|error| self.lost(&error))
    }

    /// An answer and what time the service had then, so that "in two hours" means two of its hours.
    pub(crate) async fn ask_dated(&self, ask: Ask<'_>) -> Result<(Reply, Option<Time>), Failure> {
        let patience = ask.patience;
        let arriving = self.outgoing.open(self.request(ask)?, patience).await.map_err(|error| self.lost(&error))?;
        let status = arriving.head.status.as_u16();
        let date = arriving.head.headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(query::http_date);
        let body = arriving.rest(ANSWER_BYTES_MAX, patience).await.map_err(|error| self.lost(&error))?;
        Ok((Reply(outgoing::Reply { status, body }), date))
    }

    /// A long answer, piece by piece as it arrives; each piece comes with a way to ask for the answer's headers.
    pub(crate) fn download(
        &self,
        path: &str,
        mut take: impl FnMut(&dyn Fn(&str) -> Option<String>, &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let request = self.request(Ask::get(path))?;
        runtime()?.block_on(async {
            let mut arriving = self.outgoing.open(request, PATIENCE).await.map_err(|error| self.lost(&error))?;
            if !arriving.head.status.is_success() {
                let status = arriving.head.status.as_u16();
                let body = arriving.rest(ANSWER_BYTES_MAX, PATIENCE).await.map_err(|error| self.lost(&error))?;
                return Err(Reply(outgoing::Reply { status, body }).refusal());
            }
            let headers = arriving.head.headers.clone();
            let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
            while let Some(piece) = arriving.next(PATIENCE).await.map_err(|error| self.lost(&error))? {
                take(&header, &piece)?;
            }
            Ok(())
        })
    }

    fn lost(&self, error: &OutgoingError) -> Failure {
        let cause = tls::explained(error).map_or_else(|| error.to_string(), str::to_owned);
        Failure::environment(format!("{}: the service cannot be reached", self.base), cause)
    }

    fn request(&self, ask: Ask<'_>) -> Result<Request<String>, Failure> {
        let Ask { method, path, body, headers: more, .. } = ask;
        let mut url = self.base.clone().into_parts();
        let wrong = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}{path}: {error}", self.base));
        url.path_and_query = Some(path.parse().map_err(|error: InvalidUri| wrong(&error))?);
        let url = Uri::from_parts(url).map_err(|error| wrong(&error))?;
        let mut headers = vec![
            (ACCEPT, HeaderValue::from_static("application/json, */*")),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ];
        if let Some(token) = &self.token {
            let mut bearer = HeaderValue::from_str(&token.bearer()).map_err(|error| wrong(&error))?;
            bearer.set_sensitive(true);
            headers.push((AUTHORIZATION, bearer));
        }
        for (name, value) in more {
            headers.retain(|(known, _)| *known != name);
            headers.push((name, HeaderValue::from_str(&value).map_err(|error| wrong(&error))?));
        }
        Ok(outgoing::request(method, &url, &headers, body.map(Value::to_string).unwrap_or_default()))
    }
}

impl Reply {
    /// The answer as `T`, or the problem in the service's own words.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        if !self.is_success() {
            return Err(self.refusal());
        }
        serde_json::from_slice(&self.0.body)
            .map_err(|error| Failure::environment("the answer is not what a pilot service sends", error))
    }

    /// The answer as text, or the problem in the service's own words.
    pub(crate) fn text(&self) -> Result<String, Failure> {
        if !self.is_success() {
            return Err(self.refusal());
        }
        Ok(String::from_utf8_lossy(&self.0.body).into_owned())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.body
    }

    pub(crate) fn status(&self) -> u16 {
        self.0.status
    }

    /// What the service says about an answer that is not a success.
    pub(crate) fn problem(&self) -> Option<ProblemView<'static>> {
        serde_json::from_slice(&self.0.body).ok()
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.0.status)
    }

    pub(crate) fn refusal(&self) -> Failure {
        let Some(ProblemView { detail, code, errors, .. }) = self.problem() else {
            let status =
                StatusCode::from_u16(self.status()).map_or_else(|_| String::new(), |status| status.to_string());
            return Failure::Environment(format!("the answer is {status} and does not come from a pilot service"));
        };
        // Where each fault is listed, the sentence that says so adds nothing.
        let lines = errors.iter().map(|fault| format!("\n  {}: {}", fault.pointer, fault.detail));
        let said = if errors.is_empty() { format!(" {detail}") } else { lines.collect() };
        let text = format!("{} {code}:{said}", self.status());
        // A service that cannot does not refuse.
        if self.status() >= 500 { Failure::Environment(text) } else { Failure::Refused(text) }
    }
}
