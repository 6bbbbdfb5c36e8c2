//! Bytes in one direction over TLS, for protocols in which the receiver answers nothing. Only its answer to the end of
//! the connection says that it has read everything.

use std::io;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::trust::{self, Issuers, Pair, TrustError};
use super::{Cause, OutgoingError, in_time};

/// A receiver that goes on reading gets each piece well within the time allowed for it.
const PIECE_BYTES: usize = 16 * 1024;
/// If the receiver had closed before it got our last bytes, its system says so within one round trip.
const ROUND_TRIP: Duration = Duration::from_millis(250);

/// Where to, and whom to trust, read once.
pub struct Lines {
    tls: TlsConnector,
    host: String,
    port: u16,
}

/// One connection.
pub struct Line {
    stream: TlsStream<TcpStream>,
}

impl Lines {
    pub fn new(host: &str, port: u16, issuers: &Issuers, own: Option<&Pair>) -> Result<Lines, TrustError> {
        Ok(Lines { tls: trust::connector(issuers, own, None)?, host: host.to_owned(), port })
    }

    /// Connects, and knows who answered, within `patience`.
    pub async fn connect(&self, patience: Duration) -> Result<Line, OutgoingError> {
        in_time(patience, async {
            let name = ServerName::try_from(self.host.clone())?;
            let stream = TcpStream::connect((&*self.host, self.port)).await?;
            stream.set_nodelay(true)?;
            Ok(Line { stream: self.tls.connect(name, stream).await? })
        })
        .await
    }
}

impl Line {
    /// Hands the bytes to the system. Each piece of them has to be accepted within `patience`.
    pub async fn write(&mut self, bytes: &[u8], patience: Duration) -> Result<(), OutgoingError> {
        self.expect_silence().await?;
        for piece in bytes.chunks(PIECE_BYTES) {
            in_time(patience, async { Ok(self.stream.write_all(piece).await?) }).await?;
        }
        in_time(patience, async { Ok(self.stream.flush().await?) }).await
    }

    /// Ends the connection, and waits for the receiver to end it too. If it does, it has read everything that was
    /// written: a connection that is closed with unread bytes is reset.
    pub async fn finish(mut self, patience: Duration) -> Result<(), OutgoingError> {
        self.expect_silence().await?;
        in_time(patience, async {
            self.stream.shutdown().await?;
            let mut ignored = [0; 1024];
            loop {
                match self.stream.read(&mut ignored).await {
                    Ok(0) => break,
                    Ok(_) => {}
                    // Many receivers end the connection without the farewell that TLS asks for.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                    Err(error) => return Err(error.into()),
                }
            }
            tokio::time::sleep(ROUND_TRIP).await;
            match self.stream.get_ref().0.take_error()? {
                Some(error) => Err(error.into()),
                None => Ok(()),
            }
        })
        .await
    }

    /// Fails if the receiver has already ended the connection: then nothing shows what it has read.
    async fn expect_silence(&mut self) -> Result<(), OutgoingError> {
        let mut ignored = [0; 1024];
        loop {
            let read = tokio::time::timeout(Duration::ZERO, self.stream.read(&mut ignored)).await;
            match read {
                Err(_) => return Ok(()),
                Ok(Ok(length)) if length > 0 => {}
                Ok(ended) => {
                    let unasked: Cause = "the receiver has ended the connection".into();
                    let cause = ended.err().map_or(unasked, Into::into);
                    return Err(OutgoingError::Failed(cause));
                }
            }
        }
    }
}
