//! Which credentials have ended, by revocation or expiry, and what still has to be recorded about them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::credentials::CredentialId;
use pilot_core::digest::Fingerprint;
use pilot_core::entry::Entry;
use pilot_core::entry::details::{Details, RevokedCredential};
use pilot_core::time::Time;
use pilot_setup::error::StartError;
use pilot_store::Store;
use tokio::sync::{Notify, watch};

use super::ended::{End, Ended, Revocation};
use super::event::{Automatic, Event};
use super::kept::{KEPT_MAX, Kept};
use super::names::{KnownCredential, NamedCredential, ShownCredential};
use super::outside::{Doubt, Outside};

const DAY: Duration = Duration::from_hours(24);
const YEAR: Duration = Duration::from_hours(365 * 24);

pub struct Register {
    /// Whether the lives of credentials are recorded and exposed tokens revoked, as the production profile requires.
    pub(super) keeps_record: bool,
    /// The mechanism has no list of its own: it learns of credentials when they are used, and an expired one cannot be
    /// extended.
    pub(super) knows_by_use: bool,
    pub(super) kept: tokio::sync::Mutex<Kept>,
    pub(super) ended: RwLock<HashMap<CredentialId, Ended>>,
    /// Saves most requests the lookup in the map.
    pub(super) any_ended: AtomicBool,
    /// Credentials that were removed from the file, by fingerprint.
    pub(super) former: BTreeMap<CredentialId, NamedCredential>,
    /// Those that will expire, with how many warnings were given.
    pub(super) expiring: Mutex<BTreeMap<CredentialId, (Time, NamedCredential, usize)>>,
    pub(super) events: Mutex<VecDeque<Event>>,
    /// The last attempt to write failed.
    pub(super) is_failing: AtomicBool,
    /// What has already become an event in this run.
    pub(super) noted: Mutex<HashSet<(&'static str, CredentialId)>>,
    pub(super) news: Notify,
    pub(super) changes: watch::Sender<()>,
    /// What has ended, as stored outside the database.
    pub(super) outside: Arc<Mutex<Outside>>,
    pub(super) doubt: Option<Doubt>,
}

impl Register {
    /// `present` are the credentials of this start, `former` those of earlier ones. `outside` is the file in which the
    /// log of this name also stores what has ended.
    pub async fn open(
        store: &dyn Store,
        present: &BTreeSet<NamedCredential>,
        former: &BTreeSet<NamedCredential>,
        keeps_record: bool,
        (outside, log): (&Path, &str),
        now: Time,
    ) -> Result<Register, StartError> {
        let mut kept = Kept::load(store).await?;
        let outside = Outside::open(outside, log, &kept, now)?;
        let doubt = store.fact(Doubt::FACT).await?.map(|bytes| Doubt::parse(&bytes)).transpose()?;
        let counting = kept.counting(present);
        kept.refused.retain(|fingerprint| !counting.contains(fingerprint));
        for named in present {
            // An extended credential expires later than recorded.
            if let Some(used) = kept.used.get_mut(&named.fingerprint) {
                used.clone_from(named);
            }
        }
        let carried_over = carried_over(&outside, &kept, present, now);
        let ends = || kept.ended.iter().chain(outside.ended());
        let mut ended: HashMap<_, _> = HashMap::new();
        for (id, end) in ends() {
            ended.entry(id.clone()).or_insert(end.how);
        }
        let mut by_fingerprint: HashMap<_, _> = HashMap::new();
        for (_, end) in ends() {
            if let Some(fingerprint) = &end.fingerprint {
                by_fingerprint.entry(fingerprint).or_insert(end.how);
            }
        }
        for named in present {
            if let Some(how) = by_fingerprint.get(&named.fingerprint) {
                ended.insert(named.id().clone(), *how);
            }
            if let Some(how) = ended.get(named.id()) {
                let (id, actor_id, how) = (named.id(), &named.actor_id, how.as_str());
                tracing::warn!(credential_id = %id, actor_id = %actor_id, "the credential `{id}` of `{actor_id}` was {how} and stays so; a new token needs a new credential_id");
            }
        }
        let knows_by_use = present.is_empty();
        let known = if knows_by_use { kept.used.values().collect() } else { present.iter().collect::<Vec<_>>() };
        let expiring = known
            .into_iter()
            .filter_map(|named| Some((named.id().clone(), (named.expires_at?, named.clone(), 0))))
            .filter(|(id, _)| !ended.contains_key(id));
        Ok(Register {
            keeps_record,
            knows_by_use,
            any_ended: AtomicBool::new(!ended.is_empty()),
            expiring: Mutex::new(expiring.collect()),
            former: former.iter().map(|named| (named.fingerprint.clone(), named.clone())).collect(),
            ended: RwLock::new(ended),
            kept: tokio::sync::Mutex::new(kept),
            outside: Arc::new(Mutex::new(outside)),
            doubt: doubt.filter(|doubt| !doubt.is_over),
            events: Mutex::new(carried_over),
            is_failing: AtomicBool::new(false),
            noted: Mutex::default(),
            news: Notify::new(),
            changes: watch::Sender::new(()),
        })
    }

    pub fn keeps_record(&self) -> bool {
        self.keeps_record
    }

    /// Whether a credential may have been revoked by an entry that is lost. `issued` is when it was issued, if known.
    pub fn is_doubted(&self, id: &CredentialId, issued: Option<Time>) -> bool {
        self.doubt.as_ref().is_some_and(|doubt| doubt.is_about(id, issued))
    }

    pub fn doubt(&self) -> Option<&Doubt> {
        self.doubt.as_ref()
    }

    /// Stores an end outside the database; on disk when this returns.
    pub(super) async fn keep_outside(&self, id: &CredentialId, end: &End) -> std::io::Result<()> {
        let (outside, id, end) = (Arc::clone(&self.outside), id.clone(), end.clone());
        let add = move || outside.lock().unwrap_or_else(PoisonError::into_inner).add(&id, &end);
        tokio::task::spawn_blocking(add).await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// Whether a credential has ended, and how.
    pub fn end_of(&self, id: &CredentialId) -> Option<Ended> {
        if !self.any_ended.load(Ordering::Acquire) {
            return None;
        }
        self.ended.read().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    /// Whether a credential that was accepted before is no longer valid.
    pub fn is_over(&self, shown: &ShownCredential, now: Time) -> bool {
        let is_past = shown.expires_at.is_some_and(|expires_at| expires_at <= now);
        is_past || shown.is_withdrawn() || self.end_of(&shown.id).is_some()
    }

    /// Ends everything that is open under a credential, but not the credential.
    pub fn withdraw(&self, shown: &ShownCredential) {
        shown.withdraw();
        self.changes.send_replace(());
    }

    /// Returns when the credential is no longer valid, because it expired or was revoked.
    pub async fn until_over(&self, shown: &ShownCredential, now: impl Fn() -> Time) {
        let mut changes = self.changes.subscribe();
        while !self.is_over(shown, now()) {
            // If it does not expire, only a revocation can end it; a year is as good as never.
            let left = shown.expires_at.map_or(YEAR, |expires_at| expires_at.since(now())).min(YEAR);
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// A credential that is on no list was shown for the first time in this run.
    pub fn watch(&self, named: &NamedCredential) {
        if let Some(expires_at) = named.expires_at
            && self.end_of(named.id()).is_none()
        {
            let mut expiring = self.expiring.lock().unwrap_or_else(PoisonError::into_inner);
            expiring.entry(named.id().clone()).or_insert_with(|| (expires_at, named.clone(), 0));
        }
    }

    /// Those that will expire and have not yet.
    pub fn expiring(&self) -> Vec<NamedCredential> {
        let expiring = self.expiring.lock().unwrap_or_else(PoisonError::into_inner);
        expiring.values().map(|(_, named, _)| named.clone()).collect()
    }

    /// A credential was shown and accepted.
    pub fn note_use(&self, named: &NamedCredential) {
        self.note("used", named, Event::FirstUsed);
    }

    /// A credential that has ended was shown.
    pub fn note_refusal(&self, named: &NamedCredential, reason: &'static str) {
        self.note("refused", named, |named| Event::Refused(named, reason));
    }

    /// A token was shown that is in no file; it may have been in one.
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
            if noted.len() >= KEPT_MAX {
                // Forgetting these costs a lookup in what is stored, never a second entry.
                noted.clear();
            }
            noted.insert((what, named.fingerprint.clone()))
        };
        if is_new {
            self.push(event(named.clone()));
        }
    }

    pub(super) fn push(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
        self.news.notify_one();
    }

    /// Ends a credential that was revoked elsewhere; the revoker keeps the record.
    pub fn end_here(&self, id: &CredentialId) {
        self.end(id, Ended::Revoked);
    }

    /// Another node has revoked a credential: it ends here at once, and is stored outside this node's ledger too.
    pub(crate) async fn follow(&self, entry: &Entry) {
        let Some(Details::CredentialRevoked(RevokedCredential { credential, .. })) = entry.details() else { return };
        let (Some(id), fingerprint) = (credential.credential_id, credential.fingerprint) else { return };
        let is_news = self.end(&id, Ended::Revoked);
        let end = End { how: Ended::Revoked, fingerprint, forget_at: None, revocation: Revocation::of_entry(entry) };
        if let Err(cause) = self.keep_outside(&id, &end).await {
            tracing::error!(%cause, credential_id = %id, "a revocation by another node cannot be kept outside of the ledger");
        }
        self.kept.lock().await.ended.insert(id.clone(), end);
        if is_news {
            tracing::warn!(credential_id = %id, "the credential `{id}` was revoked on another node");
        }
    }

    /// A credential has expired.
    pub fn expire(&self, named: &NamedCredential) {
        if self.end_of(named.id()).is_none() && self.end(named.id(), Ended::Expired) {
            let actor_id = &named.actor_id;
            tracing::warn!(credential_id = %named.id(), actor_id = %actor_id, "a credential of `{actor_id}` has expired");
            let forget_at = named.expires_at.filter(|_| self.knows_by_use);
            self.note("expired", named, |named| Event::Expired(named, forget_at));
        }
    }

    /// Returns whether it had not ended before.
    pub fn end(&self, id: &CredentialId, how: Ended) -> bool {
        let is_new = self.ended.write().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), how).is_none();
        self.expiring.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.any_ended.store(true, Ordering::Release);
        if is_new {
            self.changes.send_replace(());
        }
        is_new
    }
}

/// Revocations that the ledger has lost: they take effect at once, and become entries again.
fn carried_over(outside: &Outside, kept: &Kept, present: &BTreeSet<NamedCredential>, now: Time) -> VecDeque<Event> {
    // Credentials that nobody can show any more may have been forgotten there.
    let is_past = |end: &End| end.forget_at.is_some_and(|time| time.plus(DAY) <= now);
    let missing = outside.ended().iter().filter(|(_, end)| end.how == Ended::Revoked && !is_past(end));
    let missing = missing.filter(|(id, _)| !kept.ended.contains_key(*id));
    let event = |(id, end): (&CredentialId, &End)| {
        tracing::warn!(credential_id = %id, "the credential `{id}` was revoked, but the ledger has lost that entry; it stays revoked");
        let named =
            present.iter().find(|named| named.id() == id || Some(&named.fingerprint) == end.fingerprint.as_ref());
        let actor = named.map(|named| Actor::new(named.actor_id.clone(), named.role));
        let known =
            KnownCredential { id: id.clone(), actor, fingerprint: end.fingerprint.clone(), forget_at: end.forget_at };
        Event::Revoked(known, Automatic::CarriedOver)
    };
    missing.map(event).collect()
}
