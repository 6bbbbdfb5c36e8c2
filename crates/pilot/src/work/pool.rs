//! The agent's day: what was left over first, then whatever is cleared, as many at once as allowed. The feed wakes it,
//! the list says what is cleared, and the service settles races with others.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pilot_api::items::ItemView;
use pilot_core::item::ItemId;
use pilot_setup::random;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::exit::Failure;
use crate::work::agent::{Agent, Ended, Wish};
use crate::work::attempt::live;
use crate::work::boot::Moment;
use crate::work::journal::{Claim, Journal, Stand};
use crate::work::service::{Answer, No};

/// Windows open without an entry, so the list is read at least this often.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// An item that was refused is left alone for a while, unless it changes.
const REFUSED_FOR: Duration = Duration::from_mins(1);
const TIDY_EVERY: Duration = Duration::from_hours(1);

pub(crate) struct Pool {
    agent: Arc<Agent>,
    journal: Journal,
    actor_id: String,
    attempts: JoinSet<(ItemId, u64, Ended)>,
    /// Items that are being worked on.
    taken: Vec<ItemId>,
    refused: HashMap<ItemId, (u64, Moment)>,
}

impl Pool {
    pub(crate) fn new(agent: Arc<Agent>, journal: Journal, actor_id: String) -> Pool {
        Pool { agent, journal, actor_id, attempts: JoinSet::new(), taken: Vec::new(), refused: HashMap::new() }
    }

    /// Takes up what an earlier run of the agent left.
    pub(crate) fn recover(&mut self) -> Result<(), Failure> {
        let service = self.agent.service.client().url();
        let pending = self.journal.pending()?;
        for (claim, ..) in &pending {
            if claim.service != service || claim.actor_id != self.actor_id {
                return Err(Failure::Usage(format!(
                    "the journal has an unfinished attempt of {} at {}. Run the agent as that actor once, or use another \
                     --journal directory",
                    claim.actor_id, claim.service
                )));
            }
        }
        for (claim, stand, attempt) in pending {
            tracing::info!(item.id = %claim.item, attempt = claim.attempt, "taking up item `{}`", claim.item);
            self.spawn(claim, stand, attempt);
        }
        Ok(())
    }

    fn spawn(&mut self, claim: Claim, stand: Stand, attempt: crate::work::journal::Attempt) {
        let (agent, id, version) = (Arc::clone(&self.agent), claim.item.clone(), claim.version);
        self.taken.push(id.clone());
        let life = Box::pin(live(agent, claim, stand, attempt));
        self.attempts.spawn(async move { (id, version, life.await) });
        self.agent.gauges.running(self.attempts.len());
    }

    /// Claims an item if nothing keeps it from that.
    pub(crate) fn begin(&mut self, item: &ItemView<'static>, action: &str) -> Result<(), Failure> {
        let claim = Claim {
            v: 1,
            service: self.agent.service.client().url(),
            actor_id: self.actor_id.clone(),
            item: item.id.clone().into_owned(),
            attempt: item.attempts + 1,
            action: action.to_owned(),
            content_digest: item.content_digest.to_string(),
            version: item.version,
            key: data_encoding::HEXLOWER.encode(&random::bytes::<16>()?),
        };
        let attempt = self.journal.begin(&claim).map_err(|error| {
            if error.kind() == std::io::ErrorKind::AlreadyExists {
                tracing::error!(item.id = %claim.item, %error, "item `{}` is not executed", claim.item);
                return Failure::Refused(error.to_string());
            }
            self.agent.gauges.journal_failed(&error);
            Failure::environment("the journal", error)
        })?;
        self.agent.gauges.journal_works();
        self.spawn(claim, Stand::New, attempt);
        Ok(())
    }

    /// The next attempt that ends, if any is running.
    pub(crate) async fn next(&mut self) -> Option<(ItemId, Ended)> {
        let (id, version, ended) = loop {
            // If a task panicked, the log has it, and its journal tells the next run what is left.
            if let Ok(ended) = self.attempts.join_next().await? {
                break ended;
            }
        };
        self.taken.retain(|taken| *taken != id);
        self.agent.gauges.running(self.attempts.len());
        if let Ended::NotGranted(why) = &ended {
            tracing::info!(item.id = %id, cause = why, "item `{id}` was not granted");
            self.refused.insert(id.clone(), (version, Moment::now().plus(REFUSED_FOR)));
        }
        Some((id, ended))
    }

    /// What could be started now, oldest first.
    pub(crate) async fn candidates(&mut self) -> Answer<Vec<ItemView<'static>>> {
        self.refused.retain(|_, (_, until)| !until.is_past());
        let mut found = Vec::new();
        for workflow in &self.agent.settings.workflows {
            found.extend(self.agent.service.items("cleared", Some(workflow)).await?);
        }
        found.retain(|item| self.is_wanted(item));
        found.sort_by_key(|item| item.updated_at);
        Ok(found)
    }

    fn is_wanted(&self, item: &ItemView<'static>) -> bool {
        let is_refused = self.refused.get(&*item.id).is_some_and(|(version, _)| *version == item.version);
        item.actions.iter().any(|action| **action == *"start")
            && !is_refused
            && !self.taken.contains(&item.id)
            && is_for(&self.agent.settings.targets, item)
    }

    /// Works until it is told to stop, and finishes what it began.
    pub(crate) async fn work(&mut self, mut wish: watch::Receiver<Wish>) -> Result<(), Failure> {
        let woken = Arc::new(Notify::new());
        let feed = tokio::spawn(listen(Arc::clone(&self.agent), Arc::clone(&woken)));
        let mut tidied = Moment::now();
        self.journal.tidy(self.agent.settings.kept_for);
        loop {
            let is_draining = *wish.borrow_and_update() == Wish::Drain;
            if is_draining {
                self.agent.gauges.draining();
                if self.attempts.is_empty() {
                    break;
                }
            }
            if !is_draining && self.attempts.len() < self.agent.settings.concurrency {
                self.take().await;
            }
            if tidied.plus(TIDY_EVERY).is_past() {
                self.journal.tidy(self.agent.settings.kept_for);
                tidied = Moment::now();
            }
            tokio::select! {
                Some(_) = self.next(), if !self.attempts.is_empty() => {}
                () = woken.notified() => {}
                _ = wish.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        feed.abort();
        Ok(())
    }

    async fn take(&mut self) {
        let candidates = match self.candidates().await {
            Ok(candidates) => candidates,
            Err(no) => {
                self.agent.gauges.reached(matches!(no, No::Refused { .. }));
                tracing::warn!(cause = no.words(), "what is cleared cannot be read");
                return;
            }
        };
        self.agent.gauges.reached(true);
        for item in candidates {
            if self.attempts.len() >= self.agent.settings.concurrency {
                return;
            }
            if self.begin(&item, "start").is_err() {
                self.refused.insert(item.id.into_owned(), (item.version, Moment::now().plus(REFUSED_FOR)));
            }
        }
    }
}

/// An agent that serves some targets must not run an operation that concerns others too.
fn is_for(targets: &[String], item: &ItemView<'static>) -> bool {
    if targets.is_empty() {
        return true;
    }
    let named = item.payload.at("/targets");
    let named = named.as_ref().and_then(|named| named.as_array()).map_or(&[][..], Vec::as_slice);
    !named.is_empty() && named.iter().all(|name| targets.iter().any(|target| *name == **target))
}

/// Every entry may have cleared something.
async fn listen(agent: Arc<Agent>, woken: Arc<Notify>) {
    let mut pause = Duration::from_millis(500);
    loop {
        match agent.service.feed().await {
            Ok(mut feed) => {
                pause = Duration::from_millis(500);
                woken.notify_one();
                while let Some(event) = feed.next().await {
                    if event.data.contains("\"cleared\"") {
                        woken.notify_one();
                    }
                }
            }
            Err(failure) => tracing::debug!(cause = failure.text(), "the feed cannot be opened"),
        }
        if agent.pause(&mut pause).await.is_err() {
            return;
        }
    }
}
