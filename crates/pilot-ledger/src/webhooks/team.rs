//! All endpoints: each has a sender of its own, so that one that hangs delays no other.

use std::pin::pin;
use std::sync::Arc;

use pilot_core::leak::LeakGuard;
use pilot_core::limits::LAST_STEP_MAX;
use pilot_core::time::Time;
use pilot_setup::config::{Config, Webhook, WebhookFrom};
use pilot_setup::error::StartError;
use pilot_setup::webhooks::Endpoint;
use pilot_store::{Store, StoreError};
use pilot_wire::exposition::Exposition;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::cursor::Cursor;
use super::message::Origin;
use super::place;
use super::sender::{Next, ROUND, Sender, Sources};
use super::tally::{self, Tally};
use crate::last_step::until_stopped;

/// The configured endpoints, with what each has done.
pub struct Webhooks {
    endpoints: Vec<Configured>,
    public_url: Option<String>,
}

struct Configured {
    webhook: Webhook,
    endpoint: Arc<Endpoint>,
    tally: Arc<Tally>,
}

/// An endpoint as people see it.
pub struct Standing {
    pub name: String,
    /// Without the path.
    pub host: String,
    pub place: Place,
}

/// What the store knows of an endpoint.
pub enum Place {
    /// It has not begun.
    Nowhere,
    At(Box<Cursor>),
    /// Nothing is sent until someone repairs the store.
    Unreadable,
}

impl Webhooks {
    /// Reads every file that the endpoints need.
    pub fn open(config: &Config) -> Result<Webhooks, StartError> {
        let (mut endpoints, mut refused) = (Vec::new(), Vec::new());
        for webhook in &config.webhooks {
            match Endpoint::open(config, webhook) {
                Ok(endpoint) => endpoints.push(Configured::new(webhook.clone(), endpoint)),
                Err(error) => refused.push(error.to_string()),
            }
        }
        if !refused.is_empty() {
            return Err(StartError::Refused(refused.join("\n")));
        }
        Ok(Webhooks { endpoints, public_url: config.public_url.clone() })
    }

    /// Their keys and secret addresses are found wherever tokens are looked for.
    pub fn make_known(&self, guard: &LeakGuard) {
        self.endpoints.iter().for_each(|configured| configured.endpoint.make_known(guard));
    }

    /// Where the endpoint of this name begins, if there is one.
    pub fn begins(&self, name: &str) -> Option<WebhookFrom> {
        self.endpoints.iter().find(|configured| configured.webhook.name == name).map(|found| found.webhook.from)
    }

    /// Every endpoint, as the store knows it: whichever node sends.
    pub async fn standings(&self, store: &dyn Store) -> Result<Vec<Standing>, StoreError> {
        let cursors = place::read_all(store).await?;
        let place = |endpoint: &str| match cursors.iter().find(|(name, _)| *name == endpoint) {
            None => Place::Nowhere,
            Some((_, Ok(cursor))) => Place::At(Box::new(cursor.clone())),
            Some((_, Err(_))) => Place::Unreadable,
        };
        let standing = |Configured { webhook, endpoint, .. }: &Configured| Standing {
            name: webhook.name.clone(),
            host: endpoint.target.shown(),
            place: place(&webhook.name),
        };
        Ok(self.endpoints.iter().map(standing).collect())
    }

    pub fn metrics(&self, size: u64, now: Time, text: &mut Exposition) {
        let tallies: Vec<_> = self.endpoints.iter().map(|configured| &*configured.tally).collect();
        tally::metrics(&tallies, size, now, text);
    }

    fn senders(&self, sources: &Sources, log_name: &str) -> Vec<Sender> {
        let origin = Origin::new(log_name, self.public_url.as_deref());
        let sender = |Configured { webhook, endpoint, tally }: &Configured| {
            let (keys, network) = (Arc::clone(&endpoint.keys), Arc::clone(endpoint));
            Sender::new(webhook.clone(), keys, network, (sources.clone(), origin.clone()), Arc::clone(tally))
        };
        self.endpoints.iter().map(sender).collect()
    }
}

impl Configured {
    fn new(webhook: Webhook, endpoint: Endpoint) -> Configured {
        endpoint.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let tally = Arc::new(Tally::new(&webhook.name, &endpoint.target.shown()));
        Configured { webhook, endpoint: Arc::new(endpoint), tally }
    }
}

/// Runs until `done` is dropped, and saves every cursor then.
pub async fn run(webhooks: Arc<Webhooks>, sources: Sources, log_name: String, done: oneshot::Receiver<()>) {
    let (stop, is_stopping) = watch::channel(false);
    let mut running = JoinSet::new();
    for sender in webhooks.senders(&sources, &log_name) {
        running.spawn(send(sender, Arc::clone(&sources.store), is_stopping.clone()));
    }
    let _ = done.await;
    stop.send_replace(true);
    running.join_all().await;
}

async fn send(mut sender: Sender, store: Arc<dyn Store>, mut stop: watch::Receiver<bool>) {
    let mut head = store.head();
    let mut stopped = pin!(async move {
        let _ = stop.wait_for(|is_stopping| *is_stopping).await;
    });
    loop {
        head.mark_unchanged();
        let Some(next) = until_stopped(sender.step(), stopped.as_mut(), LAST_STEP_MAX).await else { break };
        let rest = async {
            match next {
                Next::AtOnce => {}
                Next::After(rest) => tokio::time::sleep(rest).await,
                Next::Growth => until_growth(&mut head).await,
            }
        };
        tokio::select! {
            biased;
            () = &mut stopped => break,
            () = rest => {}
        }
    }
    sender.finish().await;
}

/// Until the ledger has grown, or for a while.
pub(super) async fn until_growth<T>(head: &mut watch::Receiver<T>) {
    let waited = tokio::time::timeout(ROUND, head.changed()).await;
    // A store that has stopped never grows, and says so at once.
    if matches!(waited, Ok(Err(_))) {
        tokio::time::sleep(ROUND).await;
    }
}
