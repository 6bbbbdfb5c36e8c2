//! Delivers to one endpoint, one entry at a time. Time, chance and the network are given to it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use pilot_core::entry::Entry;
use pilot_core::leak::LeakGuard;
use pilot_core::limits::{PAGE_ITEMS_MAX, WEBHOOK_DEADLINE, WEBHOOK_UNSAVED_MAX};
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_setup::config::{Detail, Webhook};
use pilot_setup::webhook_key::WebhookKey;
use pilot_setup::webhooks::Endpoint;
use pilot_store::{Duty, Store, StoreError};
use pilot_wire::outgoing::{OutgoingError, Receipt};

use super::cursor::{Cursor, Failure};
use super::message::{self, About, Origin};
use super::place;
use super::tally::Tally;
use crate::clock::{Clock, LedgerClock};
use crate::workflows::Workflows;

/// How often a sender that has nothing to do looks whether someone has moved its cursor, and how often it saves.
pub(super) const ROUND: Duration = Duration::from_secs(1);
const GONE: u16 = 410;

pub type Delivery<'a> = Pin<Box<dyn Future<Output = Result<Receipt, OutgoingError>> + Send + 'a>>;

/// The network.
pub trait Deliver: Send + Sync {
    fn deliver(&self, headers: Vec<(HeaderName, HeaderValue)>, body: Bytes) -> Delivery<'_>;
}

impl Deliver for Endpoint {
    fn deliver(&self, headers: Vec<(HeaderName, HeaderValue)>, body: Bytes) -> Delivery<'_> {
        Box::pin(
            async move { self.outgoing.deliver(&self.target, &self.reach, &headers, body, WEBHOOK_DEADLINE).await },
        )
    }
}

/// What every sender uses.
#[derive(Clone)]
pub struct Sources {
    pub store: Arc<dyn Store>,
    pub workflows: Arc<Workflows>,
    pub guard: Arc<LeakGuard>,
    /// For deadlines.
    pub clock: LedgerClock,
    /// For the time that receivers compare with theirs.
    pub machine: Clock,
    pub dice: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// When to take the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    AtOnce,
    /// After this long.
    After(Duration),
    /// When the ledger has grown, or after a while.
    Growth,
}

pub struct Sender {
    means: Means,
    /// Whether the endpoint is known to have a place in the ledger.
    has_begun: bool,
    /// Stays here during a step: a step that is given up halfway loses nothing that is known.
    work: Option<Work>,
}

/// What a sender has for as long as it lives.
struct Means {
    webhook: Webhook,
    keys: Arc<[WebhookKey]>,
    network: Arc<dyn Deliver>,
    sources: Sources,
    origin: Origin,
    tally: Arc<Tally>,
}

/// What a sender knows while it has the duty.
struct Work {
    cursor: Cursor,
    saved: Cursor,
    saved_at: Time,
    /// Deliveries since then.
    unsaved: u64,
    rest_until: Option<Time>,
    /// Read from the cursor on, not delivered yet.
    entries: VecDeque<Entry>,
}

impl Sender {
    pub(super) fn new(
        webhook: Webhook,
        keys: Arc<[WebhookKey]>,
        network: Arc<dyn Deliver>,
        (sources, origin): (Sources, Origin),
        tally: Arc<Tally>,
    ) -> Sender {
        let means = Means { webhook, keys, network, sources, origin, tally };
        Sender { means, has_begun: false, work: None }
    }

    #[cfg(test)]
    pub(super) fn webhook_mut(&mut self) -> &mut Webhook {
        &mut self.means.webhook
    }

    /// One step, and when to take the next. If it is given up halfway, an entry may be delivered again.
    pub async fn step(&mut self) -> Next {
        match self.try_step().await {
            Ok(next) => next,
            Err(error) => {
                self.means.tally.ledger_trouble(&error.to_string());
                Next::After(ROUND)
            }
        }
    }

    async fn try_step(&mut self) -> Result<Next, StoreError> {
        let Sender { means, has_begun, work } = self;
        let Sources { store, clock, .. } = &means.sources;
        if !*has_begun {
            // Whichever node sends: an endpoint that begins "now" begins when the first node that knows it starts.
            place::begin(&**store, &means.webhook.name, means.webhook.from).await?;
            *has_begun = true;
        }
        if !store.holds(Duty::Webhooks) {
            *work = None;
            means.tally.stand_down();
            return Ok(Next::After(ROUND));
        }
        let now = clock.now();
        let held = match work {
            Some(held) => held,
            None => work.insert(means.begin(now).await?),
        };
        let outcome = means.go_on(held, now).await;
        let is_unread = held.cursor.next < store.head().borrow().size();
        means.tally.show(&held.cursor, held.entries.front().map(|entry| entry.at), is_unread.then_some(now));
        if matches!(outcome, Ok(None)) {
            // Someone has moved the cursor, or another node sends.
            *work = None;
        }
        outcome.map(|next| next.unwrap_or(Next::AtOnce))
    }

    /// Saves what is not saved yet, when the service stops.
    pub async fn finish(&mut self) {
        let now = self.means.sources.clock.now();
        if let Some(mut work) = self.work.take()
            && work.cursor != work.saved
        {
            let _ = self.means.save(&mut work, now).await;
        }
    }
}

impl Means {
    async fn begin(&self, now: Time) -> Result<Work, StoreError> {
        let cursor = place::take_over(&*self.sources.store, &self.webhook.name, self.webhook.from).await?;
        let saved = cursor.clone();
        Ok(Work { cursor, saved, saved_at: now, unsaved: 0, rest_until: None, entries: VecDeque::new() })
    }

    /// `None` if the cursor is no longer this sender's.
    async fn go_on(&self, work: &mut Work, now: Time) -> Result<Option<Next>, StoreError> {
        if work.is_due(now) && !self.save(work, now).await? {
            return Ok(None);
        }
        self.read(work).await?;
        let rest = work.rest_until.filter(|until| *until > now).map(|until| until.since(now));
        if work.cursor.paused.is_some() || rest.is_some() {
            let stays = self.is_unmoved(work).await?;
            return Ok(stays.then(|| Next::After(rest.unwrap_or(ROUND).min(ROUND))));
        }
        let Some(entry) = work.entries.front().cloned() else {
            let stays = work.cursor != work.saved || self.is_unmoved(work).await?;
            return Ok(stays.then_some(Next::Growth));
        };
        self.settle(work, &entry).await?;
        Ok(Some(Next::AtOnce))
    }

    async fn save(&self, work: &mut Work, now: Time) -> Result<bool, StoreError> {
        let is_saved = place::save(&*self.sources.store, &self.webhook.name, work.cursor.clone()).await?;
        (work.saved, work.saved_at, work.unsaved) = (work.cursor.clone(), now, 0);
        Ok(is_saved)
    }

    async fn is_unmoved(&self, work: &Work) -> Result<bool, StoreError> {
        let found = place::read(&*self.sources.store, &self.webhook.name).await?;
        Ok(found.is_some_and(|found| found.generation == work.cursor.generation))
    }

    /// Only what is durable: the head says how far that is.
    async fn read(&self, work: &mut Work) -> Result<(), StoreError> {
        let size = self.sources.store.head().borrow().size();
        if !work.entries.is_empty() || work.cursor.next >= size {
            return Ok(());
        }
        let stored = self.sources.store.entries(work.cursor.next, PAGE_ITEMS_MAX).await?;
        for stored in stored.iter().filter(|stored| stored.index < size) {
            let entry = Entry::parse(&stored.bytes);
            let unreadable = |error| StoreError::Unavailable(format!("entry {}: {error}", stored.index));
            work.entries.push_back(entry.map_err(unreadable)?);
        }
        Ok(())
    }

    fn definition(&self, entry: &Entry) -> Result<Option<&Arc<Definition>>, StoreError> {
        let Some(digest) = &entry.definition else { return Ok(None) };
        let found = self.sources.workflows.of_digest(digest);
        let missing = || StoreError::Unavailable(format!("the definition of entry {} is not here", entry.index));
        found.map(Some).ok_or_else(missing)
    }

    /// Delivers the entry, or passes over it if it is not for this endpoint.
    async fn settle(&self, work: &mut Work, entry: &Entry) -> Result<(), StoreError> {
        let Some(body) = self.body(entry).await? else {
            work.entries.pop_front();
            work.cursor.skip_to(entry.index.saturating_add(1));
            return Ok(());
        };
        let answer = self.send(entry, body).await;
        let answered_at = self.sources.clock.now();
        match answer {
            Ok(status) => {
                work.entries.pop_front();
                work.cursor.delivered(entry.index, status, answered_at);
                work.rest_until = None;
                work.unsaved = work.unsaved.saturating_add(1);
                self.tally.delivered();
            }
            Err(failure) => {
                let pause = work.cursor.failed(&failure, answered_at);
                let rest = work.cursor.rest(failure.retry_after, (self.sources.dice)());
                work.rest_until = Some(answered_at.plus(rest));
                self.tally.failed(entry.index, &failure.said, pause);
                // A failure is rare and worth knowing after a crash.
                work.saved_at = Time::EPOCH;
            }
        }
        Ok(())
    }

    /// What the endpoint is told, if the entry is for it. The cheap questions come first, so that what is not wanted is
    /// passed over even if its definition is not here.
    async fn body(&self, entry: &Entry) -> Result<Option<Bytes>, StoreError> {
        if !message::is_of_wanted_type(&self.webhook, entry) {
            return Ok(None);
        }
        let definition = self.definition(entry)?.map(Arc::as_ref);
        if !message::is_of_wanted_workflow(&self.webhook, definition) {
            return Ok(None);
        }
        let item = match &entry.item {
            Some(item) => self.sources.store.item(item.clone()).await?,
            None => None,
        };
        let about = About { definition, item: item.as_deref() };
        if !message::is_of_wanted_turn(&self.webhook, entry, &about) {
            return Ok(None);
        }
        let title = about.item.map(|item| &*item.title).filter(|_| self.webhook.detail == Detail::Full);
        Ok(Some(message::event(&self.origin, entry, &about, title, &self.sources.guard)))
    }

    async fn send(&self, entry: &Entry, body: Bytes) -> Result<u16, Failure> {
        let failure = |said: String| Failure { said, is_gone: false, retry_after: None };
        let id = self.origin.id(entry.index);
        let headers = message::headers(&id, self.sources.machine.now(), &body, &self.keys);
        let headers = headers.map_err(|error| failure(error.to_string()))?;
        match self.network.deliver(headers, body).await {
            Ok(Receipt { status, .. }) if (200..300).contains(&status) => Ok(status),
            Ok(Receipt { status, retry_after }) => {
                Err(Failure { said: format!("answered {status}"), is_gone: status == GONE, retry_after })
            }
            Err(error) => Err(failure(error.to_string())),
        }
    }
}

impl Work {
    /// Whether the cursor has to be saved before anything else happens.
    fn is_due(&self, now: Time) -> bool {
        let is_old = now.since(self.saved_at) >= ROUND;
        self.cursor != self.saved && (is_old || self.unsaved >= WEBHOOK_UNSAVED_MAX)
    }
}
