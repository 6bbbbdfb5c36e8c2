//! A TLS client that shows what was agreed in the handshake.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, NamedGroup, ProtocolVersion, RootCertStore, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::authority::Pair;

pub struct Https {
    address: SocketAddr,
    config: ClientConfig,
}

/// What both sides agreed upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    pub version: ProtocolVersion,
    pub group: NamedGroup,
    pub protocol: String,
    pub certificate: Vec<u8>,
}

impl Https {
    pub fn new(address: SocketAddr, ca: &str, protocols: &[&str]) -> Https {
        Https::with(address, ca, protocols, rustls::ALL_VERSIONS, None)
    }

    pub fn with(
        address: SocketAddr,
        ca: &str,
        protocols: &[&str],
        versions: &[&'static SupportedProtocolVersion],
        own: Option<&Pair>,
    ) -> Https {
        let mut roots = RootCertStore::empty();
        roots.add(der(ca)).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![der(&pair.certificate)], key).unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Https { address, config }
    }

    pub async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let connector = TlsConnector::from(Arc::new(self.config.clone()));
        connector.connect(ServerName::IpAddress(self.address.ip().into()), stream).await
    }

    /// A connection for several requests, by HTTP/1.1.
    pub async fn open(&self) -> io::Result<Open> {
        let stream = self.connect().await?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(Open { sender })
    }

    /// One request on a connection of its own; an error when the connection came to nothing.
    pub async fn get(&self, path: &str, token: Option<&str>) -> io::Result<(Agreed, Response<Bytes>)> {
        let stream = self.connect().await?;
        let agreed = agreed(&stream);
        let mut request = Request::get(format!("https://{}{path}", self.address));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let is_http2 = agreed.protocol == "h2";
        if !is_http2 {
            request = request.header("host", self.address.to_string());
        }
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let answered = if is_http2 { over_http2(stream, request).await } else { over_http1(stream, request).await };
        let (head, body) = answered.map_err(io::Error::other)?.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok((agreed, Response::from_parts(head, body)))
    }
}

pub struct Open {
    sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
}

impl Open {
    /// The answer, whose body may still be coming.
    pub async fn begin(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response<hyper::body::Incoming> {
        self.sender.ready().await.unwrap();
        let mut request = Request::builder().method(method).uri(path).header("host", "a");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.sender.send_request(request.body(Full::default()).unwrap()).await.unwrap()
    }

    pub async fn status(&mut self, path: &str) -> u16 {
        let response = self.begin("GET", path, &[]).await;
        let status = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        status
    }

    pub async fn text(&mut self, method: &str, path: &str) -> String {
        let response = self.begin(method, path, &[]).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        format!("{status} {}", String::from_utf8_lossy(&body))
    }
}

type Answered = hyper::Result<Response<hyper::body::Incoming>>;

async fn over_http2(stream: TlsStream<TcpStream>, request: Request<Empty<Bytes>>) -> Answered {
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

async fn over_http1(stream: TlsStream<TcpStream>, request: Request<Empty<Bytes>>) -> Answered {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

fn agreed(stream: &TlsStream<TcpStream>) -> Agreed {
    let (_, session) = stream.get_ref();
    Agreed {
        version: session.protocol_version().unwrap(),
        group: session.negotiated_key_exchange_group().unwrap().name(),
        protocol: String::from_utf8(session.alpn_protocol().unwrap_or_default().to_vec()).unwrap(),
        certificate: session.peer_certificates().unwrap()[0].to_vec(),
    }
}

pub fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}
