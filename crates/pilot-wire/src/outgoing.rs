//! Requests that the program makes: one connection each, no redirect is followed, no proxy is asked, the time is
//! bounded and so is the answer.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

mod forbidden;
mod line;
mod target;
mod trust;

pub use forbidden::why_forbidden;
pub use line::{Line, Lines};
pub use target::{Reach, Target, TargetError};
pub use trust::{Issuers, Pair, TrustError};

const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// How much is read of an answer that nobody looks at, and for how long. Without reading, the peer would see a reset.
const IGNORED_BYTES_MAX: usize = 4 * 1024;
const IGNORED_PATIENCE: Duration = Duration::from_secs(1);
/// A name with many addresses: each is waited for at least as long as a lost packet takes to be sent again.
const CONNECT_PATIENCE_MIN: Duration = Duration::from_secs(2);

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

/// What is left of an answer whose body nobody looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    pub status: u16,
    /// In whole seconds; a date is not read.
    pub retry_after: Option<Duration>,
}

/// An answer whose body is still arriving. Its connection ends with it.
pub struct Arriving {
    pub head: http::response::Parts,
    body: Incoming,
    _connection: Connection,
}

/// Whom to trust, read once.
pub struct Outgoing {
    tls: Option<TlsConnector>,
    answer_bytes_max: usize,
}

impl Outgoing {
    /// With `https`, the system's certificate authorities are trusted, and those in `ca_file`.
    pub fn new(https: bool, ca_file: Option<&Path>) -> Result<Outgoing, TrustError> {
        if https { Outgoing::trusting(&Issuers::SystemAnd(ca_file), None) } else { Ok(Outgoing::plain()) }
    }

    /// Without TLS.
    pub fn plain() -> Outgoing {
        Outgoing { tls: None, answer_bytes_max: ANSWER_BYTES_MAX }
    }

    pub fn trusting(issuers: &Issuers, own: Option<&Pair>) -> Result<Outgoing, TrustError> {
        let tls = Some(trust::connector(issuers, own, Some(b"http/1.1"))?);
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

    /// Bytes of some media type, for an answer that is bytes too.
    pub async fn post_bytes(
        &self,
        url: &Uri,
        media: &'static str,
        body: Vec<u8>,
        patience: Duration,
    ) -> Result<Reply, OutgoingError> {
        let media = HeaderValue::from_static(media);
        self.ask(request(Method::POST, url, &[(CONTENT_TYPE, media)], body), patience).await
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

    /// The whole answer, all of it within `patience`.
    pub async fn ask(&self, request: Request<impl Into<Bytes>>, patience: Duration) -> Result<Reply, OutgoingError> {
        in_time(patience, async {
            let arriving = self.send(request).await?;
            let status = arriving.head.status.as_u16();
            let body = Limited::new(arriving.body, self.answer_bytes_max).collect().await?.to_bytes();
            Ok(Reply { status, body })
        })
        .await
    }

    /// An answer of any length: its head within `patience`, and the rest piece by piece.
    pub async fn open(&self, request: Request<String>, patience: Duration) -> Result<Arriving, OutgoingError> {
        in_time(patience, self.send(request)).await
    }

    /// Posts to an address that the service did not choose itself: only to what `reach` allows. The head of the answer
    /// has to arrive within `patience`, and stands from then on: what follows it changes nothing.
    pub async fn deliver(
        &self,
        target: &Target,
        reach: &Reach,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
        patience: Duration,
    ) -> Result<Receipt, OutgoingError> {
        let mut arriving = in_time(patience, async {
            let addresses = target.resolve(reach).await?;
            let stream = connect(&addresses, patience).await?;
            self.speak(stream, request(Method::POST, target.uri(), headers, body)).await
        })
        .await?;
        let retry_after = arriving.head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let receipt =
            Receipt { status: arriving.head.status.as_u16(), retry_after: retry_after.map(Duration::from_secs) };
        let _ = tokio::time::timeout(IGNORED_PATIENCE, arriving.ignore_rest()).await;
        Ok(receipt)
    }

    async fn send(&self, request: Request<impl Into<Bytes>>) -> Result<Arriving, Cause> {
        let url = request.uri();
        let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
        let stream = TcpStream::connect((host_of(url), port)).await?;
        // Boxed, so that whoever waits for an answer does not carry the space for the handshake.
        Box::pin(self.speak(stream, request)).await
    }

    async fn speak(&self, stream: TcpStream, request: Request<impl Into<Bytes>>) -> Result<Arriving, Cause> {
        let is_https = request.uri().scheme_str() == Some("https");
        stream.set_nodelay(true)?;
        match &self.tls {
            Some(tls) if is_https => {
                let name = ServerName::try_from(host_of(request.uri()).to_owned())?;
                exchange(tls.connect(name, stream).await?, request).await
            }
            None if is_https => Err("TLS is not set up".into()),
            _ => exchange(stream, request).await,
        }
    }
}

/// Tries one address after the other. Each gets its share of the time, so that one that swallows packets leaves some for
/// the next; the last one has whatever the caller still allows.
async fn connect(addresses: &[SocketAddr], patience: Duration) -> Result<TcpStream, Cause> {
    let Some((last, earlier)) = addresses.split_last() else { return Err("there is no address".into()) };
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    let share = (patience / count).max(CONNECT_PATIENCE_MIN);
    for address in earlier {
        if let Ok(Ok(stream)) = tokio::time::timeout(share, TcpStream::connect(address)).await {
            return Ok(stream);
        }
    }
    Ok(TcpStream::connect(last).await?)
}

fn host_of(url: &Uri) -> &str {
    url.host().unwrap_or_default().trim_matches(['[', ']'])
}

impl Arriving {
    /// Reads a little of the body.
    async fn ignore_rest(&mut self) {
        let mut read = 0;
        while read < IGNORED_BYTES_MAX {
            match self.next(IGNORED_PATIENCE).await {
                Ok(Some(piece)) => read += piece.len().max(1),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// The next piece of the body, if there is one.
    pub async fn next(&mut self, patience: Duration) -> Result<Option<Bytes>, OutgoingError> {
        in_time(patience, async {
            while let Some(frame) = self.body.frame().await {
                if let Ok(bytes) = frame?.into_data() {
                    return Ok(Some(bytes));
                }
            }
            Ok(None)
        })
        .await
    }

    /// What is left of the body, if it is not longer than this.
    pub async fn rest(self, bytes_max: usize, patience: Duration) -> Result<Bytes, OutgoingError> {
        in_time(patience, async { Ok(Limited::new(self.body, bytes_max).collect().await?.to_bytes()) }).await
    }
}

/// Drives the connection, and ends it when it is dropped: without a farewell, because the answer's length was known.
struct Connection(JoinHandle<Result<(), hyper::Error>>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub fn request<B>(method: Method, url: &Uri, headers: &[(HeaderName, HeaderValue)], body: B) -> Request<B> {
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut()) = (method, url.clone());
    request.headers_mut().extend(headers.iter().cloned());
    request
}

async fn in_time<T>(patience: Duration, step: impl Future<Output = Result<T, Cause>>) -> Result<T, OutgoingError> {
    let done = tokio::time::timeout(patience, step).await;
    done.map_err(|_| OutgoingError::TooSlow(patience))?.map_err(OutgoingError::Failed)
}

async fn exchange<S, B>(stream: S, request: Request<B>) -> Result<Arriving, Cause>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Into<Bytes>,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = Connection(tokio::spawn(connection));
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().map_or("", |authority| authority.as_str());
    head.headers.insert(HOST, HeaderValue::from_str(authority)?);
    head.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("pilot/", env!("CARGO_PKG_VERSION"))));
    head.uri = head.uri.path_and_query().map_or("/", |target| target.as_str()).parse()?;
    let response = sender.send_request(Request::from_parts(head, Full::<Bytes>::new(body.into()))).await?;
    let (head, body) = response.into_parts();
    Ok(Arriving { head, body, _connection: connection })
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// Connections to it are neither accepted nor refused, because its queue is full. They last as long as what is
    /// returned.
    async fn full() -> (SocketAddr, TcpListener, Vec<TcpStream>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        while let Ok(connected) = tokio::time::timeout(CONNECT_PATIENCE_MIN, TcpStream::connect(address)).await {
            waiting.push(connected.unwrap());
        }
        (address, listener, waiting)
    }

    /// The clock stands still, except when there is nothing to do but wait.
    #[tokio::test(start_paused = true)]
    async fn an_address_that_swallows_packets_leaves_time_for_the_next() {
        let (silent, _listener, _waiting) = full().await;
        let open = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = open.local_addr().unwrap();
        for (addresses, patience, seconds) in [
            (vec![silent, address], Duration::from_secs(15), 7),
            (vec![silent, silent, address], Duration::from_secs(15), 10),
            (vec![silent, silent, address], Duration::from_secs(3), 4),
            (vec![address, silent], Duration::from_secs(15), 0),
        ] {
            let begun = tokio::time::Instant::now();
            let stream = connect(&addresses, patience).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), address);
            assert_eq!(begun.elapsed().as_secs(), seconds, "{addresses:?}");
        }
        assert!(connect(&[], Duration::from_secs(15)).await.is_err());
    }
}
