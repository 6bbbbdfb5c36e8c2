//! Attempts refused for role, ownership or separation of duties are entries too. They are counted per actor, action and
//! minute, so that nobody can flood the ledger with them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::entry::Entry;
use pilot_core::entry::details::{Attempts, Details};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_store::{Record, Situation, Store, Subject, Write};
use tokio::sync::oneshot;

use crate::clock::{ClockKeeper, LedgerClock};

/// Attempts are gathered for almost a minute from the first one on, so that each is in the ledger within a minute.
const GATHERED: Duration = Duration::from_secs(55);
const LOOK: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct Refusals(Mutex<BTreeMap<Attempt, Gathered>>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Attempt {
    kind: Kind,
    actor_id: ActorId,
    role: Role,
    action: String,
    code: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Refused,
    TokenExposed,
}

#[derive(Debug, Clone, Copy)]
struct Gathered {
    since: Time,
    count: u64,
}

impl Refusals {
    pub fn note(&self, actor: &Actor, action: &str, code: &'static str, now: Time) {
        self.gather(Attempt::new(Kind::Refused, actor, action, code), now);
    }

    /// A live token was seen where it does not belong. True for the first time within a minute.
    pub fn note_exposure(&self, actor: &Actor, code: &'static str, now: Time) -> bool {
        self.gather(Attempt::exposure(actor, code), now) == 1
    }

    fn gather(&self, attempt: Attempt, now: Time) -> u64 {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gathered = attempts.entry(attempt).or_insert(Gathered { since: now, count: 0 });
        gathered.count += 1;
        gathered.count
    }

    /// Takes what has been gathered for long enough; when the service stops, everything.
    fn take(&self, now: Time, everything: bool) -> BTreeMap<Attempt, Gathered> {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |gathered: &Gathered| everything || now.since(gathered.since) >= GATHERED;
        let (over, kept) = std::mem::take(&mut *attempts).into_iter().partition(|(_, gathered)| is_over(gathered));
        *attempts = kept;
        over
    }
}

impl Attempt {
    fn new(kind: Kind, actor: &Actor, action: &str, code: &'static str) -> Attempt {
        let Actor { actor_id, role } = actor.clone();
        Attempt { kind, actor_id, role, action: action.to_owned(), code }
    }

    fn exposure(actor: &Actor, code: &'static str) -> Attempt {
        Attempt::new(Kind::TokenExposed, actor, "", code)
    }
}

/// Runs until `done` is dropped, then writes everything gathered so far.
pub async fn write_down(
    refusals: Arc<Refusals>,
    store: Arc<dyn Store>,
    clock: LedgerClock,
    keeper: Arc<ClockKeeper>,
    mut done: oneshot::Receiver<()>,
) {
    let mut ticks = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = &mut done => break,
        }
        // While the clock is not trusted, they are only gathered.
        if keeper.doubt().is_none() {
            flush(&refusals, &*store, clock.now(), false).await;
        }
    }
    flush(&refusals, &*store, clock.now(), true).await;
}

async fn flush(refusals: &Refusals, store: &dyn Store, now: Time, everything: bool) {
    for (attempt, gathered) in refusals.take(now, everything) {
        // The first exposure was written immediately.
        let count = if attempt.kind == Kind::TokenExposed { gathered.count - 1 } else { gathered.count };
        if count > 0 {
            write(store, attempt, Gathered { count, ..gathered }).await;
        }
    }
}

/// An exposed token cannot wait.
pub async fn write_exposure(store: &dyn Store, actor: &Actor, code: &'static str, now: Time) {
    write(store, Attempt::exposure(actor, code), Gathered { since: now, count: 1 }).await;
}

async fn write(store: &dyn Store, attempt: Attempt, gathered: Gathered) {
    let Attempt { kind, actor_id, role, action, code } = attempt;
    let actor = Actor { actor_id, role };
    let decide = move |situation: &Situation<'_>| {
        let attempts = Attempts { code: code.to_owned(), count: gathered.count, since: Some(gathered.since) };
        let details = match kind {
            Kind::Refused => Details::AccessRefused(attempts),
            Kind::TokenExposed => Details::AccessTokenExposed(attempts),
        };
        let mut entry = Entry::of_service(situation.index, situation.now, Some(&actor), &details);
        entry.action = (!action.is_empty()).then(|| action.as_str().into());
        Ok(Record::of(entry))
    };
    let write = Write::new(Subject::Ledger, None, decide);
    if let Err(error) = store.settle(write).await {
        tracing::error!(cause = %error, "refused attempts could not be written to the ledger");
    }
}
