//! The client side: the service's address, the caller's token, and requests.

use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::uri::InvalidUri;
use http::{Method, Request, StatusCode, Uri};
use pilot_api::problem::ProblemView;
use pilot_core::token::Token;
use pilot_wire::outgoing::{self, Outgoing, OutgoingError, Pair};
use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::environment::Environment;
use crate::exit::Failure;

pub(crate) mod feed;
mod tls;

const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(clap::Args, Clone)]
pub(crate) struct ClientArguments {
    /// The service's address [env: PILOT_URL] [default: http://127.0.0.1:7450]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// A file that contains the token, or - for standard input [default: PILOT_TOKEN, else you are asked]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Send the token over plain http to another machine; anyone on the network path can read it
    #[arg(long)]
    pub insecure_http: bool,
    /// The issuer of an https service's certificate, in PEM [env: PILOT_CA_FILE] [default: those the system trusts]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Your own certificate in PEM, if the service asks for one instead of a token [env: PILOT_CLIENT_CERT]
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub client_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM [env: PILOT_CLIENT_KEY]
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<PathBuf>,
}

impl ClientArguments {
    /// Whether the token comes from somewhere that may have a newer one by now.
    pub(crate) fn token_can_be_read_again(&self) -> bool {
        self.token_file.as_ref().is_some_and(|path| path.as_os_str() != "-")
    }

    /// The caller's own certificate and its key.
    fn pair(&self, environment: &Environment) -> Result<Option<Pair>, Failure> {
        let given = |argument: &Option<PathBuf>, variable: &str| {
            argument.clone().or_else(|| environment.get(variable).map(PathBuf::from))
        };
        match (given(&self.client_cert, "PILOT_CLIENT_CERT"), given(&self.client_key, "PILOT_CLIENT_KEY")) {
            (Some(certificate), Some(key)) => Ok(Some(Pair { certificate, key })),
            (None, None) => Ok(None),
            _ => Err(Failure::Usage("a certificate needs its key: give PILOT_CLIENT_CERT and PILOT_CLIENT_KEY".into())),
        }
    }
}

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
        let url = arguments.url.as_deref().or(environment.get("PILOT_URL")).unwrap_or("http://127.0.0.1:7450");
        let ca_file = arguments.ca_file.as_deref().or(environment.get("PILOT_CA_FILE").map(Path::new));
        let base = parse_url(url)?;
        if !is_encrypted(&base) && !is_this_machine(&base) && !arguments.insecure_http {
            return Err(Failure::Usage(format!(
                "{base} is on another machine and does not use https, so anyone on the network path could read the \
                 token. Use an https:// address, or --insecure-http to accept that"
            )));
        }
        let pair = arguments.pair(environment)?;
        if pair.is_some() && !is_encrypted(&base) {
            return Err(Failure::Usage("a client certificate can be used only with an https:// service".into()));
        }
        let outgoing =
            tls::outgoing(is_encrypted(&base), ca_file, pair.as_ref())?.with_answer_bytes_max(ANSWER_BYTES_MAX);
        let has_token = arguments.token_file.is_some() || environment.token().is_some();
        let token = if pair.is_some() && !has_token { None } else { Some(read_token(arguments, environment)?) };
        Ok(Client { base, token, outgoing })
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
        let base = parse_url(url)?;
        let outgoing = tls::outgoing(is_encrypted(&base), None, None)?.with_answer_bytes_max(ANSWER_BYTES_MAX);
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

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::environment("runtime", error))
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
        Failure::Refused(format!("{} {code}:{said}", self.status()))
    }
}

fn parse_url(url: &str) -> Result<Uri, Failure> {
    let remedy = "give it as https://host:port or http://host:port";
    let wrong = |why: &str| Failure::Usage(format!("the service's address {why}; {remedy}"));
    let uri: Uri = url.parse().map_err(|_| wrong("is not a URL"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if !authority.as_str().contains('@') => Ok(uri),
        _ => Err(wrong("is not an http URL")),
    }
}

fn is_encrypted(base: &Uri) -> bool {
    base.scheme_str() == Some("https")
}

/// What is sent there does not leave it. A name is trusted only if every resolver must resolve it to this machine (RFC
/// 6761).
fn is_this_machine(base: &Uri) -> bool {
    let host = base.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn read_token(arguments: &ClientArguments, environment: &Environment) -> Result<Token, Failure> {
    let text = match (&arguments.token_file, environment.token()) {
        (Some(path), _) => read_token_file(path)?,
        (None, Some(token)) => token,
        (None, None) => Zeroizing::new(rpassword::prompt_password("Token: ").map_err(|_| {
            Failure::Usage(
                "no token: set PILOT_TOKEN, or use --token-file FILE (never pass it as an argument: others could see it)".into(),
            )
        })?),
    };
    let trimmed = Zeroizing::new(text.trim_end_matches(['\r', '\n']).to_owned());
    Token::parse(trimmed).map_err(|error| Failure::Usage(error.to_string()))
}

fn read_token_file(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let mut text = Zeroizing::new(String::new());
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(4096).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(4096).read_to_string(&mut text))
    };
    read.map_err(|error| Failure::environment(path.display(), error))?;
    Ok(text)
}
