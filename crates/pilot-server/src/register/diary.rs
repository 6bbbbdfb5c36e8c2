//! Writes the lives of credentials down: runs beside the service.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::time::Time;
use pilot_store::{Outcome, Record, Situation, Subject, Write};
use serde_json::json;
use tokio::sync::oneshot;

use super::{End, Ended, Event, FACT, KEPT_MAX, Kept, NamedCredential, Register, revocation};
use crate::app::App;

/// An expiry is acted on at once by whoever looks at the time; this is for those that nobody shows.
const LOOK: Duration = Duration::from_millis(250);
const DAY: Duration = Duration::from_hours(24);
/// How long before its end a credential is spoken of, each time once.
pub const WARNINGS: [Duration; 3] = [Duration::from_hours(14 * 24), Duration::from_hours(3 * 24), DAY];

/// Until `done` is dropped; never in the middle of an entry, which would then be written twice.
pub async fn run(app: Arc<App>, mut done: oneshot::Receiver<()>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = app.register.news.notified() => {}
            _ = &mut done => break,
        }
        if app.clock_keeper.doubt().is_none() {
            app.register.look_at_the_time(app.clock.now());
        }
        flush(&app).await;
    }
    flush(&app).await;
}

/// Writes what has happened since the last time. What could not be written is tried again. While the machine's clock is
/// not believed, only revocations are: they cannot wait.
async fn flush(app: &App) {
    let register = &app.register;
    let first = || {
        let is_next = |event: &Event| matches!(event, Event::Revoked(..)) || app.clock_keeper.doubt().is_none();
        let events = register.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.iter().position(is_next).and_then(|place| Some((place, events.get(place)?.clone())))
    };
    while let Some((place, event)) = first() {
        let written = match &event {
            Event::Revoked(known, why) => revocation::write_by_itself(app, known, *why).await,
            other => write(app, other).await,
        };
        let was_failing = register.is_failing.swap(written.is_err(), Ordering::Relaxed);
        if let Err(cause) = written {
            if !was_failing {
                let message = "an event about a credential could not be written to the ledger; retrying";
                tracing::error!(cause, message);
            }
            return;
        }
        // Nobody else takes any out, and what is new comes behind.
        register.events.lock().unwrap_or_else(PoisonError::into_inner).remove(place);
    }
}

impl Register {
    /// Ends those whose time is up, and warns of those whose time soon will be.
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
    /// For Prometheus; nothing while no credential has an end.
    pub fn metrics(&self, now: Time) -> String {
        let expiring = self.expiring.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = expiring.values().map(|(expires_at, ..)| *expires_at).min() else { return String::new() };
        let [soon, ..] = WARNINGS;
        let count = expiring.values().filter(|(expires_at, ..)| expires_at.since(now) <= soon).count();
        format!(
            "# HELP pilot_credentials_expiring Credentials that expire within 14 days.\n\
             # TYPE pilot_credentials_expiring gauge\n\
             pilot_credentials_expiring {count}\n\
             # HELP pilot_credentials_next_expiry_seconds When the next credential expires, in seconds since 1970.\n\
             # TYPE pilot_credentials_next_expiry_seconds gauge\n\
             pilot_credentials_next_expiry_seconds {}\n",
            next.unix_micros() / 1_000_000
        )
    }
}

fn warn(named: &NamedCredential, expires_at: Time, left: Duration) {
    let (actor_id, hours) = (&named.actor_id, left.as_secs() / 3600);
    tracing::warn!(
        credential_id = %named.id(), actor_id = %actor_id, expires_at = %expires_at,
        "a credential of `{actor_id}` expires in {hours} hours; rotate it before",
    );
}

async fn write(app: &App, event: &Event) -> Result<(), String> {
    let mut kept = app.register.kept.lock().await;
    kept.tidy(app.clock.now());
    let Some((kind, actor, details)) = kept.take_in(event) else { return Ok(()) };
    let bytes = kept.to_bytes();
    if let Event::Expired(named, None) = event
        && let Some(end) = kept.ended.get(named.id())
        && let Err(cause) = app.register.keep_outside(named.id(), end).await
    {
        // Time ends it again, whatever is restored.
        tracing::warn!(%cause, "the expiry of a credential could not be saved outside the ledger");
    }
    let decide = move |situation: &Situation<'_>| {
        let entry = Entry::new(kind, situation.index, situation.now, actor.as_ref(), details.clone());
        let fact = Some((FACT, bytes.clone()));
        Ok(Record { entry, documents: Vec::new(), standing: None, answer: Vec::new(), fact })
    };
    let written = app.store.settle(Write::new(Subject::Ledger, None, decide)).await;
    match written {
        Ok(Outcome::Recorded { .. }) => Ok(()),
        other => {
            kept.take_out(event);
            Err(other.map_or_else(|error| error.to_string(), |outcome| format!("{outcome:?}")))
        }
    }
}

impl Kept {
    /// The entry an event becomes; none when the ledger has it already.
    fn take_in(&mut self, event: &Event) -> Option<(EntryType, Option<Actor>, serde_json::Value)> {
        match event {
            Event::FirstUsed(named) => {
                let is_new = self.used.insert(named.fingerprint.clone(), named.clone()).is_none();
                let actor = Actor { actor_id: named.actor_id.clone(), role: named.role };
                let details = json!({ "credential": named });
                is_new.then_some((EntryType::CredentialFirstUsed, Some(actor), details))
            }
            // Whoever shows a credential that does not count is nobody: the entry has no actor.
            Event::Refused(named, reason) => {
                let details = json!({ "credential": named, "reason": reason });
                let is_new = self.refused.insert(named.fingerprint.clone());
                is_new.then_some((EntryType::CredentialRefused, None, details))
            }
            // It has a way of its own.
            Event::Revoked(..) => None,
            Event::Expired(named, forget_at) => {
                if self.ended.contains_key(named.id()) {
                    return None;
                }
                let fingerprint = Some(named.fingerprint.clone());
                let end = End { how: Ended::Expired, fingerprint, forget_at: *forget_at, revocation: None };
                self.ended.insert(named.id().clone(), end);
                Some((EntryType::CredentialExpired, None, json!({ "credential": named })))
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

    /// Keeps what there is within bounds. Of `used` and `refused`, forgetting can cost a second entry; of `ended`, only
    /// what cannot be shown any more goes, the longest past first.
    pub(super) fn tidy(&mut self, now: Time) {
        let is_past = |time: Option<Time>| time.is_some_and(|time| time.plus(DAY) <= now);
        self.used.retain(|_, named| !is_past(named.expires_at));
        while self.refused.len() > KEPT_MAX {
            self.refused.pop_first();
        }
        let forgettable = self.ended.iter().filter_map(|(id, end)| Some((end.forget_at?, id.clone())));
        let mut forgettable: Vec<_> = forgettable.filter(|(time, _)| is_past(Some(*time))).collect();
        let surplus = forgettable.len().saturating_sub(KEPT_MAX);
        forgettable.sort_unstable();
        for (_, id) in forgettable.into_iter().take(surplus) {
            self.ended.remove(&id);
        }
    }

    /// Names, times and numbers alone: writing them as JSON cannot fail.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}
