//! A ledger goes from one engine to the other and back, whole, however often it is interrupted on the way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use pilot_core::document::ContentDigest;
use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::builtin::{CONTROLLED_OPERATION, builtin};
use pilot_store::archive::{Archive as _, Head, Progress};
use pilot_store::conformance::{Cast, TestClock, actor, remark};
use pilot_store::look::Look;
use pilot_store::postgres::Access;
use pilot_store::sqlite::{LedgerFile, Sqlite};
use pilot_store::transfer::{Transferred, to_file, to_postgres};
use pilot_store::{Fact, Key, NoRecord, Outcome, Store, StoreError, StoredDefinition, Subject, Write};
use pilot_testing::Scratch;
use pilot_testing::postgres::{Cluster, Database, psql};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::damage::check;
use crate::postgres::open_node;

pub fn access(database: &Database) -> Access {
    Access { url: database.url().to_owned(), ..Access::default() }
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn note(name: &str, value: &[u8]) -> Write {
    let fact = Fact { name: name.to_owned(), value: Some(value.to_vec()) };
    Write::new(Subject::Ledger, None, move |_| Err(NoRecord::Note(vec![fact.clone()])))
}

/// A ledger with this many items on their way, and entries about the service among them; with keys, facts and
/// definitions. Returns the items: every third has ended.
pub async fn fill(store: &dyn Store, items: u64) -> Vec<ItemId> {
    let cast = Arc::new(Cast::default());
    let [controlled, _] = builtin();
    let kept = StoredDefinition { digest: controlled.digest().to_string(), text: CONTROLLED_OPERATION.to_owned() };
    store.keep_definitions(vec![kept]).await.unwrap();
    let (ana, ben) = (actor("ana", Role::Initiator), actor("ben", Role::Approver));
    let ids: Vec<_> = (0..items).map(|_| cast.id()).collect();
    for (number, id) in (0_u64..).zip(&ids) {
        let mut scope = [7; 32];
        scope[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        let creation = cast.creation(id, &format!("item {number} ä€\u{10ffff}"), "ana", "low");
        let mut writes = vec![Write { key: Some(Key { scope, body: [9; 32] }), ..creation }];
        writes.extend((0..4).map(remark));
        // About the item before, so that entries about different items take turns.
        if let Some(before) = number.checked_sub(1).and_then(|before| ids.get(usize::try_from(before).unwrap())) {
            writes.push(cast.action(before, &ana, "submit", None));
            writes.push(match number % 3 {
                0 => cast.action(before, &ana, "withdraw", None),
                1 => cast.action(before, &ben, "reject", Some("not now")),
                _ => cast.action(before, &ben, "approve", None),
            });
        }
        let last = *b"0123456789abcdef".get(usize::try_from(number % 16).unwrap()).unwrap();
        writes.push(note(&format!("credential/{}/{number}", char::from(last)), &scope));
        let look = Look::new(ContentDigest::of_bytes(&scope), Time::EPOCH).to_fact(id, &ben.actor_id);
        writes.push(note(&look.name, &look.value.unwrap()));
        for write in writes {
            let outcome = store.settle(write).await.unwrap();
            assert!(matches!(outcome, Outcome::Recorded { .. } | Outcome::Noted), "{outcome:?}");
        }
    }
    assert_eq!(store.settle(note("start", b"\x01{\"index\":4,\"second_place\":true}")).await.unwrap(), Outcome::Noted);
    ids
}

fn open_to_fill(path: &Path) -> Sqlite {
    let clock = TestClock::default();
    Sqlite::open_to_fill(path, Arc::new(move || clock.now())).unwrap()
}

/// The same in a file; the contents of one item are erased.
pub fn sample(path: &Path, items: u64) -> Vec<ItemId> {
    let ids = block_on(async { fill(&open_to_fill(path), items).await });
    assert!(LedgerFile::at(path).erase(&ids[2]).unwrap() > 0);
    ids
}

/// Every row of every table, as text.
fn everything(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut lines = Vec::new();
    for table in ["entry", "document", "tile", "item", "idempotency", "fact", "definition"] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<Value> = (0..columns).map(|column| row.get(column).unwrap()).collect();
            lines.push(format!("{table} {values:?}"));
        }
    }
    lines
}

pub fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (everything(one), everything(other));
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
}

fn head_of(path: &Path) -> Head {
    let report = check(path);
    assert_eq!(report.faults, []);
    Head { size: report.entries, root: LedgerFile::at(path).root_at(report.entries).unwrap().unwrap() }
}

fn go_there_and_back(there: &Path, back: &Path) {
    let database = Cluster::shared().fresh_database();
    let head = head_of(there);
    let mut steps = Vec::new();
    let mut watch = |Progress { step, done, of }: Progress| {
        assert!(done <= of, "{step}: {done} of {of}");
        steps.push(step);
    };
    let moved = to_postgres(there, &access(&database), &mut watch).unwrap();
    assert_eq!(moved, Transferred { head, was_finished: false });
    steps.dedup();
    let expected = ["entries", "documents", "tiles", "items", "answers", "facts", "definitions", "verification"];
    assert_eq!(steps, expected);
    let moved = to_file(&access(&database), back, &mut |_| ()).unwrap();
    assert_eq!(moved, Transferred { head, was_finished: false });
    assert_eq!(head_of(back), head);
    assert_same(there, back);
}

#[test]
fn a_ledger_goes_to_postgres_and_back_and_nothing_is_different() {
    let scratch = Scratch::new();
    let (there, back) = (scratch.file("there.db"), scratch.file("back.db"));
    sample(&there, 700);
    assert!(check(&there).entries > 4_096 && check(&there).erased > 0);
    go_there_and_back(&there, &back);
}

#[test]
fn a_ledger_with_three_levels_of_tiles_goes_there_and_back() {
    let scratch = Scratch::new();
    let (there, back) = (scratch.file("there.db"), scratch.file("back.db"));
    block_on(async {
        let store = open_to_fill(&there);
        for start in (0..66_000).step_by(1_000) {
            let handed_in: Vec<_> = (start..start + 1_000).map(|number| store.settle(remark(number))).collect();
            for write in handed_in {
                assert!(matches!(write.await.unwrap(), Outcome::Recorded { .. }));
            }
        }
    });
    go_there_and_back(&there, &back);
}

/// A copy that was moved is one that goes on: a node opens it and writes, and an item's numbers continue.
#[test]
fn a_node_goes_on_with_a_ledger_that_was_moved() {
    let scratch = Scratch::new();
    let (there, back) = (scratch.file("there.db"), scratch.file("back.db"));
    let ids = sample(&there, 40);
    let database = Cluster::shared().fresh_database();
    let size = to_postgres(&there, &access(&database), &mut |_| ()).unwrap().head.size;
    assert_eq!(psql(database.url(), "SELECT epoch, size FROM head").unwrap(), format!("4|{size}"));
    let clock = TestClock::default();
    let store = open_node(database.url(), "one", Arc::new(move || clock.now())).unwrap();
    let cast = Arc::new(Cast::default());
    block_on(async {
        let submit = cast.action(&ids[39], &actor("ana", Role::Initiator), "submit", None);
        let Outcome::Recorded { entry, .. } = store.settle(submit).await.unwrap() else { panic!() };
        assert_eq!(entry.index, size);
        // What was answered before is answered again.
        let again = cast.creation(&ids[1], "item 1", "ana", "low");
        let mut scope = [7; 32];
        scope[..8].copy_from_slice(&0x9e37_79b9_7f4a_7c15_u64.to_be_bytes());
        let again = Write { key: Some(Key { scope, body: [9; 32] }), ..again };
        assert!(matches!(store.settle(again).await.unwrap(), Outcome::Repeated(_)));
    });
    drop(store);
    to_file(&access(&database), &back, &mut |_| ()).unwrap();
    assert_eq!(head_of(&back).size, size + 1);
}

/// Stops the copy at its `pages`th page, as a kill would; false if it has ended by then.
fn stopped_at(there: &Path, access: &Access, pages: usize) -> bool {
    let mut count = 0;
    let copied = catch_unwind(AssertUnwindSafe(|| {
        to_postgres(there, access, &mut |_| {
            count += 1;
            if count > pages {
                std::panic::resume_unwind(Box::new("killed"));
            }
        })
    }));
    copied.is_err()
}

#[test]
fn a_copy_that_is_killed_goes_on_and_nothing_is_missing_or_twice() {
    let scratch = Scratch::new();
    let (there, back) = (scratch.file("there.db"), scratch.file("back.db"));
    sample(&there, 700);
    let database = Cluster::shared().fresh_database();
    let access = access(&database);
    // A run looks at every table, and goes on where the one before stopped.
    let mut kills = 0;
    while stopped_at(&there, &access, 1 + kills) {
        kills += 1;
        let refused = open_node(database.url(), "one", Arc::new(|| Time::EPOCH));
        let Err(StoreError::Refused(why)) = refused else { panic!("an unfinished ledger was opened") };
        assert!(why.contains("the copy is not finished"), "{why}");
        let Err(StoreError::Refused(_)) = to_file(&access, &back, &mut |_| ()) else { panic!() };
    }
    assert!(kills > 5, "{kills}");
    let head = head_of(&there);
    assert_eq!(to_postgres(&there, &access, &mut |_| ()).unwrap(), Transferred { head, was_finished: true });
    to_file(&access, &back, &mut |_| ()).unwrap();
    assert_same(&there, &back);
}

fn refusal(done: pilot_store::Result<Transferred>) -> String {
    match done {
        Err(StoreError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_an_empty_database_takes_a_ledger() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.file("one.db"), scratch.file("two.db"));
    sample(&one, 10);
    sample(&two, 11);
    let cluster = Cluster::shared();
    let copy = |from: &Path, database: &Database| to_postgres(from, &access(database), &mut |_| ());

    let finished = cluster.fresh_database();
    copy(&one, &finished).unwrap();
    assert!(refusal(copy(&two, &finished)).contains("it has a ledger of"));

    let unfinished = cluster.fresh_database();
    assert!(stopped_at(&one, &access(&unfinished), 2));
    assert!(refusal(copy(&two, &unfinished)).contains("the unfinished copy of another ledger"));

    let used = cluster.fresh_database();
    let store = open_node(used.url(), "one", Arc::new(|| Time::EPOCH)).unwrap();
    assert!(refusal(copy(&one, &used)).contains("the node one uses this database"));
    block_on(store.settle(note("a", b"b"))).unwrap();
    drop(store);
    assert!(refusal(copy(&one, &used)).contains("its table fact has rows"));
    psql(used.url(), "DELETE FROM fact").unwrap();
    copy(&one, &used).unwrap();

    let foreign = cluster.fresh_database();
    psql(foreign.url(), "CREATE TABLE item (x integer)").unwrap();
    assert!(refusal(copy(&one, &foreign)).contains("belongs to another program"));
}

#[test]
fn a_file_that_is_in_use_or_empty_or_there_already_is_refused() {
    let scratch = Scratch::new();
    let (path, empty) = (scratch.file("one.db"), scratch.file("empty.db"));
    sample(&path, 10);
    let database = Cluster::shared().fresh_database();
    let held = LedgerFile::at(&path).hold().unwrap();
    assert!(refusal(to_postgres(&path, &access(&database), &mut |_| ())).contains("another process has this store"));
    drop(held);
    drop(open_to_fill(&empty));
    assert!(refusal(to_postgres(&empty, &access(&database), &mut |_| ())).contains("has no entries"));
    assert!(refusal(to_file(&access(&database), &scratch.file("x.db"), &mut |_| ())).contains("no ledger in it"));
    to_postgres(&path, &access(&database), &mut |_| ()).unwrap();
    assert!(refusal(to_file(&access(&database), &path, &mut |_| ())).contains("already exists"));
}

/// Versions before 5 do not say which entry created an item.
#[test]
fn a_file_of_an_older_version_is_copied_as_this_version_has_it() {
    let scratch = Scratch::new();
    let (newer, older, back) = (scratch.file("newer.db"), scratch.file("older.db"), scratch.file("back.db"));
    sample(&newer, 30);
    LedgerFile::at(&newer).copy(&older).unwrap();
    crate::upgrade::put_back(&older, 4);
    let database = Cluster::shared().fresh_database();
    to_postgres(&older, &access(&database), &mut |_| ()).unwrap();
    to_file(&access(&database), &back, &mut |_| ()).unwrap();
    assert_same(&newer, &back);
}

#[test]
fn a_damaged_file_is_not_copied() {
    let scratch = Scratch::new();
    let path = scratch.file("one.db");
    sample(&path, 60);
    let damages = [
        ("UPDATE tile SET hashes = zeroblob(8192)", "do not match the head"),
        ("DELETE FROM tile", "tiles"),
        (
            "INSERT INTO item SELECT zeroblob(16), 99999, version, state, workflow, created_by, title, open, waits_for, \
          due_at, last_entry, content_entry, data FROM item LIMIT 1",
            "no entry is about item",
        ),
    ];
    for (sql, reason) in damages {
        let changed = scratch.file("damaged.db");
        let _ = std::fs::remove_file(&changed);
        LedgerFile::at(&path).copy(&changed).unwrap();
        Connection::open(&changed).unwrap().execute_batch(sql).unwrap();
        let database = Cluster::shared().fresh_database();
        let copied = to_postgres(&changed, &access(&database), &mut |_| ());
        let Err(StoreError::Damaged(what)) = copied else { panic!("{sql}: {copied:?}") };
        assert!(what.contains(reason), "{sql}: {what}");
    }
}
