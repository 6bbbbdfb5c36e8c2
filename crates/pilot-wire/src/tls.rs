//! The handshake of a listener that uses TLS.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The configuration for new connections. Existing connections keep the one they were opened with.
pub struct Tls {
    current: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    pub fn new(config: Arc<ServerConfig>) -> Tls {
        Tls { current: RwLock::new(config) }
    }

    /// Uses this configuration for new connections from now on.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// The handshake. The deadline for a request head applies, which the caller enforces.
    pub async fn accept<S>(&self, socket: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(socket).await
    }
}
