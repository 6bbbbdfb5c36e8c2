//! The identity provider as this service knows it: its keys, refreshed regularly and kept while it is unreachable.
//!
//! Requests with a known key wait for nobody. Whatever has to be fetched is fetched once at a time, in a task of its
//! own, so that it continues if the caller goes away.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use http::Uri;
use pilot_core::key_set::{KeySet, KeySetFault};
use pilot_core::limits::{
    KEY_SET_KEPT, KEY_SET_PAUSE, KEY_SET_REFETCHED, KEY_SET_RETRIED, KEY_SET_WAITING_MAX, PROVIDER_DEADLINE,
};
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_setup::config::{Oauth, ProviderUrl};
use pilot_setup::private_file::{self, Others};
use pilot_wire::exposition::Exposition;
use pilot_wire::outgoing::{Outgoing, OutgoingError, TrustError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use super::discovery::{DiscoveryFault, Endpoints, locations};

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the identity provider cannot be reached: {0}")]
    Outgoing(#[from] OutgoingError),
    #[error("the identity provider answers {status} to a request for its {what}")]
    Status { what: &'static str, status: u16 },
    #[error("the identity provider cannot be used: {0}")]
    Discovery(#[from] DiscoveryFault),
    #[error("the identity provider's keys cannot be used: {0}")]
    Keys(#[from] KeySetFault),
}

/// Why a token cannot be judged.
#[derive(Debug, Clone)]
pub struct Undecided(pub String);

/// What was last learned.
#[derive(Clone, Default)]
struct Held {
    keys: Option<Arc<KeySet>>,
    fetched_at: Option<Time>,
    endpoints: Option<Endpoints>,
    /// Why the last attempt failed, if it did.
    trouble: Option<String>,
}

/// The same on disk, for a start while the provider is unreachable.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Copy {
    schema_version: u32,
    issuer: String,
    fetched_at: Time,
    endpoints: Option<Endpoints>,
    keys: Box<RawValue>,
}

pub struct Provider {
    config: Oauth,
    outgoing: Outgoing,
    clock: Clock,
    copy: PathBuf,
    held: RwLock<Arc<Held>>,
    /// Held by the task that is asking.
    flight: Arc<tokio::sync::Mutex<()>>,
    /// Places for requests that wait for it.
    waiting: Semaphore,
    attempts: AtomicU64,
    attempted_at: AtomicI64,
}

const NEVER: i64 = i64::MIN;

impl Provider {
    /// Starts with what the last run knew, if that is recent enough.
    pub fn new(config: Oauth, copy: PathBuf, clock: Clock) -> Result<Provider, TrustError> {
        let outgoing = Outgoing::new(config.needs_tls(), config.ca_file.as_deref())?;
        let held = read_copy(&copy, &config, clock.now()).unwrap_or_default();
        Ok(Provider {
            config,
            outgoing,
            clock,
            copy,
            held: RwLock::new(Arc::new(held)),
            flight: Arc::default(),
            waiting: Semaphore::new(KEY_SET_WAITING_MAX),
            attempts: AtomicU64::new(0),
            attempted_at: AtomicI64::new(NEVER),
        })
    }

    pub fn config(&self) -> &Oauth {
        &self.config
    }

    pub fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    fn held(&self) -> Arc<Held> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The keys, if there are any that may still be used.
    pub fn keys(&self) -> Result<Arc<KeySet>, Undecided> {
        let (held, now) = (self.held(), self.clock.now());
        match (&held.keys, held.fetched_at) {
            // After the clock was set back their age is unknown; treating it as zero would start it again each time.
            (Some(_), Some(at)) if now < at => Err(Undecided(
                "the identity provider's keys were fetched in the future: the clock was set back".to_owned(),
            )),
            (Some(keys), Some(at)) if now.since(at) < KEY_SET_KEPT => Ok(Arc::clone(keys)),
            (Some(_), _) => Err(Undecided("the identity provider's keys are older than 24 h".to_owned())),
            (None, _) => {
                let unknown = || "the identity provider has not been asked yet".to_owned();
                Err(Undecided(held.trouble.clone().unwrap_or_else(unknown)))
            }
        }
    }

    /// The keys, after asking for a missing one if enough time has passed. If the provider could not be asked, it is
    /// unknown whether the key is one of its own.
    pub async fn keys_with(self: &Arc<Self>, key_id: &str) -> Result<Arc<KeySet>, Undecided> {
        if let Ok(keys) = self.keys()
            && keys.find(key_id).is_some()
        {
            return Ok(keys);
        }
        let Ok(_place) = self.waiting.try_acquire() else {
            return Err(Undecided("too many requests are waiting for the identity provider's keys".to_owned()));
        };
        self.refresh_if_due().await;
        let keys = self.keys()?;
        match &self.held().trouble {
            Some(trouble) if keys.find(key_id).is_none() => Err(Undecided(trouble.clone())),
            _ => Ok(keys),
        }
    }

    /// Where people sign in, and where the code they return with is exchanged for a token.
    pub fn sign_in(&self) -> Option<(ProviderUrl, ProviderUrl)> {
        let held = self.held();
        let endpoints = held.endpoints.as_ref()?;
        let url = |text: &Option<String>| text.as_deref().and_then(ProviderUrl::parse);
        Some((url(&endpoints.authorization)?, url(&endpoints.token)?))
    }

    /// Where a token is revoked when someone signs out, if the provider says.
    pub fn revocation(&self) -> Option<ProviderUrl> {
        self.held().endpoints.as_ref()?.revocation.as_deref().and_then(ProviderUrl::parse)
    }

    /// Whether tokens can be judged.
    pub fn check(&self) -> Result<(), Undecided> {
        let keys = self.keys()?;
        if keys.keys.is_empty() {
            return Err(Undecided("the identity provider publishes no key that can be used".to_owned()));
        }
        Ok(())
    }

    pub fn metrics(&self, text: &mut Exposition) {
        let held = self.held();
        let is_up = u8::from(held.trouble.is_none() && held.fetched_at.is_some());
        let age = held.fetched_at.map_or(-1.0, |at| self.clock.now().since(at).as_secs_f64());
        let keys = held.keys.as_ref().map_or(0, |set| set.keys.len());
        let up = "Whether the last request for the identity provider's keys succeeded.";
        text.gauge("pilot_identity_provider_up", up, is_up);
        text.gauge("pilot_identity_keys", "How many of its keys are in use.", keys);
        let since = "Time since they were fetched; -1 when they never were.";
        text.gauge("pilot_identity_keys_age_seconds", since, format_args!("{age:.3}"));
    }

    /// Keeps the keys fresh as long as the service runs.
    pub async fn follow(self: &Arc<Self>) {
        loop {
            let pause = if self.held().trouble.is_some() { KEY_SET_RETRIED } else { KEY_SET_REFETCHED };
            tokio::time::sleep(pause).await;
            self.refresh().await;
        }
    }

    async fn refresh_if_due(self: &Arc<Self>) {
        let attempts = self.attempts.load(Ordering::Acquire);
        let flight = Arc::clone(&self.flight).lock_owned().await;
        // Someone else asked while we waited, or a moment ago.
        if self.attempts.load(Ordering::Acquire) != attempts || !self.is_due() {
            return;
        }
        self.fly(flight).await;
    }

    fn is_due(&self) -> bool {
        let last = self.attempted_at.load(Ordering::Acquire);
        let now = self.clock.now();
        // If the clock was set back, do not wait until it catches up.
        last == NEVER || now.unix_micros() < last || now.since(Time::from_unix_micros(last)) >= KEY_SET_PAUSE
    }

    pub async fn refresh(self: &Arc<Self>) {
        let flight = Arc::clone(&self.flight).lock_owned().await;
        self.fly(flight).await;
    }

    async fn fly(self: &Arc<Self>, flight: tokio::sync::OwnedMutexGuard<()>) {
        let provider = Arc::clone(self);
        let landed = tokio::spawn(async move {
            provider.note_attempt();
            provider.fetch().await;
            // Once more; otherwise an attempt that took as long as the pause would be followed by the next immediately.
            provider.note_attempt();
            provider.attempts.fetch_add(1, Ordering::AcqRel);
            drop(flight);
        });
        let _ = landed.await;
    }

    fn note_attempt(&self) {
        self.attempted_at.store(self.clock.now().unix_micros(), Ordering::Release);
    }

    async fn fetch(&self) {
        let fetched = tokio::time::timeout(PROVIDER_DEADLINE, self.ask()).await;
        let fetched = fetched.unwrap_or(Err(FetchError::Outgoing(OutgoingError::TooSlow(PROVIDER_DEADLINE))));
        let before = self.held();
        let held = match fetched {
            Ok((keys, endpoints, raw)) => {
                let at = self.clock.now();
                report_keys(&keys, before.keys.as_deref());
                if before.trouble.is_some() {
                    tracing::info!("the identity provider answers again");
                }
                // What is known about signing in is kept if only the keys could be fetched.
                let endpoints = endpoints.or_else(|| before.endpoints.clone());
                self.write_copy(at, endpoints.as_ref(), raw).await;
                Held { keys: Some(Arc::new(keys)), fetched_at: Some(at), endpoints, trouble: None }
            }
            Err(error) => {
                let trouble = error.to_string();
                if before.trouble.as_ref() != Some(&trouble) {
                    let kept = before.fetched_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
                    tracing::warn!(cause = %trouble, "the identity provider's keys could not be fetched again; last fetched: {kept}");
                }
                Held { trouble: Some(trouble), ..Held::clone(&before) }
            }
        };
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(held);
    }

    /// How many usable keys the provider has, asked now; nothing is kept.
    pub async fn examine(&self) -> Result<usize, String> {
        self.ask().await.map(|(keys, ..)| keys.keys.len()).map_err(|error| error.to_string())
    }

    async fn ask(&self) -> Result<(KeySet, Option<Endpoints>, Box<RawValue>), FetchError> {
        let (endpoints, jwks) = match &self.config.jwks_url {
            None => {
                let endpoints = self.discover().await?;
                let jwks = endpoints.jwks()?;
                (Some(endpoints), jwks)
            }
            // Then the document is only for the console, and everything else works without it.
            Some(jwks) if self.config.console_client_id.is_some() => (self.discover().await.ok(), jwks.clone()),
            Some(jwks) => (None, jwks.clone()),
        };
        let body = self.get("keys", &jwks.uri).await?;
        let keys = KeySet::parse(&body)?;
        let raw = serde_json::from_slice(&body).map_err(|_| KeySetFault::Malformed)?;
        Ok((keys, endpoints, raw))
    }

    async fn discover(&self) -> Result<Endpoints, FetchError> {
        let mut failed = None;
        for location in locations(&self.config.issuer) {
            let body = self.get("discovery document", &location).await;
            match body.and_then(|body| Ok(Endpoints::parse(&body, &self.config.issuer)?)) {
                Ok(endpoints) => return Ok(endpoints),
                // Some servers answer any address with a page for people. A document that was found says more than a
                // missing one.
                Err(error) if !matches!(failed, Some(FetchError::Discovery(_))) => failed = Some(error),
                Err(_) => {}
            }
        }
        Err(failed.unwrap_or(FetchError::Discovery(DiscoveryFault::NoKeys)))
    }

    async fn get(&self, what: &'static str, url: &Uri) -> Result<bytes::Bytes, FetchError> {
        let reply = self.outgoing.get_json(url, PROVIDER_DEADLINE).await?;
        if reply.status != 200 {
            return Err(FetchError::Status { what, status: reply.status });
        }
        Ok(reply.body)
    }

    async fn write_copy(&self, fetched_at: Time, endpoints: Option<&Endpoints>, keys: Box<RawValue>) {
        let issuer = self.config.issuer.text.clone();
        let copy = Copy { schema_version: 1, issuer, fetched_at, endpoints: endpoints.cloned(), keys };
        let (path, text) = (self.copy.clone(), serde_json::to_vec(&copy).unwrap_or_default());
        let written = tokio::task::spawn_blocking(move || private_file::replace(&path, &text)).await;
        if let Ok(Err(error)) = written {
            let path = self.copy.display();
            tracing::warn!(cause = %error, "{path}: cannot be written; if the provider cannot be reached at the next start, there are no keys");
        }
    }
}

/// Logs which keys are not used, once for each set.
fn report_keys(keys: &KeySet, before: Option<&KeySet>) {
    if before == Some(keys) {
        return;
    }
    for (at, reason) in &keys.passed_over {
        tracing::warn!("key {at} of the identity provider is not used: it {reason}");
    }
    let names = keys.keys.iter().map(|key| key.key_id.as_str()).collect::<Vec<_>>().join(", ");
    tracing::info!(keys = %names, "the identity provider has {} key(s) in use", keys.keys.len());
}

fn read_copy(path: &std::path::Path, config: &Oauth, now: Time) -> Option<Held> {
    if !path.exists() {
        return None;
    }
    let refused = |cause: String| {
        tracing::warn!(cause, "{}: is not used; the provider is asked instead", path.display());
    };
    let file = private_file::read(path, Others::MayRead).map_err(|error| refused(error.to_string())).ok()?;
    let copy: Copy = serde_json::from_slice(&file.bytes).map_err(|error| refused(error.to_string())).ok()?;
    // A copy from the future would stay valid forever.
    if copy.schema_version != 1 || copy.issuer != config.issuer.text || copy.fetched_at > now {
        refused("it belongs to another issuer or version, or is from the future".to_owned());
        return None;
    }
    let keys = KeySet::parse(copy.keys.get().as_bytes()).map_err(|fault| refused(fault.to_string())).ok()?;
    Some(Held {
        keys: Some(Arc::new(keys)),
        fetched_at: Some(copy.fetched_at),
        endpoints: copy.endpoints,
        trouble: None,
    })
}
