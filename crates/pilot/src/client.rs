//! The client side: the service's address, the caller's token, and one request at a time.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use pilot_core::token::Token;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use zeroize::Zeroizing;

use crate::environment::Environment;
use crate::exit::Failure;

mod tls;

use tls::Trust;

const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(clap::Args, Clone)]
pub struct ClientArguments {
    /// The service's address [env: PILOT_URL] [default: http://127.0.0.1:7450]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// A file that holds the token, or - for standard input [default: PILOT_TOKEN, else you are asked]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The issuer of an https service's certificate, in PEM [env: PILOT_CA_FILE] [default: those the system trusts]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

pub struct Client {
    base: Uri,
    token: Token,
    /// For https alone.
    trust: Option<Trust>,
}

pub struct Reply {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Client {
    pub fn new(arguments: &ClientArguments, environment: &Environment) -> Result<Client, Failure> {
        let url = arguments.url.as_deref().or(environment.get("PILOT_URL")).unwrap_or("http://127.0.0.1:7450");
        let ca_file = arguments.ca_file.as_deref().or(environment.get("PILOT_CA_FILE").map(Path::new));
        let base = parse_url(url)?;
        let trust = is_encrypted(&base).then(|| Trust::load(ca_file)).transpose()?;
        Ok(Client { base, token: read_token(arguments, environment)?, trust })
    }

    pub fn token(&self) -> &Token {
        &self.token
    }

    /// A client for a token the program holds itself.
    pub fn with_token(url: &str, token: Token) -> Result<Client, Failure> {
        let base = parse_url(url)?;
        let trust = is_encrypted(&base).then(|| Trust::load(None)).transpose()?;
        Ok(Client { base, token, trust })
    }

    pub fn get(&self, path: &str) -> Result<Reply, Failure> {
        self.send(Method::GET, path, None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Reply, Failure> {
        self.send(Method::POST, path, Some(body))
    }

    fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Reply, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::environment("runtime", error))?;
        let unreachable =
            |cause: String| Failure::environment(format!("{}: the service cannot be reached", self.base), cause);
        let answered =
            runtime.block_on(async { tokio::time::timeout(PATIENCE, self.request(method, path, body)).await });
        answered
            .map_err(|_| unreachable(format!("no answer within {} s", PATIENCE.as_secs())))?
            .map_err(|error| unreachable(error.to_string()))
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply, Box<dyn std::error::Error + Send + Sync>> {
        let authority = self.base.authority().map_or("", |authority| authority.as_str());
        let host = self.base.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.base.port_u16().unwrap_or(if self.trust.is_some() { 443 } else { 80 });
        let stream = TcpStream::connect((host, port)).await?;
        let mut bearer = HeaderValue::from_str(&self.token.bearer())?;
        bearer.set_sensitive(true);
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, authority)
            .header(AUTHORIZATION, bearer)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("pilot/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))?;
        match &self.trust {
            Some(trust) => exchange(trust.connect(host, stream).await?, request).await,
            None => exchange(stream, request).await,
        }
    }
}

/// One request and its answer on a connection of their own.
async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Reply, Box<dyn std::error::Error + Send + Sync>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await?.to_bytes();
    drop(sender);
    driver.abort();
    Ok(Reply { status, body })
}

impl Reply {
    /// The answer as `T`, or the problem in the service's own words.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        if !self.status.is_success() {
            return Err(self.refusal());
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::environment("the answer is not what a pilot service sends", error))
    }

    fn refusal(&self) -> Failure {
        #[derive(Deserialize)]
        struct Problem {
            detail: String,
            code: String,
        }
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) => Failure::Refused(format!("{} {}: {}", self.status.as_u16(), problem.code, problem.detail)),
            Err(_) => Failure::Environment(format!("the answer is {} and not from a pilot service", self.status)),
        }
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

fn read_token(arguments: &ClientArguments, environment: &Environment) -> Result<Token, Failure> {
    let text = match (&arguments.token_file, environment.token()) {
        (Some(path), _) => read_token_file(path)?,
        (None, Some(token)) => token,
        (None, None) => Zeroizing::new(rpassword::prompt_password("Token: ").map_err(|_| {
            Failure::Usage(
                "no token: set PILOT_TOKEN, or use --token-file FILE (never an argument: others could see it)".into(),
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
