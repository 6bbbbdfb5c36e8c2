//! The register of credentials: which have ended, by revocation or by time, and what of their lives is in the ledger.
//!
//! What has ended stays ended, across restarts and whatever the clock says. The first use of a credential, its end and
//! the first refusal after it are entries: with the additions and removals that every start writes down, they are the
//! evidence of a rotation.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::credentials::{Credential, CredentialId};
use pilot_core::digest::Fingerprint;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_store::{Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

mod diary;
mod revocation;

pub use diary::{flush, run};
pub use revocation::{Cause, Revocation, revoke};

/// A credential as the ledger may name it: by its id or a fingerprint, which reveal no digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamedCredential {
    pub actor_id: ActorId,
    /// Absent when the fingerprint is its only name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// A name that every credential has, made from its secret.
    pub fingerprint: CredentialId,
    pub role: Role,
}

impl NamedCredential {
    pub fn id(&self) -> &CredentialId {
        self.credential_id.as_ref().unwrap_or(&self.fingerprint)
    }
}

impl From<&Credential> for NamedCredential {
    fn from(credential: &Credential) -> Self {
        let Actor { actor_id, role } = credential.actor.clone();
        let fingerprint = CredentialId::from(credential.digest.fingerprint());
        let credential_id = Some(credential.id.clone()).filter(|id| *id != fingerprint);
        NamedCredential { actor_id, credential_id, expires_at: credential.expires_at, fingerprint, role }
    }
}

/// The credential a caller has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCredential {
    pub id: CredentialId,
    pub expires_at: Option<Time>,
}

/// Why a credential counts no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Expired,
    Revoked,
}

/// How a credential came to its end, as it is kept for the next start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    how: Ended,
    /// Another name in the file does not bring the same token back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<CredentialId>,
    /// From then on nothing can come of forgetting it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forget_at: Option<Time>,
    /// What whoever revoked it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revocation: Option<Revocation>,
}

/// What the ledger holds already, kept beside it under one name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Kept {
    /// By fingerprint.
    used: BTreeMap<CredentialId, NamedCredential>,
    refused: BTreeSet<CredentialId>,
    ended: BTreeMap<CredentialId, End>,
}

const FACT: &str = "credentials";
const YEAR: Duration = Duration::from_hours(365 * 24);

/// Something in a credential's life that becomes an entry, once.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    FirstUsed(NamedCredential),
    Refused(NamedCredential, &'static str),
    Expired(NamedCredential),
}

pub struct Register {
    /// Whether the lives of credentials are written down, and exposed tokens revoked: the production profile's duty.
    keeps_record: bool,
    kept: tokio::sync::Mutex<Kept>,
    ended: RwLock<HashMap<CredentialId, Ended>>,
    /// Spares most requests the look into the map.
    any_ended: AtomicBool,
    /// Credentials that were removed from the file, by fingerprint.
    former: BTreeMap<CredentialId, NamedCredential>,
    /// Those that will expire, with how close that is said to be.
    expiring: Mutex<BTreeMap<CredentialId, (Time, NamedCredential, usize)>>,
    events: Mutex<Vec<Event>>,
    /// What became an event in this run already.
    noted: Mutex<HashSet<(&'static str, CredentialId)>>,
    news: Notify,
    changes: watch::Sender<()>,
}

impl Register {
    /// `present` are the credentials of this start, `former` those of earlier ones.
    pub async fn open(
        store: &dyn Store,
        present: &BTreeSet<NamedCredential>,
        former: &BTreeSet<NamedCredential>,
        keeps_record: bool,
    ) -> Result<Register, StoreError> {
        let unreadable = |error| StoreError::Damaged(format!("the register of credentials cannot be read: {error}"));
        let mut kept: Kept = match store.fact(FACT).await? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(unreadable)?,
            None => Kept::default(),
        };
        // One that came back may be refused anew some day.
        kept.refused.retain(|fingerprint| !present.iter().any(|named| named.fingerprint == *fingerprint));
        let mut ended: HashMap<_, _> = kept.ended.iter().map(|(id, end)| (id.clone(), end.how)).collect();
        for named in present {
            let end = kept.ended.values().find(|end| end.fingerprint.as_ref() == Some(&named.fingerprint));
            if let Some(end) = end {
                ended.insert(named.id().clone(), end.how);
            }
        }
        // A mechanism without a list of its own knows credentials by their use.
        let known = if present.is_empty() { kept.used.values().collect() } else { present.iter().collect::<Vec<_>>() };
        let expiring = known
            .into_iter()
            .filter_map(|named| Some((named.id().clone(), (named.expires_at?, named.clone(), 0))))
            .filter(|(id, _)| !ended.contains_key(id));
        Ok(Register {
            keeps_record,
            any_ended: AtomicBool::new(!ended.is_empty()),
            expiring: Mutex::new(expiring.collect()),
            former: former.iter().map(|named| (named.fingerprint.clone(), named.clone())).collect(),
            ended: RwLock::new(ended),
            kept: tokio::sync::Mutex::new(kept),
            events: Mutex::default(),
            noted: Mutex::default(),
            news: Notify::new(),
            changes: watch::Sender::new(()),
        })
    }

    pub fn keeps_record(&self) -> bool {
        self.keeps_record
    }

    /// Whether a credential has ended, and how.
    pub fn end_of(&self, id: &CredentialId) -> Option<Ended> {
        if !self.any_ended.load(Ordering::Acquire) {
            return None;
        }
        self.ended.read().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    /// Whether a credential that was accepted before counts no longer.
    pub fn is_over(&self, shown: &ShownCredential, now: Time) -> bool {
        shown.expires_at.is_some_and(|expires_at| expires_at <= now) || self.end_of(&shown.id).is_some()
    }

    /// Comes back when the credential counts no longer: its time is up, or it was revoked.
    pub async fn until_over(&self, shown: &ShownCredential, now: impl Fn() -> Time) {
        let mut changes = self.changes.subscribe();
        while !self.is_over(shown, now()) {
            // Without an end in sight only a revocation can come; a year is as good as never.
            let left = shown.expires_at.map_or(YEAR, |expires_at| expires_at.since(now())).min(YEAR);
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// A credential that no list held was shown for the first time in this run.
    pub fn watch(&self, named: &NamedCredential) {
        if let Some(expires_at) = named.expires_at
            && self.end_of(named.id()).is_none()
        {
            let mut expiring = self.expiring.lock().unwrap_or_else(PoisonError::into_inner);
            expiring.entry(named.id().clone()).or_insert_with(|| (expires_at, named.clone(), 0));
        }
    }

    /// Those with an end that has not come.
    pub fn expiring(&self) -> Vec<NamedCredential> {
        let expiring = self.expiring.lock().unwrap_or_else(PoisonError::into_inner);
        expiring.values().map(|(_, named, _)| named.clone()).collect()
    }

    /// A credential was shown and accepted.
    pub fn note_use(&self, named: &NamedCredential) {
        self.note("used", named, Event::FirstUsed);
    }

    /// A credential was shown that has ended.
    pub fn note_refusal(&self, named: &NamedCredential, reason: &'static str) {
        self.note("refused", named, |named| Event::Refused(named, reason));
    }

    /// A token was shown that is in no file: perhaps one that was.
    pub fn note_stranger(&self, fingerprint: impl FnOnce() -> Fingerprint) {
        if !self.former.is_empty()
            && let Some(named) = self.former.get(&fingerprint().into())
        {
            self.note_refusal(named, "removed");
        }
    }

    fn note(&self, what: &'static str, named: &NamedCredential, event: impl FnOnce(NamedCredential) -> Event) {
        if !self.keeps_record {
            return;
        }
        let is_new = {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.insert((what, named.fingerprint.clone()))
        };
        if is_new {
            self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event(named.clone()));
            self.news.notify_one();
        }
    }

    /// Ends a credential that was revoked elsewhere: whoever revoked it keeps the record.
    pub fn end_here(&self, id: &CredentialId) {
        self.end(id, Ended::Revoked);
    }

    /// A credential's time is up.
    pub fn expire(&self, named: &NamedCredential) {
        if self.end(named.id(), Ended::Expired) {
            let actor_id = &named.actor_id;
            tracing::warn!(credential_id = %named.id(), actor_id = %actor_id, "a credential of `{actor_id}` has expired");
            self.note("expired", named, Event::Expired);
        }
    }

    /// True when it had not ended before.
    pub fn end(&self, id: &CredentialId, how: Ended) -> bool {
        let is_new = self.ended.write().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), how).is_none();
        self.expiring.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.any_ended.store(true, Ordering::Release);
        self.changes.send_replace(());
        is_new
    }
}
