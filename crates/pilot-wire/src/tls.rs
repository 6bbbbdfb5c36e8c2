//! The handshake of a listener that speaks TLS.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What new connections are greeted with. Connections that exist keep what they were opened with.
pub struct Tls {
    current: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    pub fn new(config: Arc<ServerConfig>) -> Tls {
        Tls { current: RwLock::new(config) }
    }

    /// From now on new connections get this.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// The handshake. It has the deadline of the request's head, which the caller keeps.
    pub async fn accept<S>(&self, socket: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(socket).await
    }
}
