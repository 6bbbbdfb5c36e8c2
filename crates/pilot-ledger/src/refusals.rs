//! Attempts refused for role, ownership or separation of duties are entries too. They are counted per actor, action and
//! minute, so that nobody can flood the ledger with them.
//!
//! Each node adds what it has counted to a fact, every two seconds; one node makes entries of the facts that are almost
//! a minute old. So all nodes together record one entry, and a node that is killed loses little.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::document::sha256_of_canonical;
use pilot_core::entry::Entry;
use pilot_core::entry::details::{Attempts, Details};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_store::{Duty, Fact, NoRecord, Record, Situation, Store, StoreError, Subject, Write};
use pilot_wire::peer::Address;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::clock::{ClockKeeper, LedgerClock};
use crate::persisted;

/// Attempts are gathered for almost a minute from the first one on, so that each is in the ledger within a minute.
const GATHERED: Duration = Duration::from_secs(52);
const LOOK: Duration = Duration::from_secs(2);
const FACTS: &str = "refused/";
/// Enough to see where a run of attempts came from, however many addresses someone has.
const ORIGINS_MAX: usize = 4;

#[derive(Default)]
pub struct Refusals {
    /// Differs between nodes, and from run to run.
    run: String,
    counted: Mutex<BTreeMap<Attempt, Counted>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Attempt {
    kind: Kind,
    actor_id: ActorId,
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operated_by: Option<ActorId>,
    action: String,
    code: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Refused,
    TokenExposed,
}

/// What this node has counted since the first attempt.
#[derive(Debug, Clone)]
struct Counted {
    since: Time,
    count: u64,
    /// How much of it is in the fact.
    told: u64,
    /// What is being added to the fact, and the number of that addition: if its outcome is unknown, the same is tried
    /// again.
    telling: Option<u64>,
    additions: u64,
    origins: Vec<Address>,
}

/// What all nodes have counted, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Tally {
    attempt: Attempt,
    since: Time,
    count: u64,
    /// The number of the last addition by each run of a node.
    additions: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    origins: Vec<Address>,
}

/// Adds what is not there yet, as far as there is room.
fn add_origins(origins: &mut Vec<Address>, more: impl IntoIterator<Item = Address>) {
    for origin in more {
        if origins.len() < ORIGINS_MAX && !origins.contains(&origin) {
            origins.push(origin);
        }
    }
}

impl Refusals {
    /// `run` must differ between nodes, and from run to run.
    pub fn of_run(run: &str) -> Refusals {
        Refusals { run: run.to_owned(), ..Refusals::default() }
    }

    /// With an origin, the entry will say where the attempt came from.
    pub fn note(&self, actor: &Actor, origin: Option<Address>, action: &str, code: &'static str, now: Time) {
        self.gather(Attempt::new(Kind::Refused, actor, action, code), origin, now);
    }

    /// A live token was seen where it does not belong. True for the first time within a minute.
    pub fn note_exposure(&self, actor: &Actor, origin: Option<Address>, code: &'static str, now: Time) -> bool {
        self.gather(Attempt::exposure(actor, code), origin, now) == 1
    }

    fn counted(&self) -> MutexGuard<'_, BTreeMap<Attempt, Counted>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gather(&self, attempt: Attempt, origin: Option<Address>, now: Time) -> u64 {
        // The first exposure is written immediately.
        let told = u64::from(attempt.kind == Kind::TokenExposed);
        let mut counted = self.counted();
        let new = Counted { since: now, count: 0, told, telling: None, additions: 0, origins: Vec::new() };
        let counted = counted.entry(attempt).or_insert(new);
        counted.count += 1;
        add_origins(&mut counted.origins, origin);
        counted.count
    }

    /// What is to be added to the facts.
    fn untold(&self) -> Vec<(Attempt, Addition)> {
        let mut counted = self.counted();
        let untold = counted.iter_mut().filter_map(|(attempt, counted)| {
            let amount = counted.telling.or_else(|| Some(counted.count - counted.told).filter(|amount| *amount > 0))?;
            if counted.telling.is_none() {
                counted.telling = Some(amount);
                counted.additions += 1;
            }
            let Counted { since, additions: number, ref origins, .. } = *counted;
            let run = self.run.clone();
            Some((attempt.clone(), Addition { since, amount, origins: origins.clone(), run, number }))
        });
        untold.collect()
    }

    fn is_told(&self, attempt: &Attempt, amount: u64) {
        if let Some(counted) = self.counted().get_mut(attempt) {
            counted.told += amount;
            counted.telling = None;
        }
    }

    /// Forgets what was counted for long enough and is told.
    fn forget(&self, now: Time) {
        self.counted().retain(|_, counted| counted.told < counted.count || now.since(counted.since) < GATHERED);
    }
}

impl Attempt {
    fn new(kind: Kind, actor: &Actor, action: &str, code: &str) -> Attempt {
        let Actor { actor_id, role, operated_by } = actor.clone();
        Attempt { kind, actor_id, role, operated_by, action: action.to_owned(), code: code.to_owned() }
    }

    fn exposure(actor: &Actor, code: &str) -> Attempt {
        Attempt::new(Kind::TokenExposed, actor, "", code)
    }

    fn fact_name(&self) -> String {
        format!("{FACTS}{}", sha256_of_canonical(self))
    }

    fn entry(&self, situation: &Situation<'_>, count: u64, since: Time, origins: &[Address]) -> Entry {
        let origins = origins.iter().map(ToString::to_string).collect();
        let attempts = Attempts { code: self.code.clone(), count, since: Some(since), origins };
        let details = match self.kind {
            Kind::Refused => Details::AccessRefused(attempts),
            Kind::TokenExposed => Details::AccessTokenExposed(attempts),
        };
        let (actor_id, operated_by) = (self.actor_id.clone(), self.operated_by.clone());
        let actor = Actor { actor_id, role: self.role, operated_by };
        let mut entry = Entry::of_service(situation.index, situation.now, Some(&actor), &details);
        entry.action = (!self.action.is_empty()).then(|| self.action.as_str().into());
        entry
    }
}

impl Tally {
    fn read(bytes: &[u8]) -> Result<Tally, StoreError> {
        persisted::from_bytes("the count of refused attempts", bytes)
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
            tell(&refusals, &*store).await;
            if store.holds(Duty::Diary) {
                write_tallies(&*store, |tally| clock.now().since(tally.since) >= GATHERED).await;
            }
            refusals.forget(clock.now());
        }
    }
    tell(&refusals, &*store).await;
    // Others go on counting; when the last one stops, everything is written.
    if store.is_alone() {
        write_tallies(&*store, |_| true).await;
    }
}

/// Adds what this node has counted to the facts.
async fn tell(refusals: &Refusals, store: &dyn Store) {
    let untold = refusals.untold();
    let pending: Vec<_> = untold
        .into_iter()
        .map(|(attempt, addition)| {
            let amount = addition.amount;
            let write = addition.write(attempt.clone());
            (attempt, amount, store.settle(write))
        })
        .collect();
    for (attempt, amount, settled) in pending {
        match settled.await {
            Ok(_) => refusals.is_told(&attempt, amount),
            Err(error) => tracing::error!(cause = %error, "refused attempts could not be counted; retrying"),
        }
    }
}

/// What a node adds to a fact, once however often it is tried.
struct Addition {
    since: Time,
    amount: u64,
    origins: Vec<Address>,
    run: String,
    number: u64,
}

impl Addition {
    fn write(self, attempt: Attempt) -> Write {
        let name = attempt.fact_name();
        let fact = name.clone();
        let decide = move |situation: &Situation<'_>| {
            let Addition { since, amount, origins, run, number } = &self;
            // A count that cannot be read is replaced: it is worth less than what is being counted.
            let stored = situation.facts.first().and_then(Option::as_deref).and_then(|bytes| Tally::read(bytes).ok());
            let new = || Tally {
                attempt: attempt.clone(),
                since: *since,
                count: 0,
                additions: BTreeMap::new(),
                origins: Vec::new(),
            };
            let mut tally = stored.unwrap_or_else(new);
            if tally.additions.get(run).is_some_and(|last| last >= number) {
                return Err(NoRecord::Nothing);
            }
            tally.count += amount;
            tally.since = tally.since.min(*since);
            tally.additions.insert(run.clone(), *number);
            add_origins(&mut tally.origins, origins.iter().copied());
            Err(NoRecord::Note(vec![Fact { name: fact.clone(), value: Some(persisted::to_bytes(&tally)) }]))
        };
        Write::new(Subject::Ledger, None, decide).reading([name])
    }
}

/// Makes entries of the counts that are due.
async fn write_tallies(store: &dyn Store, is_due: impl Fn(&Tally) -> bool) {
    let facts = match store.facts(FACTS).await {
        Ok(facts) => facts,
        Err(error) => return tracing::error!(cause = %error, "counts of refused attempts cannot be read; retrying"),
    };
    for (name, value) in facts {
        match Tally::read(&value) {
            Ok(tally) if !is_due(&tally) => {}
            Ok(_) => write_tally(store, name).await,
            Err(error) => tracing::error!(cause = %error, "a count of refused attempts cannot be read"),
        }
    }
}

/// With the count as it is when it is written: a node may have added to it in the meantime.
async fn write_tally(store: &dyn Store, name: String) {
    let fact = name.clone();
    let decide = move |situation: &Situation<'_>| {
        let stored = situation.facts.first().and_then(Option::as_deref);
        let Some(tally) = stored.and_then(|bytes| Tally::read(bytes).ok()) else { return Err(NoRecord::Nothing) };
        let entry = tally.attempt.entry(situation, tally.count, tally.since, &tally.origins);
        Ok(Record { facts: vec![Fact { name: fact.clone(), value: None }], ..Record::of(entry) })
    };
    if let Err(error) = store.settle(Write::new(Subject::Ledger, None, decide).reading([name])).await {
        tracing::error!(cause = %error, "refused attempts could not be written to the ledger; retrying");
    }
}

/// An exposed token cannot wait.
pub async fn write_exposure(store: &dyn Store, actor: &Actor, origin: Option<Address>, code: &'static str, now: Time) {
    let attempt = Attempt::exposure(actor, code);
    let origins: Vec<_> = origin.into_iter().collect();
    let decide = move |situation: &Situation<'_>| Ok(Record::of(attempt.entry(situation, 1, now, &origins)));
    if let Err(error) = store.settle(Write::new(Subject::Ledger, None, decide)).await {
        tracing::error!(cause = %error, "an exposed token could not be written to the ledger");
    }
}
