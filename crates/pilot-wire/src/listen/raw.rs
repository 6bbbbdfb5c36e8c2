//! The raw bytes of a connection, around the HTTP library.
//!
//! Incoming bytes are searched for heads that state a length twice ([`Heads`]). Outgoing bytes are searched for the
//! empty answers that the library itself gives to what it cannot read; a complete problem is sent in their place.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::body::Body;
use crate::framing::Malformed;
use crate::framing::heads::{Faulty, Heads};
use crate::served::Served;

/// The library's own answers up to the date, and what each refuses. The length of `Date` is always the same.
const BARE: [(&[u8], Bare); 3] = [
    (b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: ", Bare::Unreadable),
    (b"HTTP/1.1 414 URI Too Long\r\nconnection: close\r\ncontent-length: 0\r\ndate: ", Bare::UrlTooLong),
    (
        b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: ",
        Bare::TooLarge,
    ),
];
const DATE_AND_END_BYTES: usize = "Sun, 15 Nov 2026 15:36:12 GMT\r\n\r\n".len();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bare {
    Unreadable,
    UrlTooLong,
    TooLarge,
}

/// Where one of the library's own answers begins in what it writes, if there is one. It is always the last.
fn find_bare(bytes: &[u8]) -> Option<(usize, Bare)> {
    BARE.iter().find_map(|(beginning, bare)| {
        let at = bytes.len().checked_sub(beginning.len() + DATE_AND_END_BYTES)?;
        bytes.get(at..)?.starts_with(beginning).then_some((at, *bare))
    })
}

/// Which request of a connection has the faulty head: known where bytes are read, needed where the request is answered.
#[derive(Debug, Default)]
pub(super) struct Marks {
    begun: AtomicU64,
    faulty: OnceLock<Faulty>,
}

impl Marks {
    /// Must be called for each request, in order. Returns what is wrong with its head.
    pub(super) fn request_began(&self) -> Option<&'static str> {
        let fault = self.fault();
        // One task reads and answers. With HTTP/2 there are several, but then no head is ever faulty.
        self.begun.store(self.begun.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        fault
    }

    /// What is wrong with the next head.
    fn fault(&self) -> Option<&'static str> {
        let faulty = self.faulty.get()?;
        (faulty.index == self.begun.load(Ordering::Relaxed)).then_some(faulty.detail)
    }
}

pub(super) struct Raw<A, T> {
    app: Arc<A>,
    stream: T,
    heads: Heads,
    marks: Arc<Marks>,
    /// A problem sent in place of an empty answer: the part that is not written yet.
    problem: Vec<u8>,
}

impl<A: Served, T: AsyncWrite + Unpin> Raw<A, T> {
    pub(super) fn new(app: &Arc<A>, stream: T, marks: &Arc<Marks>) -> Raw<A, T> {
        let (app, marks) = (Arc::clone(app), Arc::clone(marks));
        Raw { app, stream, heads: Heads::default(), marks, problem: Vec::new() }
    }

    fn refuse(&self, bare: Bare) -> Malformed {
        let malformed =
            "The message is not a valid HTTP/1.1 request: check its first line, its header lines and its length.";
        match bare {
            Bare::Unreadable => Malformed::Framing(self.marks.fault().unwrap_or(malformed)),
            Bare::UrlTooLong => Malformed::UrlTooLong,
            // The library gives up on the head as a whole, wherever the fault is.
            Bare::TooLarge if self.heads.is_in_request_line() => Malformed::UrlTooLong,
            Bare::TooLarge => Malformed::HeadersTooLarge,
        }
    }

    /// Whether there is something that the library may refuse by itself: more than the requests it has passed on. If
    /// not, whatever is written answers one of those.
    fn is_unanswerable(&self) -> bool {
        self.heads.has_begun(self.marks.begun.load(Ordering::Relaxed)) || self.marks.fault().is_some()
    }

    /// Writes the rest of a problem.
    fn poll_problem(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.problem.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.problem))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.problem.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    /// Everything is passed on except one of the library's own answers: what comes before it is written first, then the
    /// problem is queued to be written in its place.
    fn poll_bare(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Option<Poll<io::Result<usize>>> {
        if !self.is_unanswerable() {
            return None;
        }
        let (at, bare) = find_bare(bytes)?;
        if at > 0 {
            return Some(Pin::new(&mut self.stream).poll_write(context, bytes.get(..at)?));
        }
        let date = bytes.get(bytes.len() - DATE_AND_END_BYTES..)?;
        self.problem = whole(self.app.refuse(self.refuse(bare)), date);
        // It is written with the flush that follows immediately.
        Some(Poll::Ready(Ok(bytes.len())))
    }
}

/// An answer in HTTP/1.1 form, the last of its connection. `date` includes the two line ends.
fn whole(response: Response<Body>, date: &[u8]) -> Vec<u8> {
    let (head, body) = response.into_parts();
    let body = if let Body::Whole(Some(bytes)) = body { bytes } else { Bytes::new() };
    let reason = head.status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\nconnection: close\r\n", head.status.as_u16()).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend_from_slice(format!("content-length: {}\r\ndate: ", body.len()).as_bytes());
    bytes.extend_from_slice(&[date, &body].concat());
    bytes
}

impl<A, T: AsyncRead + Unpin> AsyncRead for Raw<A, T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let arrived = buffer.filled().get(before..).unwrap_or_default();
        if let Some(faulty) = self.heads.see(arrived) {
            // There is at most one.
            let _ = self.marks.faulty.set(faulty);
        }
        polled
    }
}

impl<A: Served, T: AsyncWrite + Unpin> AsyncWrite for Raw<A, T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.poll_bare(context, bytes) {
            Some(polled) => polled,
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // The library writes heads first, so an empty answer is all of the first part or its end.
        match parts.first().and_then(|first| self.poll_bare(context, first)) {
            Some(polled) => polled,
            None => Pin::new(&mut self.stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_problem(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_problem(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::traffic::Traffic;

    struct Nobody(Traffic);

    impl Served for Nobody {
        fn traffic(&self) -> &Traffic {
            &self.0
        }

        fn refuse(&self, malformed: Malformed) -> Response<Body> {
            let mut response = Response::new(Body::from(format!("{{\"fault\":\"{malformed:?}\"}}")));
            *response.status_mut() = http::StatusCode::BAD_REQUEST;
            response
        }
    }

    /// A peer that accepts only a few bytes at once, and makes the writer wait in between.
    struct Narrow {
        taken: Vec<u8>,
        at_once: usize,
        waits: bool,
    }

    impl AsyncWrite for Narrow {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.waits = !self.waits;
            if self.waits {
                return Poll::Pending;
            }
            let taken = bytes.len().min(self.at_once);
            self.taken.extend_from_slice(&bytes[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// What a peer that has sent `read` receives of `written`, written as the library does: repeatedly until everything
    /// is out, then flushed.
    fn received(read: &str, written: &str, at_once: usize, vectored: bool) -> String {
        let context = &mut Context::from_waker(Waker::noop());
        let peer = Narrow { taken: Vec::new(), at_once, waits: false };
        let mut raw = Raw::new(&Arc::new(Nobody(Traffic::default())), peer, &Arc::default());
        raw.heads.see(read.as_bytes());
        let mut rest = written.as_bytes();
        while !rest.is_empty() {
            let polled = if vectored {
                Pin::new(&mut raw).poll_write_vectored(context, &[io::IoSlice::new(rest)])
            } else {
                Pin::new(&mut raw).poll_write(context, rest)
            };
            if let Poll::Ready(written) = polled {
                rest = &rest[written.unwrap()..];
            }
        }
        while Pin::new(&mut raw).poll_flush(context).is_pending() {}
        String::from_utf8(raw.stream.taken).unwrap()
    }

    const BARE_400: &str = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\
                            date: Sun, 15 Nov 2026 15:36:12 GMT\r\n\r\n";

    #[test]
    fn an_empty_refusal_goes_out_as_a_whole_problem_however_little_the_peer_takes() {
        let earlier = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        for at_once in [1, 7, 100, 10_000] {
            for (before, vectored) in [("", false), ("", true), (earlier, false), (earlier, true)] {
                let received = received("GET / HTTP/1.2\r\n", &[before, BARE_400].concat(), at_once, vectored);
                let answer = received.strip_prefix(before).unwrap();
                let (head, body) = answer.split_once("\r\n\r\n").unwrap();
                assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n"), "{answer}");
                assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{answer}");
                assert!(head.ends_with("\r\ndate: Sun, 15 Nov 2026 15:36:12 GMT"), "{answer}");
                assert!(body.starts_with('{') && body.ends_with('}'), "{answer}");
            }
        }
    }

    #[test]
    fn every_other_answer_goes_out_as_it_is() {
        for written in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 1\r\n\r\nx",
            &BARE_400.replace("content-length: 0", "content-length: 9"),
            &[BARE_400, "and more"].concat(),
            "x",
        ] {
            assert_eq!(received("GET / HTTP/1.2\r\n", written, 10_000, false), written);
            assert_eq!(received("GET / HTTP/1.2\r\n", written, 3, true), written);
        }
    }

    #[test]
    fn where_nothing_can_have_been_refused_no_bytes_are_taken_for_a_refusal() {
        let http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n and whatever follows\r\n\r\n";
        for read in ["", http2] {
            assert_eq!(received(read, BARE_400, 10_000, false), BARE_400, "{read:?}");
        }
    }
}
