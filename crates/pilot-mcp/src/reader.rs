//! Standard input that says when it has ended, so that nothing waits for an agent that is gone.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

pub(crate) struct UntilEnd<R> {
    inner: R,
    ended: watch::Sender<bool>,
}

impl<R> UntilEnd<R> {
    pub(crate) fn new(inner: R, ended: watch::Sender<bool>) -> UntilEnd<R> {
        UntilEnd { inner, ended }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilEnd<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if matches!(polled, Poll::Ready(_)) && buffer.filled().len() == before {
            self.ended.send_replace(true);
        }
        polled
    }
}
