//! A connection that is read byte by byte until it is encrypted.
//!
//! The mail library reads ahead, and keeps what it has read when TLS begins. Somebody on the way could add answers to
//! the one that says `go ahead`, and they would be taken for the server's own: a mail would count as accepted that never
//! was. If no more is read than the line that is asked for, whatever follows it goes to TLS, which rejects it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The few kilobytes that a mail server says are not worth a second way of reading for the time after.
#[derive(Debug)]
pub(super) struct ByByte(pub(super) TcpStream);

impl AsyncRead for ByByte {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte);
        ready!(Pin::new(&mut self.0).poll_read(context, &mut one))?;
        into.put_slice(one.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ByByte {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl AsyncTokioStream for ByByte {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
}
