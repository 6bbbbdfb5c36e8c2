//! Requests the service makes itself: one connection each, no redirect is followed, no proxy is asked, the time is
//! bounded and so is the answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const ANSWER_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{}: cannot be read as PEM certificates ({cause})", path.display())]
    File { path: PathBuf, cause: String },
    #[error("there is no certificate authority to trust: the system has none; set ca_file to a file of them")]
    Nobody,
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum OutgoingError {
    #[error("no answer within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("{0}")]
    Failed(Cause),
}

pub struct Reply {
    pub status: u16,
    pub body: Bytes,
}

/// Whom to trust, read once.
pub struct Outgoing {
    tls: Option<TlsConnector>,
    answer_bytes_max: usize,
}

impl Outgoing {
    /// With `https`, the system's certificate authorities are trusted, and those in `ca_file`.
    pub fn new(https: bool, ca_file: Option<&Path>) -> Result<Outgoing, TrustError> {
        if !https {
            return Ok(Outgoing { tls: None, answer_bytes_max: ANSWER_BYTES_MAX });
        }
        let mut roots = RootCertStore::empty();
        // What cannot be read of the system's store is simply not trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = ca_file {
            let failed = |cause: String| TrustError::File { path: path.to_owned(), cause };
            let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
            let before = roots.len();
            for certificate in certificates {
                let certificate = certificate.map_err(|error| failed(error.to_string()))?;
                roots.add(certificate).map_err(|error| failed(error.to_string()))?;
            }
            if roots.len() == before {
                return Err(failed("it contains none".into()));
            }
        }
        if roots.is_empty() {
            return Err(TrustError::Nobody);
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let tls = Some(TlsConnector::from(Arc::new(config)));
        Ok(Outgoing { tls, answer_bytes_max: ANSWER_BYTES_MAX })
    }

    /// For servers whose answers are larger than most.
    #[must_use]
    pub fn with_answer_bytes_max(self, answer_bytes_max: usize) -> Outgoing {
        Outgoing { answer_bytes_max, ..self }
    }

    pub async fn post(&self, url: &Uri, body: String, patience: Duration) -> Result<Reply, OutgoingError> {
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        self.ask(request(Method::POST, url, &[(CONTENT_TYPE, plain)], body), patience).await
    }

    pub async fn get(&self, url: &Uri, patience: Duration) -> Result<Reply, OutgoingError> {
        self.ask(request(Method::GET, url, &[], String::new()), patience).await
    }

    /// For JSON, as discovery documents and key sets are.
    pub async fn get_json(&self, url: &Uri, patience: Duration) -> Result<Reply, OutgoingError> {
        let json = HeaderValue::from_static("application/json");
        self.ask(request(Method::GET, url, &[(ACCEPT, json)], String::new()), patience).await
    }

    /// A form, as OAuth endpoints take it. `authorization` goes into the header and no log.
    pub async fn post_form(
        &self,
        url: &Uri,
        form: String,
        authorization: HeaderValue,
        patience: Duration,
    ) -> Result<Reply, OutgoingError> {
        let media = HeaderValue::from_static("application/x-www-form-urlencoded");
        let json = HeaderValue::from_static("application/json");
        let headers = [(CONTENT_TYPE, media), (ACCEPT, json), (AUTHORIZATION, authorization)];
        self.ask(request(Method::POST, url, &headers, form), patience).await
    }

    pub async fn ask(&self, request: Request<String>, patience: Duration) -> Result<Reply, OutgoingError> {
        let answered = tokio::time::timeout(patience, self.send(request)).await;
        answered.map_err(|_| OutgoingError::TooSlow(patience))?.map_err(OutgoingError::Failed)
    }

    async fn send(&self, request: Request<String>) -> Result<Reply, Cause> {
        let url = request.uri();
        let is_https = url.scheme_str() == Some("https");
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            Some(tls) if is_https => {
                let name = ServerName::try_from(host.to_owned())?;
                exchange(tls.connect(name, stream).await?, request, self.answer_bytes_max).await
            }
            None if is_https => Err("TLS is not set up".into()),
            _ => exchange(stream, request, self.answer_bytes_max).await,
        }
    }
}

pub fn request(method: Method, url: &Uri, headers: &[(HeaderName, HeaderValue)], body: String) -> Request<String> {
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut()) = (method, url.clone());
    request.headers_mut().extend(headers.iter().cloned());
    request
}

async fn exchange<S>(stream: S, request: Request<String>, answer_bytes_max: usize) -> Result<Reply, Cause>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().map_or("", |authority| authority.as_str());
    head.headers.insert(HOST, HeaderValue::from_str(authority)?);
    head.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("pilot/", env!("CARGO_PKG_VERSION"))));
    head.uri = head.uri.path_and_query().map_or("/", |target| target.as_str()).parse()?;
    let request = Request::from_parts(head, Full::new(Bytes::from(body)));
    let answered = async move {
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), answer_bytes_max).collect().await?.to_bytes();
        Ok(Reply { status, body })
    };
    // The connection's own error, if any, is what the exchange reports.
    let (answered, _) = tokio::join!(answered, connection);
    answered
}
