//! The body of a request, and what happens to it if nobody wants it.
//!
//! Many clients send the whole body before they read the answer. If it is refused halfway, they see a broken connection
//! or a reset stream, and never learn why. So an unwanted body is read and discarded, within limits.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http::header::{EXPECT, HeaderMap};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use pilot_core::limits::{UNWANTED_BODIES_MAX, UNWANTED_BYTES_MAX, UNWANTED_DEADLINE};
use tokio::sync::Semaphore;

/// Reading an unwanted body is a courtesy, which ends when there are too many.
static READING_AWAY: Semaphore = Semaphore::const_new(UNWANTED_BODIES_MAX);

pub struct Upload {
    body: Incoming,
    /// The client sends nothing until told to, which the HTTP library does when someone begins to read.
    waits_for_leave: bool,
}

impl Upload {
    pub fn new(headers: &HeaderMap, body: Incoming) -> Upload {
        let waits_for_leave = !body.is_end_stream() && headers.contains_key(EXPECT);
        Upload { body, waits_for_leave }
    }

    pub fn is_at_end(&self) -> bool {
        self.body.is_end_stream()
    }

    /// The least that is still to come, as far as the client has said.
    pub fn bytes_at_least(&self) -> u64 {
        self.body.size_hint().lower()
    }

    /// The most that is still to come, if the client has said.
    pub fn bytes_at_most(&self) -> Option<u64> {
        self.body.size_hint().upper()
    }

    pub async fn next(&mut self) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await
    }

    /// Reads the rest and discards it. Returns whether the end was reached.
    pub async fn read_away(mut self) -> bool {
        if self.waits_for_leave || self.bytes_at_least() > UNWANTED_BYTES_MAX {
            return self.is_at_end();
        }
        let Ok(_place) = READING_AWAY.try_acquire() else { return self.is_at_end() };
        let reading = async {
            let mut bytes = 0;
            while let Some(frame) = self.next().await {
                let Ok(frame) = frame else { return false };
                bytes += frame.data_ref().map_or(0, |piece| piece.len() as u64);
                if bytes > UNWANTED_BYTES_MAX {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(UNWANTED_DEADLINE, reading).await.unwrap_or(false)
    }
}
