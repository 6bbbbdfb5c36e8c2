//! A team at work in a bad week: everyone does anything, requests come twice and late, the clock jumps, the machine dies.
//! Whatever happens, every invariant holds of what is left. A seed gives the same choices again.

mod house;
mod judge;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use pilot_core::actor::Actor;
use pilot_core::decide::{ActionRequest, Content, IfMatch, NewItem, actions_for};
use pilot_core::document::Document;
use pilot_core::entry::Entry;
use pilot_core::item::{Item, ItemId};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Name;
use pilot_ledger::clock::{Clock, Elapsed, LedgerClock};
use pilot_ledger::moves::{self, Edit};
use pilot_ledger::repeated::{Repeated, recall};
use pilot_ledger::timers::expire_due;
use pilot_ledger::witnesses::EffectGate;
use pilot_ledger::workflows::Workflows;
use pilot_store::sqlite::Sqlite;
use pilot_store::sqlite::fsck::fsck;
use pilot_store::{CountOpen, Filter, Key, Outcome, Situation, Store, Subject, Write};
use pilot_testing::{Dice, Scratch, asked, fresh_seed, scratch_in_memory};
use serde_json::{Value, json};

use house::{House, Outside};

const SEEDS: u64 = 500;
const STEPS: u64 = 60;
const START: &str = "2026-11-15T09:00:00Z";

/// A request as a client keeps it, to send it again with the same key.
#[derive(Clone)]
struct Sent {
    number: u64,
    actor: Actor,
    what: What,
}

#[derive(Clone)]
enum What {
    Create { id: ItemId, workflow: &'static str, title: String, payload: Value },
    Edit { item: ItemId, title: Option<String>, payload: Option<Value>, if_match: Option<IfMatch> },
    Act { item: ItemId, request: ActionRequest },
    Comment { item: ItemId, text: String },
}

/// What came of it.
struct Week {
    entries: u64,
    crashes: u64,
    /// How often something was executed.
    effects: u64,
}

struct World {
    dice: Dice,
    directory: Scratch,
    machine: Machine,
    clock: LedgerClock,
    store: Arc<dyn Store>,
    workflows: Arc<Workflows>,
    next: u64,
    /// Requests that were not sent yet: they arrive late, and out of order.
    delayed: Vec<Sent>,
    /// What was acknowledged, by the number of the request.
    answers: BTreeMap<u64, (Sent, Entry)>,
    crashes: u64,
    /// None while the machine is down.
    house: Option<House>,
    outside: Outside,
}

/// The clock anyone may set, and the time that passes all the same.
struct Machine {
    clock: Arc<AtomicI64>,
    elapsed: Arc<AtomicU64>,
}

/// As a start does it.
fn open(directory: &Scratch, machine: &Machine) -> (Arc<dyn Store>, LedgerClock) {
    let wall = Clock::Manual(Arc::clone(&machine.clock));
    let clock = LedgerClock::new(wall, Elapsed::Manual(Arc::clone(&machine.elapsed)));
    let of_store = clock.clone();
    let store = Sqlite::open(&directory.file("pilot.db"), Arc::new(move || of_store.now())).unwrap();
    clock.begin_at(store.last_at());
    (Arc::new(store), clock)
}

const PEOPLE: [(&str, Role); 12] = [
    ("ana", Role::Initiator),
    ("ada", Role::Initiator),
    ("ben", Role::Approver),
    ("bea", Role::Approver),
    ("bob", Role::Approver),
    ("sam", Role::SecurityAdmin),
    ("sue", Role::SecurityAdmin),
    ("eve", Role::Executor),
    ("eli", Role::Executor),
    // Their role was changed in the middle of the week.
    ("ana", Role::Approver),
    ("ben", Role::Executor),
    ("eve", Role::SecurityAdmin),
];

impl World {
    async fn new(seed: u64) -> World {
        let directory = scratch_in_memory();
        let start: Time = START.parse().unwrap();
        let machine = Machine { clock: Arc::new(AtomicI64::new(start.unix_micros())), elapsed: Arc::default() };
        let (store, clock) = open(&directory, &machine);
        let workflows = Arc::new(Workflows::load(None, &*store).await.unwrap());
        let (delayed, answers) = (Vec::new(), BTreeMap::new());
        let (mut dice, outside) = (Dice::new(seed), Outside::new(start));
        let house = Some(House::open(&store, &workflows, &outside, &mut dice).await);
        World {
            dice,
            directory,
            machine,
            clock,
            store,
            workflows,
            next: 0,
            delayed,
            answers,
            crashes: 0,
            house,
            outside,
        }
    }

    async fn step(&mut self) {
        match self.dice.below(100) {
            0..=51 => {
                let sent = self.ask().await;
                if self.dice.chance(15) { self.delayed.push(sent) } else { self.send(sent).await }
            }
            52..=55 => self.house.as_ref().unwrap().sign(&self.store, &mut self.outside).await,
            56..=60 => {
                let house = self.house.as_ref().unwrap();
                house.credential(&self.store, &mut self.outside, &mut self.dice).await;
            }
            61..=69 => self.send_late().await,
            70..=79 => self.send_again().await,
            80..=87 => self.move_clock(),
            88..=93 => drop(expire_due(&*self.store, &self.workflows, self.clock.now()).await),
            94..=96 => self.all_at_once().await,
            _ => self.crash().await,
        }
    }

    /// Mostly something that could succeed, often something that must not.
    async fn ask(&mut self) -> Sent {
        self.next += 1;
        let number = self.next;
        let (name, role) = *self.dice.pick(&PEOPLE);
        let actor = Actor::new(name.parse().unwrap(), role);
        let items = self.store.items(Filter::default(), 8).await.unwrap();
        if items.is_empty() || self.dice.chance(12) {
            return self.creation(number, actor);
        }
        let item = self.dice.pick(&items).item.clone();
        let actor = self.someone_able(&item, actor);
        let what = match self.dice.below(100) {
            0..=7 => What::Comment { item: item.id, text: format!("remark {number}") },
            8..=14 => self.edit(&item, number),
            _ => self.action(&item, &actor),
        };
        Sent { number, actor, what }
    }

    /// Often someone whose turn it is, so that the team gets somewhere.
    fn someone_able(&mut self, item: &Item, otherwise: Actor) -> Actor {
        let definition = self.workflows.of(&item.workflow).unwrap();
        let turn = item.waits_for(definition);
        let able: Vec<_> = PEOPLE[..9].iter().filter(|(_, role)| turn.contains(role)).collect();
        if able.is_empty() || self.dice.chance(25) {
            return otherwise;
        }
        let (name, role) = **self.dice.pick(&able);
        Actor::new(name.parse().unwrap(), role)
    }

    fn creation(&mut self, number: u64, actor: Actor) -> Sent {
        let actor = if self.dice.chance(90) {
            Actor::new(self.dice.pick(&["ana", "ada"]).parse().unwrap(), Role::Initiator)
        } else {
            actor
        };
        let risk = *self.dice.pick(&["low", "medium", "high"]);
        let mut payload = json!({"purpose": "p", "operation": {"run": number}, "risk": risk, "rollback_plan": "r"});
        let workflow = if self.dice.chance(20) { "emergency-operation" } else { "controlled-operation" };
        payload["incident"] = json!("INC-1");
        let millis = u64::try_from(self.clock.now().unix_micros() / 1000).unwrap();
        let id = format!("{:08x}-{:04x}-7000-8000-{number:012x}", millis >> 16, millis & 0xffff);
        Sent {
            number,
            actor,
            what: What::Create { id: id.parse().unwrap(), workflow, title: format!("item {number}"), payload },
        }
    }

    fn edit(&mut self, item: &Item, number: u64) -> What {
        let risk = *self.dice.pick(&["low", "high"]);
        let payload = self.dice.chance(70).then(|| json!({"risk": risk, "note": {"n": number}, "purpose": "other"}));
        let title = (payload.is_none() || self.dice.chance(30)).then(|| format!("changed {number}"));
        let if_match = self.dice.chance(30).then_some(IfMatch::one(item.version));
        What::Edit { item: item.id.clone(), title, payload, if_match }
    }

    fn action(&mut self, item: &Item, actor: &Actor) -> What {
        let definition = self.workflows.of(&item.workflow).unwrap();
        let possible = actions_for(definition, item, actor, self.clock.now());
        let all: Vec<_> = definition.actions().iter().map(|action| action.name.clone()).collect();
        let forward =
            |name: &&Name| !matches!(&***name, "withdraw" | "hold" | "return" | "reject" | "refuse" | "revoke");
        let onward: Vec<_> = possible.iter().filter(forward).cloned().collect();
        let from = match self.dice.below(100) {
            0..=14 => &all,
            15..=34 if !possible.is_empty() => &possible,
            _ if !onward.is_empty() => &onward,
            _ => &all,
        };
        let action = self.dice.pick(from).to_string();
        let hours = 1 + self.dice.below(4);
        let not_after = self.clock.now().plus(std::time::Duration::from_hours(hours));
        let inputs = match action.as_str() {
            "clear" => Some(json!({ "not_after": not_after })),
            "reconcile" => Some(json!({"outcome": self.dice.pick(&["succeeded", "failed"])})),
            "succeed" => Some(json!({"result": "done"})),
            _ => None,
        };
        let request = ActionRequest {
            action,
            content_digest: Some(item.content_digest.to_string()),
            comment: self.dice.chance(80).then(|| "because".to_owned()),
            inputs,
            if_match: self.dice.chance(20).then_some(IfMatch::one(item.version)),
        };
        What::Act { item: item.id.clone(), request }
    }

    fn write(&self, sent: &Sent) -> Write {
        let Sent { number, actor, what } = sent.clone();
        let (workflows, nonce) = (Arc::clone(&self.workflows), format!("{number:032x}"));
        let mut scope = [0; 32];
        scope[..8].copy_from_slice(&number.to_be_bytes());
        let key = Some(Key { scope, body: scope });
        match what {
            What::Create { id, workflow, title, payload } => {
                let definition = Arc::clone(workflows.named(workflow).unwrap());
                let content = Document::content(&title, &payload, &nonce);
                let count_open = definition.rules().one_open_per_creator.then(|| CountOpen {
                    creator: actor.actor_id.clone(),
                    workflow: definition.name().to_string(),
                    max: None,
                });
                let judged = Content::judge(&definition, &title, &payload, content.digest.clone());
                let new = NewItem { id, content: judged };
                let decide = moves::create(definition, actor, new, content);
                Write::new(Subject::NewItem { count_open }, key, decide)
            }
            What::Edit { item, title, payload, if_match } => {
                let edit = Edit { title, payload, if_match, nonce };
                let decide = move |situation: &Situation<'_>| {
                    let (item, definition) = moves::subject(&workflows, situation)?;
                    moves::edit(Arc::clone(&workflows), actor.clone(), edit.prepare(&definition, item))(situation)
                };
                Write::new(Subject::Item(item), key, decide)
            }
            What::Act { item, request } => {
                let comment = request.comment.as_ref().map(|text| Document::comment(text, &nonce));
                let inputs = request.inputs.as_ref().map(|inputs| Document::inputs(inputs, &nonce));
                let decide = moves::act(workflows, actor, request, comment, inputs, EffectGate::open());
                Write::new(Subject::Item(item), key, decide)
            }
            What::Comment { item, text } => {
                let document = Document::comment(&text, &nonce);
                let decide = moves::comment(workflows, actor, document, None);
                Write::new(Subject::Item(item), key, decide)
            }
        }
    }

    async fn send(&mut self, sent: Sent) {
        let outcome = self.store.settle(self.write(&sent)).await.unwrap();
        self.hear(sent, outcome).await;
    }

    async fn hear(&mut self, sent: Sent, outcome: Outcome) {
        let earlier = self.answers.get(&sent.number).map(|(_, entry)| entry.clone());
        match outcome {
            Outcome::Recorded { entry, .. } => {
                assert_eq!(earlier, None, "request {} was recorded twice", sent.number);
                assert_eq!(entry.at, self.clock.now(), "what readers were told is when it was decided");
                self.answers.insert(sent.number, (sent, entry));
            }
            Outcome::Repeated(remembered) => {
                let Some(Repeated::Entry(entry)) = recall(&*self.store, remembered).await.unwrap() else {
                    panic!("request {}: what it recorded is not remembered", sent.number);
                };
                assert!(earlier.is_none_or(|earlier| earlier == entry), "request {}: another answer", sent.number);
                self.answers.insert(sent.number, (sent, entry));
            }
            Outcome::Nothing | Outcome::Noted => panic!("no write here is for nothing"),
            Outcome::Refused(_) | Outcome::NoSuchItem => {
                assert_eq!(earlier, None, "request {} was acknowledged, and is refused now", sent.number);
                if let Outcome::Refused(refusal) = outcome
                    && refusal.is_about_access()
                {
                    let house = self.house.as_mut().unwrap();
                    house.refuse(&sent.actor, refusal.code().as_str(), self.clock.now());
                }
            }
            Outcome::KeyReused => panic!("request {}: the same body is not the same", sent.number),
        }
    }

    async fn send_late(&mut self) {
        if !self.delayed.is_empty() {
            let place = self.dice.below(self.delayed.len());
            let sent = self.delayed.swap_remove(place);
            self.send(sent).await;
        }
    }

    /// An answer was lost, so the client asks again. A key is remembered for a day of the ledger's time.
    async fn send_again(&mut self) {
        let now = self.clock.now();
        let recent = |(sent, at): (&Sent, Time)| (now.since(at).as_secs() < 86_000).then(|| sent.clone());
        let mut known = Vec::new();
        for (sent, entry) in self.answers.values() {
            known.extend(recent((sent, entry.at)));
        }
        if !known.is_empty() {
            let sent = self.dice.pick(&known).clone();
            self.send(sent).await;
        }
    }

    /// Time passes, and often somebody sets the clock besides.
    fn move_clock(&mut self) {
        let passes = *self.dice.pick(&[0, 1, 60, 600, 600, 1_000, 3_600, 7_200, 90_000]);
        // Rarely by ten years, or back to 1970.
        let steps = match self.dice.below(60) {
            0 => 315_360_000,
            1 => -self.machine.clock.load(Ordering::SeqCst) / 1_000_000,
            _ => *self.dice.pick(&[-90_000, -3_600, -1, 0, 0, 0, 0, 1, 600, 3_600, 300_000]),
        };
        let before = self.clock.now();
        self.machine.elapsed.fetch_add(passes * 1_000_000, Ordering::SeqCst);
        self.outside.pass(passes);
        let seconds = i64::try_from(passes).unwrap() + steps;
        self.machine.clock.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
        let seen = self.clock.now().since(before).as_secs();
        assert!(seen >= passes, "{passes} s have passed, and {seen} of them are seen");
    }

    /// Several requests at the same moment, some of them twice.
    async fn all_at_once(&mut self) {
        let mut sent = Vec::new();
        for _ in 0..4 {
            sent.push(self.ask().await);
        }
        sent.push(sent[0].clone());
        let outcomes = {
            let pending: Vec<_> =
                sent.iter().map(|sent| tokio::spawn(settle(Arc::clone(&self.store), self.write(sent)))).collect();
            let mut outcomes = Vec::new();
            for pending in pending {
                outcomes.push(pending.await.unwrap());
            }
            outcomes
        };
        let twice = [&outcomes[0], &outcomes[4]];
        let recorded = twice.iter().filter(|outcome| matches!(outcome, Outcome::Recorded { .. })).count();
        assert!(recorded <= 1, "the same request was recorded twice");
        let first = twice.into_iter().position(|outcome| matches!(outcome, Outcome::Recorded { .. }));
        for (place, (sent, outcome)) in sent.into_iter().zip(outcomes).enumerate() {
            // The second of the pair may have been the first to arrive.
            if place == 0 && first == Some(1) || place == 4 && first == Some(0) {
                assert!(matches!(outcome, Outcome::Repeated(_) | Outcome::Refused(_)), "{outcome:?}");
                continue;
            }
            self.hear(sent, outcome).await;
        }
    }

    /// The machine stops: what was on disk at that moment is all there is. Requests under way may be in it or not.
    async fn crash(&mut self) {
        self.crashes += 1;
        let (kind, after) = (self.dice.below(3), scratch_in_memory());
        if kind == 0 {
            // An orderly end, and a start on the same files.
            self.stop().await;
            return self.start().await;
        }
        let mut under_way = Vec::new();
        if kind == 2 {
            for _ in 0..3 {
                let sent = self.ask().await;
                let pending = tokio::spawn(settle(Arc::clone(&self.store), self.write(&sent)));
                under_way.push((sent, pending));
            }
            tokio::task::yield_now().await;
        }
        // The database is not written meanwhile: the log is moved into it only at the end. The log is: no crash leaves
        // half of a commit and one that follows it, so what is appended during the copy is left out.
        std::fs::copy(self.directory.file("pilot.db"), after.file("pilot.db")).unwrap();
        let log = self.directory.file("pilot.db-wal");
        let written = usize::try_from(std::fs::metadata(&log).unwrap().len()).unwrap();
        std::fs::write(after.file("pilot.db-wal"), &std::fs::read(&log).unwrap()[..written]).unwrap();
        for (_, pending) in &mut under_way {
            let _ = pending.await.unwrap();
        }
        (self.house, self.store) = (None, Arc::new(Stopped));
        self.directory = after;
        self.start().await;
        for (sent, _) in under_way {
            self.send(sent).await;
        }
    }

    /// An orderly end.
    async fn stop(&mut self) {
        let mut house = self.house.take().unwrap();
        house.write_down(&self.store, &self.clock, &mut self.outside).await;
        drop(house);
        self.store = Arc::new(Stopped);
    }

    async fn start(&mut self) {
        (self.store, self.clock) = open(&self.directory, &self.machine);
        self.survive().await;
        self.house = Some(House::open(&self.store, &self.workflows, &self.outside, &mut self.dice).await);
    }

    /// Everything acknowledged before is there.
    async fn survive(&self) {
        let entries = judge::entries(&*self.store).await;
        for (number, (_, acknowledged)) in &self.answers {
            let found = entries.iter().find(|entry| entry.index == acknowledged.index);
            assert_eq!(found, Some(acknowledged), "request {number} was acknowledged, and is lost");
        }
    }

    async fn end(mut self) -> Week {
        while !self.delayed.is_empty() {
            self.send_late().await;
        }
        self.survive().await;
        let mut house = self.house.take().unwrap();
        house.write_down(&self.store, &self.clock, &mut self.outside).await;
        house.sign(&self.store, &mut self.outside).await;
        drop(house);
        let effects = judge::invariants(&*self.store).await;
        house::invariants(&judge::entries(&*self.store).await, &self.outside);
        let (size, root) = (self.store.head().borrow().size(), self.store.head().borrow().root().to_base64());
        self.store = Arc::new(Stopped);
        let report = fsck(&self.directory.file("pilot.db"), &mut |_| ()).unwrap();
        assert!(report.faults.is_empty(), "{:#?}", report.faults);
        assert_eq!((report.entries, report.root), (size, Some(root)), "the replayed root is the stored root");
        assert_eq!(report.items_not_replayed, 0);
        Week { entries: size, crashes: self.crashes, effects }
    }
}

async fn settle(store: Arc<dyn Store>, write: Write) -> Outcome {
    store.settle(write).await.unwrap()
}

/// Stands in while there is no store.
struct Stopped;

impl Stopped {
    fn answer<T>() -> pilot_store::Pending<'static, T> {
        Box::pin(async { Err(pilot_store::StoreError::Unavailable("stopped".into())) })
    }
}

impl Store for Stopped {
    fn settle(&self, _: Write) -> pilot_store::Pending<'_, Outcome> {
        Stopped::answer()
    }
    fn item(&self, _: ItemId) -> pilot_store::Pending<'_, Option<Arc<Item>>> {
        Stopped::answer()
    }
    fn items_page(&self, _: Filter, _: usize) -> pilot_store::Pending<'_, pilot_store::ItemPage> {
        Stopped::answer()
    }
    fn shown_item(&self, _: ItemId, _: String) -> pilot_store::Pending<'_, Option<pilot_store::ShownItem>> {
        Stopped::answer()
    }
    fn newest_entries(
        &self,
        _: ItemId,
        _: Option<u64>,
        _: usize,
    ) -> pilot_store::Pending<'_, Vec<pilot_store::StoredEntry>> {
        Stopped::answer()
    }
    fn ranks_page(&self, _: Filter, _: pilot_store::Sort) -> pilot_store::Pending<'_, pilot_store::RankPage> {
        Stopped::answer()
    }
    fn items_of(&self, _: Vec<ItemId>) -> pilot_store::Pending<'_, Vec<pilot_store::Listed>> {
        Stopped::answer()
    }
    fn items_count(&self, _: Filter) -> pilot_store::Pending<'_, Option<u64>> {
        Stopped::answer()
    }
    fn history_page(
        &self,
        _: ItemId,
        _: Option<u64>,
        _: usize,
    ) -> pilot_store::Pending<'_, Vec<pilot_store::StoredEntry>> {
        Stopped::answer()
    }
    fn tile(&self, _: u8, _: u64, _: u64) -> pilot_store::Pending<'_, Vec<pilot_evidence::merkle::Hash>> {
        Stopped::answer()
    }
    fn inclusions(&self, _: Vec<u64>, _: u64) -> pilot_store::Pending<'_, Vec<Vec<pilot_evidence::merkle::Hash>>> {
        Stopped::answer()
    }
    fn pulse(&self) -> pilot_store::Pulse {
        pilot_store::Pulse::default()
    }
    fn distrust(&self, _: &str) {}
    fn stop(&self) -> pilot_store::Result<()> {
        Ok(())
    }
    fn history(&self, _: ItemId) -> pilot_store::Pending<'_, Vec<pilot_store::StoredEntry>> {
        Stopped::answer()
    }
    fn entries(&self, _: u64, _: usize) -> pilot_store::Pending<'_, Vec<pilot_store::StoredEntry>> {
        Stopped::answer()
    }
    fn whole_entries(&self, _: u64, _: usize) -> pilot_store::Pending<'_, Vec<pilot_store::StoredEntry>> {
        Stopped::answer()
    }
    fn whole_entries_at(&self, _: Vec<u64>) -> pilot_store::Pending<'_, Vec<pilot_store::StoredEntry>> {
        Stopped::answer()
    }
    fn places(&self, _: ItemId) -> pilot_store::Pending<'_, Vec<u64>> {
        Stopped::answer()
    }
    fn earlier_places(&self, _: u64, _: std::ops::Range<u64>) -> pilot_store::Pending<'_, Vec<u64>> {
        Stopped::answer()
    }
    fn leaves(&self, _: u64, _: u64) -> pilot_store::Pending<'_, Vec<pilot_evidence::merkle::Hash>> {
        Stopped::answer()
    }
    fn due(&self, _: Time, _: usize) -> pilot_store::Pending<'_, Vec<ItemId>> {
        Stopped::answer()
    }
    fn due_within(&self, _: Time, _: Time, _: usize) -> pilot_store::Pending<'_, Vec<ItemId>> {
        Stopped::answer()
    }
    fn row(&self, _: u8, _: u64, _: u64) -> pilot_store::Pending<'_, Vec<pilot_evidence::merkle::Hash>> {
        Stopped::answer()
    }
    fn keep_definitions(
        &self,
        _: Vec<pilot_store::StoredDefinition>,
    ) -> pilot_store::Pending<'_, Vec<pilot_store::StoredDefinition>> {
        Stopped::answer()
    }
    fn facts(&self, _: &'static str) -> pilot_store::Pending<'_, Vec<(String, Vec<u8>)>> {
        Stopped::answer()
    }

    fn facts_in(
        &self,
        _: std::ops::Range<String>,
        _: pilot_store::RangeEnd,
        _: usize,
    ) -> pilot_store::Pending<'_, Vec<(String, Vec<u8>)>> {
        Stopped::answer()
    }

    fn fact(&self, _: &'static str) -> pilot_store::Pending<'_, Option<Vec<u8>>> {
        Stopped::answer()
    }
    fn head(&self) -> tokio::sync::watch::Receiver<Arc<pilot_evidence::merkle::Edge>> {
        tokio::sync::watch::channel(Arc::default()).1
    }
    fn check(&self) -> pilot_store::Result<()> {
        Err(pilot_store::StoreError::Unavailable("stopped".into()))
    }
}

async fn simulate(seed: u64) -> Week {
    let mut world = World::new(seed).await;
    for _ in 0..STEPS {
        world.step().await;
    }
    world.end().await
}

/// Says which seed it was when something goes wrong.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("failed with PILOT_SEED={}", self.0);
        }
    }
}

#[test]
fn every_invariant_survives_crashes_duplicates_delays_and_a_jumping_clock() {
    let (first, count) = match asked("PILOT_SEED") {
        Some(seed) => (seed, 1),
        None => (fresh_seed(), SEEDS * asked("PILOT_LONG").unwrap_or(1)),
    };
    println!("seeds {first} to {}", first + count - 1);
    let [next, entries, crashes, effects] = [const { AtomicU64::new(0) }; 4];
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= count {
                return;
            }
            let seed = Seed(first + number);
            let week = runtime.block_on(simulate(seed.0));
            entries.fetch_add(week.entries, Ordering::SeqCst);
            crashes.fetch_add(week.crashes, Ordering::SeqCst);
            effects.fetch_add(week.effects, Ordering::SeqCst);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(run);
        }
    });
    println!("{count} weeks, {entries:?} entries, {crashes:?} crashes, {effects:?} executions");
    assert!(count == 1 || effects.into_inner() > count / 4, "the team must get something done");
}
