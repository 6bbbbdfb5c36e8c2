//! With the search index, a search finds the same as without it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use pilot_core::decide::{Content, NewItem, OpenItems, decide_creation};
use pilot_core::document::Document;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::builtin::builtin;
use pilot_testing::{Dice, asked, fresh_seed};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::conformance::{Cast, actor, remark};
use crate::sqlite::connection::open_reader;
use crate::sqlite::search_index::{Geometry, beside};
use crate::sqlite::{Sqlite, erase};
use crate::{Outcome, Situation, Standing, Store, Subject, Write};

/// Twelve items in a slab.
const SMALL: Geometry = Geometry { block_items: 3, slab_blocks: 4, slot_bits: 9 };

struct Ledger {
    directory: TempDir,
    cast: Arc<Cast>,
    nonces: AtomicU64,
}

impl Ledger {
    fn new() -> Ledger {
        Ledger { directory: tempfile::tempdir().unwrap(), cast: Arc::default(), nonces: AtomicU64::new(0) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("pilot.db")
    }

    fn open(&self) -> Sqlite {
        self.open_with(SMALL)
    }

    fn open_with(&self, geometry: Geometry) -> Sqlite {
        let store = Sqlite::open_with(&self.path(), Arc::new(|| Time::EPOCH), geometry).unwrap();
        store.indexer.index().signal().until_idle();
        store
    }

    fn content(&self, title: &str, payload: &Value) -> Document {
        Document::content(title, payload, &format!("{:032x}", self.nonces.fetch_add(1, Ordering::Relaxed)))
    }

    /// An item with whatever content: the store does not judge it.
    fn creation(&self, id: &ItemId, title: &str, by: &str, payload: &Value) -> Write {
        self.write(Subject::NewItem { count_open: None }, id, title, by, payload)
    }

    fn edit(&self, id: &ItemId, title: &str, payload: &Value) -> Write {
        self.write(Subject::Item(id.clone()), id, title, "ana", payload)
    }

    fn write(&self, subject: Subject, id: &ItemId, title: &str, by: &str, payload: &Value) -> Write {
        let ([rules, _], document) = (builtin(), self.content(title, payload));
        let content = Content::judge(&rules, title, &Cast::payload("low"), document.digest.clone());
        let (new, by) = (NewItem { id: id.clone(), content }, actor(by, Role::Initiator));
        let decide = move |situation: &Situation<'_>| {
            let (transition, made) = decide_creation(&rules, &new, &by, situation.now, OpenItems::default())?;
            let mut item = situation.item.unwrap_or(&made).clone();
            (item.title, item.content_digest) = (made.title.clone(), made.content_digest.clone());
            item.version += u64::from(situation.item.is_some());
            let entry = Entry::of_transition(EntryType::ItemCreated, situation.index, &transition, &item);
            let is_open = !item.is_terminal(&rules);
            let standing = Standing { is_open, waits_for: item.waits_for(&rules), due_at: None, item };
            let documents = vec![document.clone()];
            Ok(crate::Record { documents, standing: Some(standing), ..crate::Record::of(entry) })
        };
        Write::new(subject, None, decide)
    }
}

/// All of them are queued first, so that few commits take them all.
fn settle(store: &Sqlite, writes: impl IntoIterator<Item = Write>) {
    let pending: Vec<_> = writes.into_iter().map(|write| store.settle(write)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for write in pending {
            let outcome = write.await.unwrap();
            assert!(matches!(outcome, Outcome::Recorded { .. }), "{outcome:?}");
        }
    });
}

fn bring_up_to_date(store: &Sqlite) {
    store.indexer.index().signal().bring_up_to_date();
    store.indexer.index().signal().until_idle();
}

fn id(number: u64) -> ItemId {
    format!("01a1de8a-{:04x}-7000-8000-{:012x}", number / 7, 0xffff - number).parse().unwrap()
}

fn text(text: &str) -> Filter {
    Filter { text: Some(text.into()), ..Filter::default() }
}

/// What a search finds, page by page.
fn found(connection: &Connection, filter: &Filter, visit: Visit, index: Option<&Arc<SearchIndex>>) -> Vec<ItemId> {
    let (mut filter, mut found) = (filter.clone(), Vec::new());
    loop {
        let candidates = index.and_then(|index| candidates(&filter, index));
        let page = page(connection, &filter, visit, candidates).unwrap();
        assert!(page.items.len() <= visit.hits_max);
        found.extend(page.items.into_iter().map(|listed| listed.item.id));
        match page.next {
            Some(next) => assert!(filter.before.replace(next).is_none_or(|before| next < before), "it goes on"),
            None => return found,
        }
    }
}

/// What a search finds, which must be the same with the index and without.
fn same(ledger: &Ledger, store: &Sqlite, filter: &Filter) -> Vec<ItemId> {
    let connection = open_reader(&ledger.path()).unwrap();
    let with = found(&connection, filter, Visit::of(50), Some(store.indexer.index()));
    assert_eq!(with, found(&connection, filter, Visit::of(50), None), "{filter:?}");
    with
}

/// How many steps SQLite takes for a search.
fn steps(ledger: &Ledger, filter: &Filter, index: Option<&Arc<SearchIndex>>) -> u64 {
    let mut connection = open_reader(&ledger.path()).unwrap();
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    let count = move || counted.fetch_add(1, Ordering::Relaxed) == u64::MAX;
    connection.progress_handler(1, Some(count)).unwrap();
    found(&connection, filter, Visit::of(50), index);
    steps.load(Ordering::Relaxed)
}

const WORDS: [&str; 12] = [
    "region",
    "ÄRGER",
    "Größe",
    "ΟΔΟΣ",
    "host-0042",
    "quagga",
    "İstanbul",
    "日本語",
    "x",
    "4711",
    "0.5",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
];

fn words(dice: &mut Dice) -> String {
    (0..=dice.below(4_u64)).map(|_| *dice.pick(&WORDS)).collect::<Vec<_>>().join(" ")
}

fn payload(dice: &mut Dice) -> Value {
    let risk = *dice.pick(&["low", "high"]);
    match dice.below(4_u64) {
        0 => json!({ "risk": risk, "n": dice.below(10_000_u64), "small": -17, "part": 0.25 }),
        1 => json!({ "a": { "b": [words(dice), [words(dice)], { "c": words(dice) }] }, "risk": risk }),
        2 => json!({ "purpose": words(dice), "t": true, "none": null }),
        _ => json!({}),
    }
}

/// A part of a word, perhaps in capitals, or the beginning of an id, with other conditions.
fn filter(dice: &mut Dice, items: u64) -> Filter {
    let word = if dice.chance(15) { id(dice.below(items)).to_string() } else { words(dice) };
    let ends: Vec<_> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
    let from = if dice.chance(60) { 0 } else { dice.below(ends.len()) };
    let until = from + dice.below(ends.len() - from);
    let part = &word[ends[from]..ends[until]];
    let part = if dice.chance(30) { part.to_uppercase() } else { part.to_owned() };
    Filter {
        text: (!part.is_empty()).then_some(part),
        state: dice.chance(25).then(|| (*dice.pick(&["draft", "withdrawn"])).to_owned()),
        created_by: dice.chance(20).then(|| (*dice.pick(&["ana", "ada", "nobody"])).to_owned()),
        risk: dice.chance(10).then(|| "low".to_owned()),
        before: dice.chance(20).then(|| dice.below(2 * items)),
        ..Filter::default()
    }
}

#[test]
fn whatever_is_searched_for_the_same_items_are_found_in_the_same_order_with_the_index_and_without() {
    let seed = asked("PILOT_SEED").unwrap_or_else(fresh_seed);
    println!("PILOT_SEED={seed}");
    let (dice, ledger) = (&mut Dice::new(seed), Ledger::new());
    let (mut store, mut items) = (ledger.open(), 0);
    for _ in 0..12 {
        let mut writes = Vec::new();
        for _ in 0..dice.below(30_u64) {
            let by = *dice.pick(&["ana", "ada"]);
            writes.push(ledger.creation(&id(items), &words(dice), by, &payload(dice)));
            items += 1;
            if dice.chance(30) {
                writes.push(remark(items));
            }
            if dice.chance(25) {
                writes.push(ledger.cast.action(&id(items - 1), &actor(by, Role::Initiator), "withdraw", None));
            }
        }
        for _ in 0..dice.below(5_u64).min(items) {
            writes.push(ledger.edit(&id(dice.below(items)), &words(dice), &payload(dice)));
        }
        settle(&store, writes);
        match dice.below(4_u64) {
            0 => {}
            1 => {
                drop(store);
                store = ledger.open();
            }
            _ => bring_up_to_date(&store),
        }
        let connection = open_reader(&ledger.path()).unwrap();
        for _ in 0..40 {
            let filter = filter(dice, items + 1);
            let index = Some(store.indexer.index());
            let visit = Visit {
                rows_max: *dice.pick(&[1, 3, 20, 5_000]),
                slabs_max: *dice.pick(&[1, 2, 1_000]),
                ..Visit::of(*dice.pick(&[1, 7, 50]))
            };
            let with = found(&connection, &filter, visit, index);
            assert_eq!(with, found(&connection, &filter, Visit::of(50), None), "{filter:?}");
            let sort = *dice.pick(&[Sort::Updated, Sort::Due, Sort::Title]);
            let none = Arc::new(SearchIndex::new(SMALL));
            let ranked = |index| ranks(&connection, &filter, sort, index).unwrap();
            assert_eq!(ranked(store.indexer.index()), ranked(&none), "{filter:?}");
        }
    }
}

/// Items without anything to be found, but for one.
fn hay(ledger: &Ledger, numbers: std::ops::Range<u64>, needle: u64) -> Vec<Write> {
    let title = |number| if number == needle { "one Needle" } else { "much hay" };
    numbers.map(|number| ledger.creation(&id(number), title(number), "ana", &json!({ "n": number % 10 }))).collect()
}

#[test]
fn an_edited_item_is_found_by_its_new_text_and_not_by_its_old_wherever_it_is_in_the_index() {
    let ledger = Ledger::new();
    let mut store = ledger.open();
    settle(&store, hay(&ledger, 0..40, 99));
    bring_up_to_date(&store);
    // In a sealed slab, in the one in memory, and in none.
    settle(&store, hay(&ledger, 40..42, 99));
    for (number, word) in [(5, "quagga"), (38, "xylophone"), (41, "zebra")] {
        settle(&store, [ledger.edit(&id(number), "other", &json!({ "purpose": word }))]);
        assert_eq!(same(&ledger, &store, &text(word)), [id(number)], "before it is indexed");
    }
    // After more, the next slab is sealed and takes in what was edited.
    for round in 0..4 {
        match round {
            1 => settle(&store, hay(&ledger, 42..60, 99)),
            3 => {
                drop(store);
                store = ledger.open();
            }
            _ => {}
        }
        bring_up_to_date(&store);
        for (number, word) in [(5, "quagga"), (38, "xylophone"), (41, "zebra")] {
            assert_eq!(same(&ledger, &store, &text(word)), [id(number)], "{round}");
            assert!(!same(&ledger, &store, &text("much hay")).contains(&id(number)), "{round}");
        }
    }
}

#[test]
fn many_edited_items_are_taken_in_before_the_next_slab_is_full() {
    let ledger = Ledger::new();
    let store = ledger.open();
    let items = pilot_core::limits::SEARCH_EDITED_MAX as u64 + 30;
    settle(&store, hay(&ledger, 0..items, 7));
    bring_up_to_date(&store);
    let edited = |number| ledger.edit(&id(number), &format!("edited {number}"), &json!({}));
    settle(&store, (0..items - 12).map(edited));
    bring_up_to_date(&store);
    assert_eq!(same(&ledger, &store, &text("edited 17")).last(), Some(&id(17)));
    assert_eq!(same(&ledger, &store, &text("needle")), []);
    let (few, all) =
        (steps(&ledger, &text("needle"), Some(store.indexer.index())), steps(&ledger, &text("needle"), None));
    assert!(few * 10 < all, "{few} steps instead of {all}");
}

#[test]
fn a_file_that_is_not_as_it_was_written_is_made_again_and_nothing_is_missed() {
    let ledger = Ledger::new();
    settle(&ledger.open(), hay(&ledger, 0..60, 17));
    drop(ledger.open());
    let file = beside(&ledger.path());
    let whole = std::fs::read(&file).unwrap();
    let mut others: Vec<_> = [0, 10, 4_096, whole.len() / 2, whole.len() - 1].map(|len| whole[..len].to_vec()).into();
    // In the header, in the slots of several slabs, and in a digest.
    for at in [0, 9, 25, 60, 4_096, 4_096 + 1_000, 3 * 4_096, whole.len() / 2] {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        others.push(flipped);
    }
    others.push(vec![0; whole.len()]);
    for other in others {
        std::fs::write(&file, &other).unwrap();
        let store = ledger.open();
        assert_eq!(same(&ledger, &store, &text("needle")), [id(17)]);
        drop(store);
        assert!(std::fs::read(&file).unwrap() == whole, "it is the same again");
    }
}

#[test]
fn the_index_of_another_ledger_or_of_one_that_was_rolled_back_is_not_used() {
    let (ledger, other) = (Ledger::new(), Ledger::new());
    settle(&ledger.open(), hay(&ledger, 0..30, 99));
    let earlier = std::fs::read(ledger.path()).unwrap();
    settle(&ledger.open(), hay(&ledger, 30..60, 35));
    drop(ledger.open());
    let index = std::fs::read(beside(&ledger.path())).unwrap();
    // The backup of a moment ago; then something else happens, to as many items and more.
    std::fs::write(ledger.path(), earlier).unwrap();
    let store = ledger.open();
    assert_eq!(same(&ledger, &store, &text("needle")), []);
    drop(store);
    std::fs::write(beside(&ledger.path()), &index).unwrap();
    settle(&ledger.open(), hay(&ledger, 30..70, 45));
    std::fs::write(beside(&ledger.path()), &index).unwrap();
    let store = ledger.open();
    assert_eq!(same(&ledger, &store, &text("needle")), [id(45)]);
    drop(store);
    settle(&other.open(), hay(&other, 0..80, 3));
    std::fs::write(beside(&other.path()), &index).unwrap();
    assert_eq!(same(&other, &other.open(), &text("needle")), [id(3)]);
}

#[test]
fn erasing_an_item_leaves_no_index_and_the_next_one_does_not_know_its_text() {
    let ledger = Ledger::new();
    settle(&ledger.open(), hay(&ledger, 0..30, 5));
    let store = ledger.open();
    settle(&store, [ledger.cast.action(&id(5), &actor("ana", Role::Initiator), "withdraw", None)]);
    drop(store);
    let before = std::fs::read(beside(&ledger.path())).unwrap();
    erase::erase(&ledger.path(), &id(5)).unwrap();
    assert!(!beside(&ledger.path()).exists());
    let store = ledger.open();
    assert_eq!(same(&ledger, &store, &text("needle")), []);
    assert_eq!(same(&ledger, &store, &text("(erased)")), [id(5)]);
    drop(store);
    assert!(std::fs::read(beside(&ledger.path())).unwrap() != before);
}

#[test]
fn a_search_for_something_rare_or_absent_reads_few_of_many_items() {
    let ledger = Ledger::new();
    let geometry = Geometry { block_items: 8, slab_blocks: 16, slot_bits: 10 };
    let store = ledger.open_with(geometry);
    settle(&store, hay(&ledger, 0..2_000, 1_234));
    bring_up_to_date(&store);
    let index = Some(store.indexer.index());
    let all = steps(&ledger, &text("needle"), None);
    for rare in [text("needle"), Filter { state: Some("draft".into()), ..text("needle") }, text("xylophone")] {
        let few = steps(&ledger, &rare, index);
        assert!(few * 20 < all, "{few} steps instead of {all}: {rare:?}");
    }
    // Where the database's own index has few rows, as much is read as without ours.
    settle(&store, [ledger.creation(&id(2_001), "much hay", "ada", &json!({}))]);
    bring_up_to_date(&store);
    let of_ada = Filter { created_by: Some("ada".into()), ..text("hay") };
    assert!(steps(&ledger, &of_ada, index) < 2 * steps(&ledger, &of_ada, None) + 100);
}

#[test]
fn what_is_not_indexed_yet_is_searched_and_when_it_is_too_much_everything_is_until_the_index_is_up_to_date() {
    let ledger = Ledger::new();
    let store = ledger.open();
    settle(&store, hay(&ledger, 0..30, 5));
    let taken = || candidates(&text("needle"), store.indexer.index()).unwrap();
    let connection = open_reader(&ledger.path()).unwrap();
    bring_up_to_date(&store);
    let before = taken();
    for some in (0..=SEARCH_UNINDEXED_MAX).collect::<Vec<_>>().chunks(2_000) {
        settle(&store, some.iter().map(|number| remark(*number)));
    }
    assert!(completed(&connection, &text("needle"), before).unwrap().is_none());
    // That asked for what is missing.
    store.indexer.index().signal().until_idle();
    assert!(completed(&connection, &text("needle"), taken()).unwrap().is_some());
    assert_eq!(same(&ledger, &store, &text("needle")), [id(5)]);
}

#[test]
fn the_beginning_of_many_ids_is_searched_for_without_the_index() {
    let ledger = Ledger::new();
    let store = ledger.open();
    let items = SEARCH_IDS_MAX as u64 + 1;
    settle(&store, hay(&ledger, 0..items, 5));
    bring_up_to_date(&store);
    let connection = open_reader(&ledger.path()).unwrap();
    let used = |searched: &Filter| {
        completed(&connection, searched, candidates(searched, store.indexer.index()).unwrap()).unwrap().is_some()
    };
    assert!(!used(&text("01A1DE8A")));
    assert!(used(&text("01a1de8a-0001-7")));
    assert!(used(&text("01a1de8")));
    assert!(candidates(&text("01"), store.indexer.index()).is_none(), "shorter than a gram");
    assert!(candidates(&text(id(3).as_str()), store.indexer.index()).is_none(), "a whole id is looked up");
    assert_eq!(same(&ledger, &store, &text("01A1DE8A-0001-7")), (7..14).rev().map(id).collect::<Vec<_>>());
    assert_eq!(same(&ledger, &store, &text("01A1DE8A")).len() as u64, items);
}

#[test]
fn the_thread_ends_with_the_store_and_closes_what_it_had_open() {
    let ledger = Ledger::new();
    settle(&ledger.open(), hay(&ledger, 0..60, 5));
    let store = ledger.open();
    let index = Arc::clone(store.indexer.index());
    assert_eq!(Arc::strong_count(&index), 3 + 1, "the store's, the thread's two, and this one");
    store.stop().unwrap();
    assert_eq!(Arc::strong_count(&index), 2);
    assert!(candidates(&text("needle"), &index).is_none());
    drop(store);
    assert_eq!(Arc::strong_count(&index), 1);
}

#[test]
fn a_disk_that_does_not_take_the_index_leaves_searches_as_they_were() {
    let ledger = Ledger::new();
    // A directory cannot be opened as a file.
    std::fs::create_dir(beside(&ledger.path())).unwrap();
    let store = ledger.open();
    settle(&store, hay(&ledger, 0..60, 5));
    bring_up_to_date(&store);
    assert_eq!(same(&ledger, &store, &text("needle")), [id(5)]);
    store.check().unwrap();
}
