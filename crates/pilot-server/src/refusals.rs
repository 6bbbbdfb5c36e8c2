//! Attempts that were refused for role, ownership or separation are entries too, counted per actor, action and minute,
//! so that nobody can flood the ledger with them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::time::Time;
use pilot_store::{Record, Situation, Subject, Write};
use serde_json::json;

use crate::app::App;

const MINUTE: i64 = 60_000_000;
/// How often finished minutes are written down.
const LOOK: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Refusals(Mutex<BTreeMap<Attempt, u64>>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Attempt {
    minute: i64,
    actor_id: String,
    action: String,
    code: &'static str,
    kind: Kind,
    role: pilot_core::role::Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Refused,
    TokenExposed,
}

impl Refusals {
    pub fn note(&self, actor: &Actor, action: &str, code: &'static str, now: Time) {
        self.count(Kind::Refused, actor, action, code, now);
    }

    /// A live token was seen in a URL. True the first time in a minute.
    pub fn note_exposure(&self, actor: &Actor, now: Time) -> bool {
        self.count(Kind::TokenExposed, actor, "", "token_in_url", now) == 1
    }

    fn count(&self, kind: Kind, actor: &Actor, action: &str, code: &'static str, now: Time) -> u64 {
        let attempt = Attempt {
            minute: now.unix_micros().div_euclid(MINUTE),
            actor_id: actor.actor_id.to_string(),
            action: action.to_owned(),
            code,
            kind,
            role: actor.role,
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(attempt).or_default();
        *count += 1;
        *count
    }

    /// Takes out what belongs to minutes that are over; at the end of the service, everything.
    fn take(&self, now: Time, everything: bool) -> Vec<(Attempt, u64)> {
        let minute = now.unix_micros().div_euclid(MINUTE);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (over, kept) =
            std::mem::take(&mut *counts).into_iter().partition(|(attempt, _)| everything || attempt.minute < minute);
        *counts = kept;
        let over: BTreeMap<_, _> = over;
        over.into_iter().collect()
    }
}

/// Runs beside the service.
pub async fn write_down(app: Arc<App>) {
    let mut ticks = tokio::time::interval(LOOK);
    loop {
        ticks.tick().await;
        flush(&app, false).await;
    }
}

pub async fn flush(app: &App, everything: bool) {
    for (attempt, count) in app.refusals.take(app.clock.now(), everything) {
        // The first exposure of a minute was written at once.
        let count = if attempt.kind == Kind::TokenExposed { count - 1 } else { count };
        if count > 0 {
            write(app, attempt, count).await;
        }
    }
}

/// An exposed token cannot wait for the minute to end.
pub async fn write_exposure(app: &App, actor: &Actor) {
    let attempt = Attempt {
        minute: app.clock.now().unix_micros().div_euclid(MINUTE),
        actor_id: actor.actor_id.to_string(),
        action: String::new(),
        code: "token_in_url",
        kind: Kind::TokenExposed,
        role: actor.role,
    };
    write(app, attempt, 1).await;
}

async fn write(app: &App, attempt: Attempt, count: u64) {
    let Ok(actor_id) = attempt.actor_id.parse() else { return };
    let actor = Actor { actor_id, role: attempt.role };
    let minute = Time::from_unix_micros(attempt.minute.saturating_mul(MINUTE));
    let decide = move |situation: &Situation<'_>| {
        let details = json!({ "code": attempt.code, "count": count, "minute": minute });
        let kind = match attempt.kind {
            Kind::Refused => EntryType::AccessRefused,
            Kind::TokenExposed => EntryType::AccessTokenExposed,
        };
        let mut entry = Entry::new(kind, situation.index, situation.now, Some(&actor), details);
        entry.action = (!attempt.action.is_empty()).then(|| attempt.action.as_str().into());
        Ok(Record { entry, documents: Vec::new(), standing: None, answer: Vec::new(), fact: None })
    };
    let write = Write { subject: Subject::Ledger, key: None, decide: Box::new(decide) };
    if let Err(error) = app.store.settle(write).await {
        tracing::error!(cause = %error, "refused attempts could not be written to the ledger");
    }
}
