//! What any engine must do: one suite, run by the tests of each engine. It panics at the first rule that does not hold.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "only tests call this, and they stop at the first surprise"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use pilot_core::actor::Actor;
use pilot_core::decide::{ActionRequest, Caller, Content, NewItem, Request, decide, decide_creation, due_at};
use pilot_core::document::{ContentDigest, Document, DocumentKind};
use pilot_core::entry::details::{Details, Started};
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::IDEMPOTENCY_KEY_KEPT;
use pilot_core::refusal::Refusal;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_core::workflow::builtin::{CONTROLLED_OPERATION, builtin};
use pilot_evidence::merkle::{Edge, Hash, root_of};
use pilot_evidence::replay::follow;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::look::Look;
use crate::{
    Fact, Key, NoRecord, Outcome, RangeEnd, Record, Remembered, Situation, Standing, Store, StoredDefinition,
    StoredEntry, Subject, Write,
};

const NONCE: &str = "00000000000000000000000000000001";

mod lists;

pub use lists::{
    a_sorted_list_has_every_item_once_and_a_count_is_exact, items_are_found_by_what_is_known_of_them,
    lists_go_by_order_of_creation_whatever_the_ids_are, what_is_due_comes_earliest_first,
};

/// A clock that the suite moves.
#[derive(Clone)]
pub struct TestClock(Arc<AtomicI64>);

impl Default for TestClock {
    fn default() -> Self {
        TestClock(Arc::new(AtomicI64::new(1_800_000_000_000_000)))
    }
}

impl TestClock {
    pub fn now(&self) -> Time {
        Time::from_unix_micros(self.0.load(Ordering::SeqCst))
    }

    pub fn step(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }
}

/// An engine under test. Each case begins with its own store, and may reopen it.
pub trait Engine {
    /// Opens the store; a second call, after the first store was dropped, opens the same one.
    fn open(&self) -> Arc<dyn Store>;
    fn clock(&self) -> &TestClock;
}

pub fn actor(name: &str, role: Role) -> Actor {
    Actor::new(name.parse().unwrap(), role)
}

/// A small cast that moves items through the built-in workflow.
pub struct Cast {
    definition: Arc<Definition>,
    ids: AtomicU64,
}

impl Default for Cast {
    fn default() -> Self {
        let [definition, _] = builtin();
        Cast { definition, ids: AtomicU64::new(1) }
    }
}

impl Cast {
    pub fn id(&self) -> ItemId {
        let number = self.ids.fetch_add(1, Ordering::SeqCst);
        format!("01890a5d-ac96-774b-bcce-{number:012x}").parse().unwrap()
    }

    pub fn payload(risk: &str) -> Value {
        json!({"purpose": "p", "operation": "o", "risk": risk, "rollback_plan": "r"})
    }

    pub fn record(&self, entry: Entry, documents: Vec<Document>, item: Item) -> Record {
        Record { documents, standing: Some(self.standing(item)), ..Record::of(entry) }
    }

    fn standing(&self, item: Item) -> Standing {
        Standing {
            is_open: !item.is_terminal(&self.definition),
            waits_for: item.waits_for(&self.definition),
            due_at: due_at(&self.definition, &item).map(|deadline| deadline.at),
            item,
        }
    }

    pub fn creation(self: &Arc<Self>, id: &ItemId, title: &str, by: &str, risk: &str) -> Write {
        let (cast, actor) = (Arc::clone(self), actor(by, Role::Initiator));
        let content = Document::content(title, &Cast::payload(risk), &id.as_str().replace('-', ""));
        let judged = Content::judge(&self.definition, title, &Cast::payload(risk), content.digest.clone());
        let new = NewItem { id: id.clone(), content: judged };
        let decide = move |situation: &Situation<'_>| {
            let (transition, item) =
                decide_creation(&cast.definition, &new, &actor, situation.now, situation.open_items)?;
            let entry = Entry::of_transition(EntryType::ItemCreated, situation.index, &transition, &item);
            Ok(cast.record(entry, vec![content.clone()], item))
        };
        Write::new(Subject::NewItem { count_open: None }, None, decide)
    }

    pub fn action(self: &Arc<Self>, id: &ItemId, who: &Actor, action: &str, comment: Option<&str>) -> Write {
        let (cast, who, action) = (Arc::clone(self), who.clone(), action.to_owned());
        let comment = comment.map(|text| (text.to_owned(), Document::comment(text, NONCE)));
        let decide = move |situation: &Situation<'_>| {
            let item = situation.item.unwrap();
            let request = ActionRequest {
                action: action.clone(),
                content_digest: Some(item.content_digest.to_string()),
                comment: comment.as_ref().map(|(text, _)| text.clone()),
                ..ActionRequest::default()
            };
            let caller = Caller::Actor(who.clone());
            let transition = decide(&cast.definition, item, &Request::Act(request), &caller, situation.now)?;
            let item = item.after(&transition);
            let entry = Entry {
                comment: comment.as_ref().map(|(_, document)| document.digest.clone()),
                ..Entry::of_transition(EntryType::ItemTransition, situation.index, &transition, &item)
            };
            let documents = comment.iter().map(|(_, document)| document.clone()).collect();
            Ok(cast.record(entry, documents, item))
        };
        Write::new(Subject::Item(id.clone()), None, decide)
    }

    async fn create(self: &Arc<Self>, store: &dyn Store, title: &str, by: &str, risk: &str) -> ItemId {
        let id = self.id();
        recorded(store, self.creation(&id, title, by, risk)).await;
        id
    }

    async fn act(self: &Arc<Self>, store: &dyn Store, id: &ItemId, who: (&str, Role), action: &str) -> Outcome {
        store.settle(self.action(id, &actor(who.0, who.1), action, None)).await.unwrap()
    }
}

/// An entry about the service itself.
pub fn remark(number: u64) -> Write {
    let decide = move |situation: &Situation<'_>| {
        let details = Details::ServiceStarted(Started { version: number.to_string(), ..Started::default() });
        let entry = Entry::of_service(situation.index, situation.now, None, &details);
        Ok(Record::of(entry))
    };
    Write::new(Subject::Ledger, None, decide)
}

async fn recorded(store: &dyn Store, write: Write) -> u64 {
    match store.settle(write).await.unwrap() {
        Outcome::Recorded { entry, .. } => entry.index,
        other => panic!("{other:?}"),
    }
}

/// In pages: no engine takes long for one.
async fn every_entry(store: &dyn Store) -> Vec<StoredEntry> {
    let mut entries = Vec::new();
    loop {
        let page = store.entries(entries.len() as u64, 5_000).await.unwrap();
        if page.is_empty() {
            return entries;
        }
        entries.extend(page);
    }
}

async fn all_entries(store: &dyn Store) -> Vec<Entry> {
    let stored = every_entry(store).await;
    stored.iter().map(|stored| serde_json::from_slice(&stored.bytes).unwrap()).collect()
}

const ANA: (&str, Role) = ("ana", Role::Initiator);

pub async fn indices_have_no_gaps_and_refusals_write_nothing(engine: &dyn Engine) {
    let (store, cast) = (engine.open(), Arc::new(Cast::default()));
    let mut head = store.head();
    let id = cast.create(&*store, "title", "ana", "low").await;
    assert!(head.has_changed().unwrap(), "the head is told of every commit");
    assert_eq!(head.borrow_and_update().size(), 1);
    let before = store.item(id.clone()).await.unwrap().unwrap();
    let refused = cast.act(&*store, &id, ("ben", Role::Approver), "approve").await;
    assert!(matches!(refused, Outcome::Refused(Refusal::WrongState { .. })), "{refused:?}");
    assert!(!head.has_changed().unwrap(), "a refusal is no commit");
    assert_eq!(store.item(id.clone()).await.unwrap().unwrap(), before);
    assert!(matches!(cast.act(&*store, &cast.id(), ANA, "submit").await, Outcome::NoSuchItem));
    assert!(matches!(cast.act(&*store, &id, ANA, "submit").await, Outcome::Recorded { entry, .. } if entry.index == 1));
    assert_eq!(store.entries(1, 10).await.unwrap().len(), 1);
    assert_eq!(store.entries(2, 10).await.unwrap().len(), 0);
    let indices: Vec<_> = all_entries(&*store).await.iter().map(|entry| entry.index).collect();
    assert_eq!(indices, [0, 1]);
    assert_eq!(store.item(id).await.unwrap().unwrap().version, 2);
    assert!(store.check().is_ok());
}

pub async fn time_never_runs_backwards(engine: &dyn Engine) {
    let (clock, mut store) = (engine.clock(), engine.open());
    for (number, step) in [0, -3_600, 0, 315_360_000, -400_000_000, 1, -1, 7].into_iter().enumerate() {
        clock.step(step);
        recorded(&*store, remark(number as u64)).await;
        if number == 3 {
            drop(store);
            store = engine.open();
        }
    }
    let times: Vec<_> = all_entries(&*store).await.iter().map(|entry| entry.at).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(times[3] > times[2], "a step forward is believed: {times:?}");
}

pub async fn of_many_who_write_at_once_exactly_the_allowed_number_wins(engine: &dyn Engine) {
    let (store, cast) = (engine.open(), Arc::new(Cast::default()));
    for (risk, needed) in [("low", 1), ("high", 2)] {
        let id = cast.create(&*store, "duel", "ana", risk).await;
        cast.act(&*store, &id, ANA, "submit").await;
        let mut approvers = JoinSet::new();
        for number in 0..64 {
            let (store, who) = (Arc::clone(&store), actor(&format!("approver{number}"), Role::Approver));
            let write = cast.action(&id, &who, "approve", None);
            approvers.spawn(async move { store.settle(write).await.unwrap() });
        }
        let outcomes = approvers.join_all().await;
        let won = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Recorded { .. })).count();
        let refused = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Refused(_))).count();
        assert_eq!((won, refused), (needed, 64 - needed), "{risk}");
        let item = store.item(id.clone()).await.unwrap().unwrap();
        assert_eq!((&*item.state, item.version), ("approved", 2 + needed as u64));
        let versions: Vec<_> = history(&*store, &id).await.iter().filter_map(|entry| entry.version).collect();
        assert_eq!(versions, (1..=item.version).collect::<Vec<_>>());
    }
}

async fn history(store: &dyn Store, id: &ItemId) -> Vec<Entry> {
    let stored = store.history(id.clone()).await.unwrap();
    stored.iter().map(|stored| serde_json::from_slice(&stored.bytes).unwrap()).collect()
}

pub async fn a_key_gives_the_same_answer_again_until_it_is_forgotten(engine: &dyn Engine) {
    let (clock, cast) = (engine.clock(), Arc::new(Cast::default()));
    let mut store = engine.open();
    let keyed = |scope: u8, body: u8| Some(Key { scope: [scope; 32], body: [body; 32] });
    let write = |key| Write { key, ..cast.creation(&cast.id(), "keyed", "ana", "low") };
    let Outcome::Recorded { entry, .. } = store.settle(write(keyed(1, 1))).await.unwrap() else { panic!() };
    let repeated = Outcome::Repeated(Remembered::Entry(entry.index));
    for _ in 0..2 {
        assert_eq!(store.settle(write(keyed(1, 1))).await.unwrap(), repeated);
        assert_eq!(store.settle(write(keyed(1, 2))).await.unwrap(), Outcome::KeyReused);
        drop(store);
        store = engine.open();
    }
    assert!(matches!(store.settle(write(keyed(2, 1))).await.unwrap(), Outcome::Recorded { .. }), "another scope");
    // A refusal is not remembered: the next attempt is decided again.
    let id = cast.create(&*store, "item", "ana", "low").await;
    let approve = || Write { key: keyed(3, 1), ..cast.action(&id, &actor("ben", Role::Approver), "approve", None) };
    assert!(matches!(store.settle(approve()).await.unwrap(), Outcome::Refused(_)));
    cast.act(&*store, &id, ANA, "submit").await;
    assert!(matches!(store.settle(approve()).await.unwrap(), Outcome::Recorded { .. }));
    let kept = i64::try_from(IDEMPOTENCY_KEY_KEPT.as_secs()).unwrap();
    clock.step(kept - 60);
    assert_eq!(store.settle(write(keyed(1, 1))).await.unwrap(), repeated);
    clock.step(61);
    assert!(
        matches!(store.settle(write(keyed(1, 2))).await.unwrap(), Outcome::Recorded { .. }),
        "after a day it is free"
    );
    assert!(matches!(store.settle(write(keyed(1, 2))).await.unwrap(), Outcome::Repeated(_)));
}

/// The same request, sent five times at once: one entry, one answer.
pub async fn duplicates_that_arrive_together_are_recorded_once(engine: &dyn Engine) {
    let (store, cast) = (engine.open(), Arc::new(Cast::default()));
    for round in 0..20_u8 {
        let size = store.head().borrow().size();
        let mut senders = JoinSet::new();
        for _ in 0..5 {
            let key = Some(Key { scope: [round; 32], body: [7; 32] });
            let write = Write { key, ..cast.creation(&cast.id(), "same", "ana", "low") };
            let store = Arc::clone(&store);
            senders.spawn(async move { store.settle(write).await.unwrap() });
        }
        let entries: BTreeSet<_> = senders.join_all().await.into_iter().map(entry_of).collect();
        assert_eq!((entries.len(), store.head().borrow().size()), (1, size + 1));
    }
}

fn entry_of(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Recorded { entry, .. } => entry.index,
        Outcome::Repeated(Remembered::Entry(index)) => index,
        other => panic!("{other:?}"),
    }
}

pub async fn a_history_is_whole_and_in_order_with_its_documents(engine: &dyn Engine) {
    let (mut store, cast) = (engine.open(), Arc::new(Cast::default()));
    let (one, other) =
        (cast.create(&*store, "one", "ana", "low").await, cast.create(&*store, "two", "ana", "low").await);
    cast.act(&*store, &one, ANA, "submit").await;
    cast.act(&*store, &other, ANA, "submit").await;
    let reject = cast.action(&one, &actor("ben", Role::Approver), "reject", Some("why not"));
    recorded(&*store, reject).await;
    for _ in 0..2 {
        let stored = store.history(one.clone()).await.unwrap();
        assert_eq!(stored.iter().map(|stored| stored.index).collect::<Vec<_>>(), [0, 2, 4]);
        let kinds: Vec<Vec<_>> =
            stored.iter().map(|stored| stored.documents.iter().map(|(kind, _)| *kind).collect()).collect();
        assert_eq!(kinds, [vec![DocumentKind::Content], vec![], vec![DocumentKind::Comment]]);
        assert_eq!(stored[2].documents[0].1, Document::comment("why not", NONCE).bytes);
        assert_eq!(store.history(other.clone()).await.unwrap().len(), 2);
        assert!(store.history(cast.id()).await.unwrap().is_empty());
        let whole = store.whole_entries(1, 3).await.unwrap();
        assert_eq!(whole.iter().map(|stored| stored.index).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(whole.iter().map(|stored| stored.documents.len()).collect::<Vec<_>>(), [1, 0, 0]);
        assert_eq!(store.whole_entries(4, 9).await.unwrap(), stored[2..]);
        assert_eq!(store.whole_entries_at(vec![0, 2, 4]).await.unwrap(), stored);
        assert_eq!(store.places(one.clone()).await.unwrap(), [0, 2, 4]);
        assert_eq!(store.places(cast.id()).await.unwrap(), [0; 0]);
        assert_eq!(store.earlier_places(4, 4..5).await.unwrap(), [0, 2], "entry 3 is about another item");
        assert_eq!(store.earlier_places(2, 2..5).await.unwrap(), [0, 1]);
        assert_eq!(store.earlier_places(2, 4..5).await.unwrap(), [0; 0], "its item was met before, at entry 2");
        assert_eq!(store.earlier_places(0, 0..5).await.unwrap(), [0; 0]);
        drop(store);
        store = engine.open();
    }
    let mut item: Option<Item> = None;
    for stored in store.history(one.clone()).await.unwrap() {
        let entry: Entry = serde_json::from_slice(&stored.bytes).unwrap();
        item = Some(follow(&cast.definition, item.as_ref(), &entry, stored.documents()).unwrap().item);
    }
    assert_eq!(item.as_ref(), store.item(one).await.unwrap().as_deref(), "a replay leads to the stored item");
}

pub async fn entries_about_an_item_are_counted_when_it_matters(engine: &dyn Engine) {
    let (store, cast) = (engine.open(), Arc::new(Cast::default()));
    let (id, other) =
        (cast.create(&*store, "one", "ana", "low").await, cast.create(&*store, "two", "ana", "low").await);
    let count = async |subject: Subject| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let decide = move |situation: &Situation<'_>| {
            sender.send(situation.entries).unwrap();
            Err(NoRecord::Nothing)
        };
        store.settle(Write::new(subject, None, decide)).await.unwrap();
        receiver.recv().unwrap()
    };
    assert_eq!(count(Subject::Item(id.clone())).await, None, "nobody asked");
    assert_eq!(count(Subject::CountedItem(id.clone())).await, Some(1));
    cast.act(&*store, &id, ANA, "submit").await;
    cast.act(&*store, &other, ANA, "submit").await;
    assert_eq!(count(Subject::CountedItem(id.clone())).await, Some(2));
    assert_eq!(count(Subject::CountedItem(other)).await, Some(2));
    drop(store);
    let store = engine.open();
    let reject = cast.action(&id, &actor("ben", Role::Approver), "reject", Some("no"));
    recorded(&*store, reject).await;
    let (sender, receiver) = std::sync::mpsc::channel();
    let decide = move |situation: &Situation<'_>| {
        sender.send(situation.entries).unwrap();
        Err(NoRecord::Nothing)
    };
    store.settle(Write::new(Subject::CountedItem(id), None, decide)).await.unwrap();
    assert_eq!(receiver.recv().unwrap(), Some(3), "counted anew after a start");
}

pub async fn definitions_and_facts_are_kept(engine: &dyn Engine) {
    let mut store = engine.open();
    let definition = |digest: &str, text: &str| StoredDefinition { digest: digest.into(), text: text.into() };
    let one = definition(builtin()[0].digest(), CONTROLLED_OPERATION);
    assert_eq!(store.keep_definitions(vec![one.clone()]).await.unwrap(), std::slice::from_ref(&one));
    assert_eq!(store.fact("name").await.unwrap(), None);
    for value in [b"old".to_vec(), b"new".to_vec()] {
        recorded(&*store, noting(&[("name", Some(&value)), ("other/1", Some(b"1")), ("other/2", Some(b"2"))])).await;
        assert_eq!(store.fact("name").await.unwrap(), Some(value));
    }
    recorded(&*store, noting(&[("other/1", None), ("other/3", Some(b"3")), ("other/4", None)])).await;
    let others = [("other/2".to_owned(), b"2".to_vec()), ("other/3".to_owned(), b"3".to_vec())];
    assert_eq!(store.facts("other/").await.unwrap(), others);
    let found = async |first: &str, end: &str, from, limit| {
        let facts = store.facts_in(first.to_owned()..end.to_owned(), from, limit).await.unwrap();
        facts.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(found("other/", "other0", RangeEnd::Lowest, 1).await, ["other/2"]);
    assert_eq!(found("other/", "other0", RangeEnd::Highest, 9).await, ["other/3", "other/2"]);
    assert_eq!(found("other/2", "other/3", RangeEnd::Highest, 9).await, ["other/2"], "the end is outside");
    assert_eq!(found("other/25", "other/3", RangeEnd::Lowest, 9).await, [""; 0]);
    drop(store);
    store = engine.open();
    let changed = definition(&one.digest, "changed");
    let other = definition("sha256:0", "other");
    let kept = store.keep_definitions(vec![changed, other.clone()]).await.unwrap();
    assert_eq!(kept, [other, one], "known ones are left alone");
    assert_eq!(store.fact("name").await.unwrap(), Some(b"new".to_vec()));
}

/// An entry with changes of facts.
fn noting(facts: &[(&str, Option<&[u8]>)]) -> Write {
    let facts = facts.iter().map(|(name, value)| Fact { name: (*name).into(), value: value.map(<[u8]>::to_vec) });
    let (facts, plain): (Vec<_>, _) = (facts.collect(), remark(0).decide);
    let decide = move |situation: &Situation<'_>| Ok(Record { facts: facts.clone(), ..plain(situation)? });
    Write::new(Subject::Ledger, None, decide)
}

pub async fn a_write_decides_by_the_facts_it_reads_as_they_are_then(engine: &dyn Engine) {
    let store = engine.open();
    // Both are queued before either is decided: the second sees what the first left.
    let once = || {
        let note = noting(&[("once", Some(b"done"))]).decide;
        let decide = move |situation: &Situation<'_>| match situation.facts {
            [None] => note(situation),
            _ => Err(NoRecord::Nothing),
        };
        Write::new(Subject::Ledger, None, decide).reading(["once".to_owned()])
    };
    let (first, second) = (store.settle(once()), store.settle(once()));
    // Two nodes may take them in either order.
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    let is_first = |outcome: &Outcome| matches!(outcome, Outcome::Recorded { entry, .. } if entry.index == 0);
    assert!(is_first(&first) != is_first(&second), "{first:?}, {second:?}");
    assert!(first == Outcome::Nothing || second == Outcome::Nothing, "{first:?}, {second:?}");
    assert_eq!((store.head().borrow().size(), store.fact("once").await.unwrap()), (1, Some(b"done".to_vec())));
}

pub async fn facts_can_change_without_an_entry(engine: &dyn Engine) {
    let mut store = engine.open();
    recorded(&*store, remark(0)).await;
    let add = || {
        let decide = move |situation: &Situation<'_>| {
            let count = situation.facts[0].as_deref().map_or(0, |value| value[0]);
            Err(NoRecord::Note(vec![Fact { name: "count".into(), value: Some(vec![count + 1]) }]))
        };
        Write::new(Subject::Ledger, None, decide).reading(["count".to_owned()])
    };
    let mut head = store.head();
    head.borrow_and_update();
    // In one group with an entry, and in one of their own.
    let pending = [store.settle(add()), store.settle(add())];
    for noted in pending {
        assert_eq!(noted.await.unwrap(), Outcome::Noted);
    }
    assert_eq!(store.fact("count").await.unwrap(), Some(vec![2]));
    assert_eq!(head.borrow_and_update().size(), 1, "there is no new entry");
    let (entry, noted) = (store.settle(remark(1)), store.settle(add()));
    assert!(matches!(entry.await.unwrap(), Outcome::Recorded { .. }));
    assert_eq!(noted.await.unwrap(), Outcome::Noted);
    drop(store);
    store = engine.open();
    assert_eq!((store.fact("count").await.unwrap(), store.head().borrow().size()), (Some(vec![3]), 2));
}

pub async fn an_item_is_shown_with_its_content_a_fact_and_its_newest_entries_first(engine: &dyn Engine) {
    let mut store = engine.open();
    let (cast, ben) = (Arc::new(Cast::default()), actor("ben", Role::Approver));
    let (id, other, missing) = (cast.id(), cast.id(), cast.id());
    recorded(&*store, cast.creation(&id, "one", "ana", "low")).await;
    recorded(&*store, cast.creation(&other, "two", "ana", "low")).await;
    recorded(&*store, cast.action(&id, &actor("ana", Role::Initiator), "submit", None)).await;
    recorded(&*store, cast.action(&id, &ben, "return", Some("why"))).await;
    let look = |id: &ItemId, name: &str| {
        let (id, actor_id) = (id.clone(), name.parse().unwrap());
        let decide = move |situation: &Situation<'_>| {
            let item = situation.item.unwrap();
            let look = Look::new(item.content_digest.clone(), situation.now);
            if situation.facts[0].is_some() {
                return Err(NoRecord::Nothing);
            }
            Err(NoRecord::Note(vec![look.to_fact(&item.id, &actor_id)]))
        };
        let name = Look::name(&id, &name.parse().unwrap());
        Write::new(Subject::Item(id), None, decide).reading([name])
    };
    // Two at once: one of them finds what the other left.
    let (one, two) = (store.settle(look(&id, "ben")), store.settle(look(&id, "ben")));
    let outcomes = [one.await.unwrap(), two.await.unwrap()];
    assert!(outcomes.contains(&Outcome::Noted) && outcomes.contains(&Outcome::Nothing), "{outcomes:?}");
    drop(store);
    store = engine.open();
    let name = |id: &ItemId| Look::name(id, &ben.actor_id);
    let shown = store.shown_item(id.clone(), name(&id)).await.unwrap().unwrap();
    assert_eq!(Some(&shown.item), store.item(id.clone()).await.unwrap().as_ref());
    assert_eq!(ContentDigest::of_bytes(&shown.content.unwrap()), shown.item.content_digest);
    assert_eq!(Look::read(&shown.fact.unwrap()).unwrap().content_digest, shown.item.content_digest);
    assert_eq!(store.shown_item(other.clone(), name(&other)).await.unwrap().unwrap().fact, None);
    assert_eq!(store.shown_item(missing.clone(), name(&missing)).await.unwrap(), None);
    let newest = async |id: &ItemId, before: Option<u64>, limit: usize| {
        let entries = store.newest_entries(id.clone(), before, limit).await.unwrap();
        assert!(entries.iter().all(|entry| entry.documents.is_empty()));
        entries.into_iter().map(|entry| entry.index).collect::<Vec<_>>()
    };
    assert_eq!(newest(&id, None, 10).await, [3, 2, 0]);
    assert_eq!(newest(&id, None, 2).await, [3, 2]);
    assert_eq!(newest(&id, Some(2), 10).await, [0]);
    assert_eq!(newest(&id, Some(0), 10).await, [0; 0]);
    assert_eq!(newest(&other, None, 10).await, [1]);
    assert_eq!(newest(&missing, None, 10).await, [0; 0]);
}

/// Adds entries until the ledger has this many, in groups as large as the engine takes.
async fn grow_to(store: &Arc<dyn Store>, size: u64) {
    let mut next = store.head().borrow().size();
    while next < size {
        let mut writers = JoinSet::new();
        for number in next..size.min(next + 2_000) {
            let store = Arc::clone(store);
            writers.spawn(async move { recorded(&*store, remark(number)).await });
        }
        writers.join_all().await;
        next = store.head().borrow().size();
    }
}

pub async fn the_tree_is_that_of_its_entries_at_every_turn(engine: &dyn Engine) {
    let mut store = engine.open();
    for size in [1, 2, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 65_800] {
        grow_to(&store, size).await;
        let leaves: Vec<_> = every_entry(&*store).await.iter().map(|entry| Hash::of_leaf(&entry.bytes)).collect();
        assert_eq!(leaves.len() as u64, size);
        let root = root_of(&leaves);
        assert_eq!(store.head().borrow().root(), root, "size {size}");
        check_rows(&*store, &leaves).await;
        drop(store);
        store = engine.open();
        let head: Arc<Edge> = Arc::clone(&store.head().borrow());
        assert_eq!((head.size(), head.root()), (size, root), "opened again at size {size}");
    }
}

async fn check_rows(store: &dyn Store, leaves: &[Hash]) {
    let size = leaves.len();
    for (start, count) in [(0, size), (size - 1, 1), (size.saturating_sub(300), size.min(300)), (size / 2, 0)] {
        let row = store.row(0, start as u64, count as u64).await.unwrap();
        assert_eq!(row, leaves[start..start + count], "level 0 from {start}");
    }
    for level in 1..=2_u8 {
        let span = 256_usize.pow(u32::from(level));
        let expected: Vec<_> = leaves.chunks_exact(span).map(root_of).collect();
        let row = store.row(level, 0, expected.len() as u64).await.unwrap();
        assert_eq!(row, expected, "level {level} of {size}");
    }
    assert!(store.row(0, size as u64, 1).await.is_err(), "what is not there is not made up");
}

pub async fn writes_handed_in_before_the_end_are_not_lost(engine: &dyn Engine) {
    for round in 1..=5_u64 {
        let store = engine.open();
        let before = store.head().borrow().size();
        let mut writers = JoinSet::new();
        for number in 0..200 {
            let store = Arc::clone(&store);
            writers.spawn(async move { recorded(&*store, remark(number)).await });
        }
        drop(store);
        writers.join_all().await;
        let store = engine.open();
        assert_eq!(store.head().borrow().size(), before + 200, "round {round}");
    }
}
