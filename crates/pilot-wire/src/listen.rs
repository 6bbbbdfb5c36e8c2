//! Accepts connections, serves HTTP/1.1 and HTTP/2 on them, and closes those that are too slow.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use pilot_core::limits::{
    CONNECTIONS_MAX, HEADER_BLOCK_BYTES_MAX, HTTP2_CONNECTION_BYTES, HTTP2_STREAM_BYTES, HTTP2_STREAMS_MAX,
    URL_BYTES_MAX,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::server::TlsStream;

use crate::body::Body;
use crate::caps::Cap;
use crate::clock;
use crate::deadline::{Connection, Deadlines, PeerIsLate, TICK, Told, Watchdog, Watched};
use crate::framing::{Ambiguous, Malformed};
use crate::peer::{Address, PeerCertificate, origin};
use crate::served::Served;
use crate::socket_file::{SocketFile, SocketFileError, Wanted};
use crate::tls::Tls;

mod crowd;
mod raw;

use crowd::{Crowd, Place, Shared, find_place};
use raw::{Marks, Raw};

/// How long the last requests may take after the service was told to stop.
pub const DRAIN_DEADLINE: Duration = Duration::from_secs(30);
/// How many connections may wait in the kernel to be accepted. With the usual 128, a burst of clients triggers the
/// kernel's flood protection, and some wait a second for their next attempt.
const WAITING_CONNECTIONS_MAX: u32 = 4096;

pub struct Listener {
    door: Door,
    deadlines: Deadlines,
    connections_max: usize,
    tls: Option<Arc<Tls>>,
    shared: Shared,
}

/// Where connections arrive.
enum Door {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    pub fn bind(address: SocketAddr) -> io::Result<Listener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Lingering connections of the previous run must not prevent this one.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let socket = socket.listen(WAITING_CONNECTIONS_MAX)?;
        Ok(Listener::at(Door::Tcp(socket)))
    }

    /// On a Unix socket, where a peer is known by its user. The file is removed when the listener ends.
    pub fn bind_file(wanted: &Wanted) -> Result<Listener, SocketFileError> {
        let (socket, file) = SocketFile::bind(wanted, WAITING_CONNECTIONS_MAX)?;
        Ok(Listener::at(Door::Unix(socket, file)))
    }

    fn at(door: Door) -> Listener {
        Listener {
            door,
            deadlines: Deadlines::default(),
            connections_max: CONNECTIONS_MAX,
            tls: None,
            shared: Box::new(|_| false),
        }
    }

    /// The address and the real port, or the socket's path after `unix:`.
    pub fn address(&self) -> io::Result<String> {
        match &self.door {
            Door::Tcp(socket) => Ok(socket.local_addr()?.to_string()),
            Door::Unix(_, file) => Ok(format!("unix:{}", file.path().display())),
        }
    }

    /// Never more connections than the process may have open files.
    pub fn limit_connections(&mut self, connections_max: usize) {
        self.connections_max = connections_max.min(CONNECTIONS_MAX);
    }

    /// Addresses that many callers share, such as a mesh's: they may take every place.
    pub fn share_addresses(&mut self, shared: impl Fn(Address) -> bool + Send + Sync + 'static) {
        self.shared = Box::new(shared);
    }

    /// From now on connections begin with a TLS handshake, unless they arrive on a Unix socket.
    pub fn encrypt(&mut self, tls: Arc<Tls>) {
        self.tls = Some(tls);
    }

    /// Serves until `stop` turns true, then drains and returns.
    pub async fn serve<S, H, F>(self, app: Arc<S>, handler: H, stop: watch::Receiver<bool>)
    where
        S: Served,
        H: Fn(Arc<S>, Address, Request<Incoming>) -> F + Copy + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let places = Arc::new(Semaphore::new(self.connections_max));
        let mut stop = stop;
        let watchdog = Watchdog::new(self.deadlines);
        let crowd = Arc::new(Crowd::new(self.connections_max, self.shared));
        let ticking = tokio::spawn({
            let (watchdog, crowd) = (Arc::clone(&watchdog), Arc::clone(&crowd));
            async move { watchdog.run(|| crowd.forget_arrivals(TICK)).await }
        });
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                accepted = accept(&self.door) => accepted,
            };
            let Some((stream, address)) = accepted else { continue };
            let Some(place) = find_place(&*app, &places, &crowd, &watchdog, address, &mut stop).await else { continue };
            let (app, connection) = (Arc::clone(&app), watchdog.watch(Some(origin(address))));
            let tls = self.tls.clone();
            tokio::spawn(async move {
                app.traffic().connection_opened();
                let end = OtherEnd { address, certificate: None, place };
                match (stream, tls) {
                    (Stream::Unix(socket), _) => {
                        let socket = Watched { socket, connection: Arc::clone(&connection) };
                        serve_connection(&app, socket, connection, end, handler).await;
                    }
                    (Stream::Tcp(socket), None) => {
                        let socket = Watched { socket, connection: Arc::clone(&connection) };
                        serve_connection(&app, socket, connection, end, handler).await;
                    }
                    (Stream::Tcp(socket), Some(tls)) => {
                        let socket = Watched { socket, connection: Arc::clone(&connection) };
                        serve_encrypted(&app, &tls, socket, end, connection, handler).await;
                    }
                }
                app.traffic().connection_closed();
            });
        }
        drop(self.door);
        watchdog.stop();
        let all = u32::try_from(self.connections_max).unwrap_or(u32::MAX);
        if tokio::time::timeout(DRAIN_DEADLINE, places.acquire_many(all)).await.is_err() {
            tracing::warn!("some connections did not finish within {} s and are cut off", DRAIN_DEADLINE.as_secs());
        }
        ticking.abort();
    }
}

async fn accept(door: &Door) -> Option<(Stream, Address)> {
    let accepted = match door {
        Door::Tcp(socket) => socket.accept().await.map(|(stream, address)| {
            // Answers are written whole; waiting to fill a packet would only delay them.
            let _ = stream.set_nodelay(true);
            (Stream::Tcp(stream), Address::Ip(address.ip().to_canonical()))
        }),
        Door::Unix(socket, _) => socket.accept().await.and_then(|(stream, _)| {
            let user = stream.peer_cred()?.uid();
            Ok((Stream::Unix(stream), Address::User(user)))
        }),
    };
    match accepted {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            // Out of file descriptors, most likely. Pausing lets connections end; spinning would not.
            tracing::warn!(error = %error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// A request being answered; the connection's deadlines are told when it ends.
struct Begun<'a>(&'a Connection);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.request_ended();
    }
}

/// What every request of a connection is told about the other end.
struct OtherEnd {
    /// According to the socket.
    address: Address,
    certificate: Option<PeerCertificate>,
    place: Place,
}

/// The handshake first. The deadline for a request head applies to it, and a failure ends only this connection.
async fn serve_encrypted<S, H, F>(
    app: &Arc<S>,
    tls: &Tls,
    socket: Watched<TcpStream>,
    end: OtherEnd,
    connection: Arc<Connection>,
    handler: H,
) where
    S: Served,
    H: Fn(Arc<S>, Address, Request<Incoming>) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    if !clock::has_date() {
        return;
    }
    let mut hearing = connection.hear();
    let shaken = tokio::select! {
        biased;
        told = poll_fn(|context| hearing.poll(context)) => {
            if told == Told::Expired {
                app.traffic().connection_expired();
            }
            return;
        }
        shaken = shake_hands(tls, socket) => shaken,
    };
    match shaken {
        Ok(Shaken::Plain(socket)) => {
            app.traffic().handshake_failed();
            serve_connection(app, socket, connection, end, answer_plain).await;
        }
        Ok(Shaken::Encrypted(stream)) => {
            let (_, session) = stream.get_ref();
            let certificate = session.peer_certificates();
            let certificate =
                certificate.map(|chain| PeerCertificate(chain.iter().map(|der| der.clone().into_owned()).collect()));
            let end = OtherEnd { certificate, ..end };
            serve_connection(app, stream, connection, end, handler).await;
        }
        Err(error) => {
            app.traffic().handshake_failed();
            let origin = Some(end.address).filter(|_| app.records_origins()).map(|address| address.to_string());
            let origin = origin.unwrap_or_default();
            tracing::debug!(error = %error, origin, "a TLS handshake failed");
        }
    }
}

enum Shaken {
    Encrypted(Box<TlsStream<Watched<TcpStream>>>),
    /// The peer began with a letter, as HTTP does and TLS never does.
    Plain(Watched<TcpStream>),
}

async fn shake_hands(tls: &Tls, socket: Watched<TcpStream>) -> io::Result<Shaken> {
    let mut first = [0];
    socket.socket.peek(&mut first).await?;
    if first.iter().all(u8::is_ascii_uppercase) {
        return Ok(Shaken::Plain(socket));
    }
    Ok(Shaken::Encrypted(Box::new(tls.accept(socket).await?)))
}

/// Tells a client that used http instead of https, whatever it asked for.
async fn answer_plain<S: Served>(app: Arc<S>, _: Address, _: Request<Incoming>) -> Response<Body> {
    let mut response = app.refuse(Malformed::Framing("This address speaks TLS: use https."));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn serve_connection<S, T, H, F>(app: &Arc<S>, socket: T, connection: Arc<Connection>, end: OtherEnd, handler: H)
where
    S: Served,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Arc<S>, Address, Request<Incoming>) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let marks = Arc::new(Marks::default());
    let io = TokioIo::new(Raw::new(app, socket, &marks));
    let service = service_fn(|mut request: Request<Incoming>| {
        if let Some(certificate) = &end.certificate {
            request.extensions_mut().insert(certificate.clone());
        }
        if let Some(detail) = marks.request_began() {
            request.extensions_mut().insert(Ambiguous(detail));
        }
        let connection = Arc::clone(&connection);
        let is_guarded = S::is_guarded(request.uri().path());
        connection.request_began(request.version());
        // HTTP/1 has one answer at a time, which is counted with its connection.
        let stream = (request.version() == Version::HTTP_2).then(|| end.place.begin_stream());
        if stream.as_ref().is_some_and(Option::is_none) {
            app.traffic().caps.reached(Cap::Streams, &end.place.origin());
            connection.expire();
        }
        let answer = handler(Arc::clone(app), end.address, request);
        async move {
            // Also if the request is abandoned halfway.
            let request = Begun(&connection);
            let response = answer.await.map(|body| body.watched_by(&connection));
            let response = match stream.flatten() {
                Some(stream) => response.map(|body| body.until_sent(stream)),
                None => response,
            };
            if is_guarded && S::is_for_known_callers(response.status()) {
                connection.caller_is_known();
            }
            if response.extensions().get::<PeerIsLate>().is_some() {
                connection.end();
            }
            drop(request);
            Ok::<_, Infallible>(response)
        }
    });
    let builder = builder();
    let (mut serving, mut hearing) = (pin!(builder.serve_connection(io, service)), connection.hear());
    poll_fn(|context| {
        loop {
            if !clock::has_date() {
                return Poll::Ready(());
            }
            // An error here is the peer's: a malformed message has already been answered with 400, and a broken
            // connection is gone.
            if serving.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            match hearing.poll(context) {
                Poll::Ready(Told::Stop) => serving.as_mut().graceful_shutdown(),
                Poll::Ready(Told::Expired) => {
                    app.traffic().connection_expired();
                    return Poll::Ready(());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // The deadlines are ours (see `deadline`): the library's would also close idle connections after a few seconds.
    // Half-closed connections are answered too: otherwise the library would keep reading during a request, each time
    // into a new buffer, to notice when the peer goes away. A feed notices that at its next write.
    builder
        .http1()
        .header_read_timeout(None)
        .half_close(true)
        .max_buf_size(HEADER_BLOCK_BYTES_MAX + URL_BYTES_MAX + 8 * 1024);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        // How much a peer may send before it is read, and how much is produced for it before it is received.
        .initial_stream_window_size(HTTP2_STREAM_BYTES)
        .initial_connection_window_size(HTTP2_CONNECTION_BYTES)
        .max_send_buf_size(HTTP2_STREAM_BYTES as usize)
        .max_header_list_size(u32::try_from(HEADER_BLOCK_BYTES_MAX + URL_BYTES_MAX).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(Duration::from_secs(20)))
        .keep_alive_timeout(Duration::from_secs(10));
    builder
}
