//! The live feed, opened again after every interruption, from the entry after the last one that arrived.

use std::time::Duration;

use crate::client::Client;
use crate::client::feed::{Event, Feed, NoFeed};
use crate::exit::Failure;
use crate::output::note;

const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Follower<'c> {
    client: &'c Client,
    after: Option<u64>,
    feed: Option<Feed>,
    pause: Duration,
}

pub(crate) enum Heard {
    /// The feed was opened, for the first time or again.
    Opened,
    Event(Event),
}

impl<'c> Follower<'c> {
    /// Entries above `after`, or all of them.
    pub(crate) fn new(client: &'c Client, after: Option<u64>) -> Follower<'c> {
        Follower { client, after, feed: None, pause: PAUSE }
    }

    /// The same, already opened: a service that is not there from the first is not waited for.
    pub(crate) async fn opened(client: &'c Client, after: Option<u64>) -> Result<Follower<'c>, Failure> {
        let feed = client.feed(after).await?;
        Ok(Follower { feed: Some(feed), ..Follower::new(client, after) })
    }

    /// Begins somewhere else: the ledger does not have the entry after which this one was to go on.
    pub(crate) fn move_to(&mut self, after: Option<u64>) {
        (self.after, self.feed) = (after, None);
    }

    /// What comes next. Fails only if the service says that it will not send anything.
    pub(crate) async fn next(&mut self) -> Result<Heard, NoFeed> {
        loop {
            let Some(feed) = &mut self.feed else {
                self.feed = Some(self.open().await?);
                return Ok(Heard::Opened);
            };
            if let Some(event) = feed.next().await {
                self.after = Some(event.index);
                self.pause = PAUSE;
                return Ok(Heard::Event(event));
            }
            self.feed = None;
            self.rest().await;
        }
    }

    async fn open(&mut self) -> Result<Feed, NoFeed> {
        let mut is_told = false;
        loop {
            match self.client.open_feed(self.after).await {
                Ok(feed) => return Ok(feed),
                Err(no_feed) if !no_feed.is_for_now() => return Err(no_feed),
                Err(no_feed) if !is_told => {
                    is_told = true;
                    let said = no_feed.failure.text();
                    note(&format!("{said}; trying again until it works")).map_err(NoFeed::from)?;
                }
                Err(_) => {}
            }
            self.rest().await;
        }
    }

    async fn rest(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
}

impl From<Failure> for NoFeed {
    fn from(failure: Failure) -> NoFeed {
        NoFeed { status: Some(400), failure }
    }
}
