//! The live feed of the ledger: entries as they are written.

use std::time::Duration;

use http::header::ACCEPT;
use pilot_wire::outgoing::Arriving;

use crate::client::{ANSWER_BYTES_MAX, Ask, Client, PATIENCE, Reply};
use crate::exit::Failure;

/// The service sends a sign of life more often than this.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// No entry is nearly as long.
const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// An entry as the feed sends it.
pub(crate) struct Event {
    pub index: u64,
    /// The entry, as JSON.
    pub data: String,
}

pub(crate) struct Feed {
    arriving: Arriving,
    pending: Vec<u8>,
}

/// Why there is no feed.
pub(crate) struct NoFeed {
    /// None if nothing answered.
    pub status: Option<u16>,
    pub failure: Failure,
}

impl NoFeed {
    /// Whether it may be different in a moment.
    pub(crate) fn is_for_now(&self) -> bool {
        self.status.is_none_or(|status| status == 429 || status >= 500)
    }

    /// The ledger does not have the entry after which the feed was to go on.
    pub(crate) fn is_past_the_end(&self) -> bool {
        self.status == Some(422)
    }
}

impl Client {
    /// Entries above `after`, or all of them; those that follow come as they are written.
    pub(crate) async fn feed(&self, after: Option<u64>) -> Result<Feed, Failure> {
        self.open_feed(after).await.map_err(|no_feed| no_feed.failure)
    }

    /// The same, for those who try again.
    pub(crate) async fn open_feed(&self, after: Option<u64>) -> Result<Feed, NoFeed> {
        let path = after.map_or("/v1/events".to_owned(), |after| format!("/v1/events?after={after}"));
        let usage = |failure| NoFeed { status: Some(400), failure };
        let lost = |error| NoFeed { status: None, failure: self.lost(&error) };
        let request = self.request(Ask::get(&path).header(ACCEPT, "text/event-stream")).map_err(usage)?;
        let arriving = self.outgoing.open(request, PATIENCE).await.map_err(lost)?;
        if !arriving.head.status.is_success() {
            let status = arriving.head.status.as_u16();
            let body = arriving.rest(ANSWER_BYTES_MAX, PATIENCE).await.map_err(lost)?;
            let failure = Reply(pilot_wire::outgoing::Reply { status, body }).refusal();
            return Err(NoFeed { status: Some(status), failure });
        }
        Ok(Feed { arriving, pending: Vec::new() })
    }
}

impl Feed {
    /// The next entry. Nothing when the feed ended: open it again after the last index that arrived.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.pending.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<_> = self.pending.drain(..end + 2).collect();
                if let Some(event) = Event::read(&String::from_utf8_lossy(&block)) {
                    return Some(event);
                }
            }
            let piece = self.arriving.next(SILENCE_MAX).await.ok()??;
            self.pending.extend_from_slice(&piece);
            if self.pending.len() > EVENT_BYTES_MAX {
                return None;
            }
        }
    }
}

impl Event {
    /// Nothing for a comment, which is a sign of life.
    fn read(block: &str) -> Option<Event> {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
        Some(Event { index: field("id:")?.parse().ok()?, data: field("data:")?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_an_index_and_a_comment_is_not_an_event() {
        let event = Event::read("id: 7\nevent: item.comment\ndata: {\"index\":7}\n\n").unwrap();
        assert_eq!((event.index, &*event.data), (7, "{\"index\":7}"));
        assert!(Event::read(": still here\n\n").is_none());
    }
}
