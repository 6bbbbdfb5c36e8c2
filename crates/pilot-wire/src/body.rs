//! The body of an answer: complete, as almost all are, or streamed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use pilot_core::limits::SMALL_BODY_BYTES_MAX;
use tokio::sync::mpsc;

use crate::deadline::{Connection, Lasts};

/// The rest of an answer cannot be sent. The connection is closed, so that nobody takes the beginning for the whole.
#[derive(Debug, thiserror::Error)]
#[error("the rest of the answer cannot be sent")]
pub struct Broken;

/// How much of a large answer is handed over at a time.
const PIECE: usize = 64 * 1024;

pub type Stream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = Broken> + Send>>;

pub enum Body {
    Whole(Option<Bytes>),
    /// Complete, and large enough to be counted until the peer has received it: its bytes hold their share of the
    /// budget.
    Counted(Option<Bytes>),
    Stream(Stream, Lasts),
    /// A stream that its connection knows about, so that the deadlines fit.
    Watched(Stream, StreamGuard),
}

/// Tells the connection when its stream has ended, for whatever reason.
pub struct StreamGuard(Arc<Connection>, Lasts);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.stream_ended(self.1);
    }
}

impl Body {
    pub fn empty() -> Body {
        Body::Whole(None)
    }

    /// Sends whatever arrives on the channel.
    pub fn chunks(receiver: mpsc::Receiver<Result<Bytes, Broken>>) -> Body {
        Body::Stream(Box::pin(Chunks(receiver)), Lasts::UntilDone)
    }

    /// The same for something that never ends by itself: nobody waits for it when the service stops.
    pub fn endless(receiver: mpsc::Receiver<Result<Bytes, Broken>>) -> Body {
        Body::Stream(Box::pin(Chunks(receiver)), Lasts::UntilStopped)
    }

    /// Holds a share for that many bytes until the peer has received the body. Small bodies are not counted.
    #[must_use]
    pub fn holding<G: Send + 'static>(self, share: impl FnOnce(usize) -> G) -> Body {
        match self {
            Body::Whole(Some(bytes)) if bytes.len() > SMALL_BODY_BYTES_MAX => {
                let share = share(bytes.len());
                Body::Counted(Some(Bytes::from_owner(Held { bytes, _guard: share })))
            }
            other => other,
        }
    }

    /// The bytes of a body that is complete. They share what they hold with it.
    pub fn complete(&self) -> Option<Bytes> {
        match self {
            Body::Whole(bytes) | Body::Counted(bytes) => bytes.clone(),
            Body::Stream(..) | Body::Watched(..) => None,
        }
    }

    /// The size of a body that should have been counted and was not.
    pub fn uncounted(&self) -> Option<usize> {
        match self {
            Body::Whole(Some(bytes)) => Some(bytes.len()).filter(|length| *length > SMALL_BODY_BYTES_MAX),
            _ => None,
        }
    }

    /// Keeps `guard` until everything has been sent. What the HTTP library was given is not sent yet, so the guard
    /// travels with the bytes.
    #[must_use]
    pub fn until_sent<G: Send + 'static>(self, guard: G) -> Body {
        let held = |bytes: Bytes, guard| Bytes::from_owner(Held { bytes, _guard: guard });
        match self {
            Body::Whole(Some(bytes)) => Body::Whole(Some(held(bytes, guard))),
            Body::Counted(Some(bytes)) => Body::Counted(Some(held(bytes, guard))),
            Body::Whole(None) | Body::Counted(None) => self,
            Body::Stream(stream, lasts) => Body::Stream(Box::pin(Guarded { stream, _guard: guard }), lasts),
            Body::Watched(stream, watch) => Body::Watched(Box::pin(Guarded { stream, _guard: guard }), watch),
        }
    }

    #[must_use]
    pub fn watched_by(self, connection: &Arc<Connection>) -> Body {
        match self {
            Body::Stream(stream, lasts) => {
                connection.stream_began(lasts);
                Body::Watched(stream, StreamGuard(Arc::clone(connection), lasts))
            }
            other => other,
        }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Body {
        Body::Whole(Some(bytes.into()).filter(|bytes| !bytes.is_empty()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            // In pieces: whatever is handed over, the HTTP library keeps until it is sent.
            Body::Counted(bytes) => Poll::Ready(bytes.take().map(|mut rest| {
                let piece = rest.split_to(rest.len().min(PIECE));
                *bytes = Some(rest).filter(|rest| !rest.is_empty());
                Ok(Frame::data(piece))
            })),
            Body::Stream(stream, _) | Body::Watched(stream, _) => stream.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) | Body::Counted(bytes) => bytes.is_none(),
            Body::Stream(stream, _) | Body::Watched(stream, _) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) | Body::Counted(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Body::Stream(stream, _) | Body::Watched(stream, _) => stream.size_hint(),
        }
    }
}

/// Bytes, and a guard that lives as long as any of them.
struct Held<G> {
    bytes: Bytes,
    _guard: G,
}

impl<G> AsRef<[u8]> for Held<G> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A stream, and a guard that lives as long.
struct Guarded<G> {
    stream: Stream,
    _guard: G,
}

impl<G> Unpin for Guarded<G> {}

impl<G> http_body::Body for Guarded<G> {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.stream.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.stream.size_hint()
    }
}

struct Chunks(mpsc::Receiver<Result<Bytes, Broken>>);

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn a_guard_lasts_until_the_last_byte_is_let_go_of() {
        let guard = Arc::new(());
        let mut body = Body::from("four").until_sent(Arc::clone(&guard));
        let frame = poll_fn(|context| http_body::Body::poll_frame(Pin::new(&mut body), context)).await;
        let mut bytes = frame.unwrap().unwrap().into_data().unwrap();
        drop(body);
        let rest = bytes.split_off(2);
        drop(bytes);
        assert_eq!((Arc::strong_count(&guard), &*rest), (2, &b"ur"[..]));
        drop(rest);
        assert_eq!(Arc::strong_count(&guard), 1);
    }

    #[tokio::test]
    async fn a_guard_lasts_as_long_as_its_stream() {
        let (guard, (sender, receiver)) = (Arc::new(()), mpsc::channel(1));
        let body = Body::endless(receiver).until_sent(Arc::clone(&guard));
        assert_eq!(Arc::strong_count(&guard), 2);
        drop(body);
        assert!(sender.is_closed() && Arc::strong_count(&guard) == 1);
    }
}
