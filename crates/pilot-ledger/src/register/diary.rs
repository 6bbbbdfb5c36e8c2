//! Writes the lives of credentials to the ledger, in the background.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::entry::Entry;
use pilot_core::entry::details::{Details, OneCredential, RefusedCredential};
use pilot_core::time::Time;
use pilot_store::{Fact, NoRecord, Outcome, Record, Situation, Store, Subject, Write};
use pilot_wire::exposition::Exposition;
use tokio::sync::oneshot;

use super::ended::{End, Ended};
use super::event::Event;
use super::kept::{self, FORGOTTEN_MAX, Kept};
use super::names::NamedCredential;
use super::revocation;
use super::state::Register;
use crate::clock::{Clock, ClockKeeper};

/// An expired credential is refused as soon as it is shown; this loop is for those that nobody shows.
const LOOK: Duration = Duration::from_millis(250);
const DAY: Duration = Duration::from_hours(24);
/// How long before its end a credential is warned about, once each.
pub(super) const WARNINGS: [Duration; 3] = [Duration::from_hours(14 * 24), Duration::from_hours(3 * 24), DAY];

/// What the loop needs.
pub struct Diary {
    pub register: Arc<Register>,
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub clock_keeper: Arc<ClockKeeper>,
}

/// Runs until `done` is dropped; never stops in the middle of an entry, which would then be written twice.
pub async fn run(diary: Diary, mut done: oneshot::Receiver<()>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = diary.register.news.notified() => {}
            _ = &mut done => break,
        }
        if diary.clock_keeper.doubt().is_none() {
            diary.register.look_at_the_time(diary.clock.now());
        }
        flush(&diary).await;
    }
    flush(&diary).await;
}

/// Writes what has happened since the last time, and retries what could not be written. While the machine's clock is
/// not trusted, it writes only revocations, because they cannot wait.
async fn flush(diary: &Diary) {
    let Diary { register, store, clock, clock_keeper } = diary;
    let first = || {
        let is_next = |event: &Event| matches!(event, Event::Revoked(..)) || clock_keeper.doubt().is_none();
        let events = register.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.iter().position(is_next).and_then(|place| Some((place, events.get(place)?.clone())))
    };
    while let Some((place, event)) = first() {
        let written = match &event {
            Event::Revoked(known, why) => {
                revocation::write_by_itself(register, &**store, known, *why, clock.now()).await
            }
            other => write(register, &**store, other, clock.now()).await,
        };
        let was_failing = register.is_failing.swap(written.is_err(), Ordering::Relaxed);
        if let Err(cause) = written {
            if !was_failing {
                let message = "an event about a credential could not be written to the ledger; retrying";
                tracing::error!(cause, message);
            }
            return;
        }
        // Nobody else removes events, and new ones are added at the end.
        register.events.lock().unwrap_or_else(PoisonError::into_inner).remove(place);
    }
}

impl Register {
    /// Ends credentials that have expired, and warns about those that soon will.
    fn look_at_the_time(&self, now: Time) {
        let mut over = Vec::new();
        self.expiring.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, (expires_at, named, warned)| {
            let left = expires_at.since(now);
            let due = WARNINGS.iter().filter(|warning| left <= **warning).count();
            if left.is_zero() {
                over.push(named.clone());
            } else if due > *warned {
                *warned = due;
                warn(named, *expires_at, left);
            }
            !left.is_zero()
        });
        for named in &over {
            self.expire(named);
        }
    }
}

impl Register {
    /// For Prometheus; nothing if no credential expires.
    pub fn metrics(&self, now: Time, text: &mut Exposition) {
        let expiring = self.expiring.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = expiring.values().map(|(expires_at, ..)| *expires_at).min() else { return };
        let [soon, ..] = WARNINGS;
        let count = expiring.values().filter(|(expires_at, ..)| expires_at.since(now) <= soon).count();
        text.gauge("pilot_credentials_expiring", "Credentials that expire within 14 days.", count);
        let help = "When the next credential expires, in seconds since 1970.";
        text.gauge("pilot_credentials_next_expiry_seconds", help, next.unix_micros() / 1_000_000);
    }
}

fn warn(named: &NamedCredential, expires_at: Time, left: Duration) {
    let (actor_id, hours) = (&named.actor_id, left.as_secs() / 3600);
    tracing::warn!(
        credential_id = %named.id(), actor_id = %actor_id, expires_at = %expires_at,
        "a credential of `{actor_id}` expires in {hours} hours; rotate it before",
    );
}

async fn write(register: &Register, store: &dyn Store, event: &Event, now: Time) -> Result<(), String> {
    let mut kept = register.kept.lock().await;
    let Some(told) = kept.take_in(event) else { return Ok(()) };
    let Told { actor, details, fact } = told;
    let name = fact.name.clone();
    let surplus = kept.surplus(now, FORGOTTEN_MAX, &name);
    if let Event::Expired(named, None) = event
        && let Some(end) = kept.ended.get(named.id())
        && let Err(cause) = register.keep_outside(named.id(), end).await
    {
        // After a restore it simply expires again.
        tracing::warn!(%cause, "that a credential has expired could not be kept outside of the ledger");
    }
    let facts: Vec<_> = std::iter::once(fact).chain(surplus.facts()).collect();
    let decide = move |situation: &Situation<'_>| {
        if situation.facts.iter().any(Option::is_some) {
            return Err(NoRecord::Nothing);
        }
        let entry = Entry::of_service(situation.index, situation.now, actor.as_ref(), &details);
        Ok(Record { facts: facts.clone(), ..Record::of(entry) })
    };
    let written = store.settle(Write::new(Subject::Ledger, None, decide).reading([name])).await;
    match written {
        Ok(Outcome::Recorded { .. }) => {
            kept.forget(&surplus);
            Ok(())
        }
        Ok(Outcome::Nothing) => Ok(()),
        other => {
            kept.take_out(event);
            Err(other.map_or_else(|error| error.to_string(), |outcome| format!("{outcome:?}")))
        }
    }
}

/// The entry that an event becomes, and the fact that keeps it from being written twice.
struct Told {
    actor: Option<Actor>,
    details: Details,
    fact: Fact,
}

impl Kept {
    /// `None` if the ledger already has it.
    fn take_in(&mut self, event: &Event) -> Option<Told> {
        let told = |actor, details, fact| Some(Told { actor, details, fact });
        match event {
            Event::FirstUsed(named) => {
                self.used.insert(named.fingerprint.clone(), named.clone()).is_none().then_some(())?;
                let actor = Actor::new(named.actor_id.clone(), named.role);
                let details = Details::CredentialFirstUsed(OneCredential { credential: named.into() });
                told(Some(actor), details, kept::used(named))
            }
            // Showing a credential that is not valid identifies nobody, so the entry has no actor.
            Event::Refused(named, reason) => {
                self.refused.insert(named.fingerprint.clone()).then_some(())?;
                let (credential, reason) = (named.into(), (*reason).to_owned());
                let details = Details::CredentialRefused(RefusedCredential { credential, reason });
                told(None, details, kept::refused(&named.fingerprint))
            }
            // Revocations are written elsewhere.
            Event::Revoked(..) => None,
            Event::Expired(named, forget_at) => {
                if self.ended.contains_key(named.id()) {
                    return None;
                }
                let fingerprint = Some(named.fingerprint.clone());
                let end = End { how: Ended::Expired, fingerprint, forget_at: *forget_at, revocation: None };
                let fact = kept::ended(named.id(), &end);
                self.ended.insert(named.id().clone(), end);
                told(None, Details::CredentialExpired(OneCredential { credential: named.into() }), fact)
            }
        }
    }

    fn take_out(&mut self, event: &Event) {
        match event {
            Event::FirstUsed(named) => drop(self.used.remove(&named.fingerprint)),
            Event::Refused(named, _) => drop(self.refused.remove(&named.fingerprint)),
            Event::Expired(named, _) => drop(self.ended.remove(named.id())),
            Event::Revoked(..) => {}
        }
    }
}
