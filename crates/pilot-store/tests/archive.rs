//! What operators do with a ledger in a database: check it, copy it, erase from it, restore into it.

use std::path::Path;
use std::sync::Arc;

use pilot_core::item::ItemId;
use pilot_store::archive::{Archive, Now, Report};
use pilot_store::conformance::{TestClock, remark};
use pilot_store::look::looks_of;
use pilot_store::postgres::{Access, LedgerDatabase};
use pilot_store::sqlite::LedgerFile;
use pilot_store::transfer::to_postgres;
use pilot_store::{Outcome, Store, StoreError};
use pilot_testing::Scratch;
use pilot_testing::postgres::{Cluster, Database, psql};

use crate::damage::check;
use crate::postgres::open_node;
use crate::transfer::{access, assert_same, block_on, fill, sample};

fn clock() -> Now {
    let clock = TestClock::default();
    Arc::new(move || clock.now())
}

/// A ledger that nodes wrote, with the contents of one item erased.
fn ledger(scratch: &Scratch, items: u64) -> (Database, LedgerDatabase, Vec<ItemId>) {
    let database = Cluster::shared().fresh_database();
    let store = open_node(database.url(), "one", clock()).unwrap();
    let ids = block_on(fill(&store, items));
    drop(store);
    let archive = LedgerDatabase::at(access(&database), scratch.path());
    assert!(archive.erase(&ids[2]).unwrap() > 0);
    (database, archive, ids)
}

fn examine(archive: &LedgerDatabase) -> Report {
    archive.examine(&mut |_| ()).unwrap()
}

fn refused<T>(done: pilot_store::Result<T>) -> String {
    match done {
        Err(StoreError::Refused(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[test]
fn a_whole_ledger_has_no_faults_and_a_backup_of_it_is_a_file_like_any_other() {
    let scratch = Scratch::new();
    let (database, archive, ids) = ledger(&scratch, 60);
    let report = examine(&archive);
    assert_eq!(report.faults, []);
    assert_eq!((report.items, report.answers, report.definitions, report.erased), (60, 60, 1, 1));
    assert!(!scratch.file("fsck.db").exists(), "the private copy is removed");

    let head = archive.acknowledged().unwrap().unwrap();
    assert_eq!((head.size, head.root.to_base64()), (report.entries, report.root.unwrap()));
    assert_eq!(archive.root_at(head.size).unwrap(), Some(head.root));
    assert_eq!(archive.root_at(head.size + 1).unwrap(), None);
    let copy = LedgerFile::at(scratch.file("copy.db"));
    archive.copy(&scratch.file("copy.db")).unwrap();
    assert_eq!(check(&scratch.file("copy.db")).faults, []);
    for size in [1, 255, 256, 257, head.size] {
        assert_eq!(archive.root_at(size).unwrap(), copy.root_at(size).unwrap());
    }
    assert_eq!(archive.fact("start").unwrap(), copy.fact("start").unwrap());
    assert_eq!(archive.facts("credential/a/").unwrap(), copy.facts("credential/a/").unwrap());
    assert_eq!(archive.facts("credential/a/").unwrap().len(), 4);
    assert_eq!(archive.facts("look/").unwrap(), copy.facts("look/").unwrap());
    assert_eq!(archive.facts("look/").unwrap().len(), 59, "one item was erased, and the looks at it");
    assert_eq!(archive.erasable(&ids[2]).unwrap(), 0);

    assert!(archive.engine().starts_with("PostgreSQL 1"), "{}", archive.engine());
    assert_eq!(archive.place(), database.url().replace("postgres@", ""));
    let secret = Access { url: "postgres://ana:secret@h/d".into(), ..Access::default() };
    assert!(!LedgerDatabase::at(secret, scratch.path()).place().contains("secret"));
}

/// A byte that differs is found wherever it is, and so is a row that is gone.
#[test]
fn every_kind_of_damage_to_a_database_is_found_and_named() {
    let scratch = Scratch::new();
    let (database, archive, ids) = ledger(&scratch, 90);
    let of = |number: usize| format!("'\\x{}'", ids[number].as_str().replace('-', ""));
    let item = |number: usize| format!("item {}", ids[number]);
    let table = |name: &str, number: usize| format!("table {name}, {}", item(number));
    let damages = [
        ("UPDATE entry SET leaf = set_byte(leaf, 3, 1) WHERE idx = 7".to_owned(), "table entry, entry 7".to_owned()),
        ("UPDATE entry SET data = set_byte(data, 8, 126) WHERE idx = 5".into(), "tile 0/0".into()),
        ("UPDATE entry SET data = set_byte(data, 8, 126), leaf = sha256('\\x00'::bytea || set_byte(data, 8, 126)) WHERE idx = 300".into(), "entry 300".into()),
        ("DELETE FROM entry WHERE idx = 30".into(), "entry 30".into()),
        ("DELETE FROM entry WHERE idx = (SELECT max(idx) FROM entry)".into(), "table head".into()),
        (format!("UPDATE entry SET nth = nth + 7 WHERE item = {} AND nth = 3", of(1)), table("entry", 1)),
        (format!("UPDATE entry SET item = NULL, nth = NULL WHERE item = {} AND nth = 1", of(1)), table("entry", 1)),
        (format!("UPDATE item SET state = 'cleared' WHERE id = {}", of(4)), item(4)),
        (format!("UPDATE item SET entries = entries + 1 WHERE id = {}", of(4)), table("item", 4)),
        (format!("UPDATE item SET created_entry = 999999 WHERE id = {}", of(4)), table("item", 4)),
        (format!("UPDATE item SET last_entry = last_entry - 1 WHERE id = {}", of(4)), table("item", 4)),
        (format!("DELETE FROM item WHERE id = {}", of(4)), table("entry", 4)),
        (format!("UPDATE item SET due_at = 5, wakes_at = 6 WHERE id = {}", of(4)), table("item", 4)),
        ("DELETE FROM tile WHERE level = 0 AND idx = 1".into(), "tile 0/1".into()),
        ("UPDATE tile SET hashes = set_byte(hashes, 100, 1 # get_byte(hashes, 100)) WHERE idx = 0".into(), "tile 0/0".into()),
        ("UPDATE document SET data = set_byte(data, 4, 126) WHERE entry = 0 AND kind = 0".into(), "document 0/0".into()),
        ("DELETE FROM document WHERE entry = 0".into(), "document 0/0".into()),
        ("UPDATE head SET root = set_byte(root, 0, 1 # get_byte(root, 0))".into(), "tree".into()),
        ("UPDATE head SET size = size + 1".into(), "table head".into()),
        ("UPDATE head SET last_at = last_at + 1".into(), "table head".into()),
        ("UPDATE head SET epoch = size".into(), "table head".into()),
        ("DELETE FROM head".into(), "table head".into()),
        ("UPDATE definition SET text = replace(text, '\"72h\"', '\"71h\"')".into(), "definition sha256:".into()),
        ("UPDATE idempotency SET answer = 'entry 999999'".into(), "answer ".into()),
    ];
    let maintenance = database.url().replace(database.name(), "postgres");
    for (sql, place) in &damages {
        let name = format!("{}_damaged", database.name());
        psql(&maintenance, &format!("CREATE DATABASE {name} TEMPLATE {}", database.name())).unwrap();
        let url = database.url().replace(database.name(), &name);
        psql(&url, sql).unwrap();
        let changed = LedgerDatabase::at(Access { url, ..Access::default() }, scratch.path());
        let report = examine(&changed);
        psql(&maintenance, &format!("DROP DATABASE {name} WITH (FORCE)")).unwrap();
        let found = report.faults.iter().any(|fault| fault.place.starts_with(place.as_str()));
        assert!(found, "{sql}: not {place}, but {:?}", report.faults);
    }
    assert_eq!(examine(&archive).faults, []);
}

#[test]
fn a_copy_is_of_one_moment_while_nodes_write() {
    let scratch = Scratch::new();
    let (database, archive, _) = ledger(&scratch, 20);
    let store = Arc::new(open_node(database.url(), "one", clock()).unwrap());
    let (writing, stop) = (Arc::clone(&store), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        block_on(async {
            let mut number = 0;
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                assert!(matches!(writing.settle(remark(number)).await.unwrap(), Outcome::Recorded { .. }));
                number += 1;
            }
            number
        })
    });
    let before = store.head().borrow().size();
    for number in 0..5 {
        let path = scratch.file(&format!("copy-{number}.db"));
        let acknowledged = archive.acknowledged().unwrap().unwrap();
        archive.copy(&path).unwrap();
        assert_eq!(check(&path).faults, []);
        assert_eq!(LedgerFile::at(&path).root_at(acknowledged.size).unwrap(), Some(acknowledged.root));
        assert_eq!(examine(&archive).faults, []);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(writer.join().unwrap() > 0 && store.head().borrow().size() > before);
}

/// Whether a title or text is anywhere in the tables.
fn holds(database: &Database, text: &str) -> bool {
    let sql = format!(
        "SELECT EXISTS (SELECT FROM document WHERE position('{text}'::bytea IN data) > 0) \
         OR EXISTS (SELECT FROM item WHERE position('{text}' IN title || data) > 0) \
         OR EXISTS (SELECT FROM idempotency WHERE position('{text}'::bytea IN answer) > 0)"
    );
    psql(database.url(), &sql).unwrap() == "t"
}

#[test]
fn what_people_wrote_is_erased_while_nodes_run_and_every_proof_stays() {
    let scratch = Scratch::new();
    let (database, archive, ids) = ledger(&scratch, 20);
    // As older programs wrote a row, and an answer.
    let legacy = format!(
        "UPDATE item SET data = '{{\"title\":\"item 5 secret\"}}' WHERE title LIKE 'item 5 %'; \
         INSERT INTO idempotency VALUES (sha256('x'), sha256('x'), 'quotes item 5 secret of {}', 0)",
        ids[5]
    );
    let ended = psql(database.url(), "SELECT title FROM item WHERE NOT open ORDER BY title").unwrap();
    assert!(ended.contains("item 5 "), "{ended}");
    let root = archive.acknowledged().unwrap().unwrap().root;
    let store = open_node(database.url(), "one", clock()).unwrap();
    psql(database.url(), &legacy).unwrap();
    assert!(holds(&database, "item 5 "));
    assert_eq!(archive.facts(&looks_of(&ids[5])).unwrap().len(), 1);
    assert_eq!(archive.erasable(&ids[5]).unwrap(), archive.erase(&ids[5]).unwrap());
    assert_eq!(archive.facts(&looks_of(&ids[5])).unwrap(), []);
    assert_eq!(archive.facts(&looks_of(&ids[8])).unwrap().len(), 1, "looks at other items stay");
    assert_eq!((archive.erasable(&ids[5]).unwrap(), archive.erase(&ids[5]).unwrap()), (0, 0));
    assert!(!holds(&database, "item 5 ") && holds(&database, "item 8 "));
    assert_eq!(archive.acknowledged().unwrap().unwrap().root, root);
    let open = ids.last().unwrap();
    assert!(refused(archive.erase(open)).contains("is still open"));
    assert!(refused(archive.erasable(&"01890a5d-ac96-774b-bcce-ffffffffffff".parse().unwrap())).contains("no item"));
    assert!(matches!(block_on(store.settle(remark(1))).unwrap(), Outcome::Recorded { .. }), "the head is free again");
}

#[test]
fn an_erasure_leaves_a_ledger_without_faults() {
    let scratch = Scratch::new();
    let (_database, archive, ids) = ledger(&scratch, 20);
    let erased = examine(&archive).erased;
    let more = archive.erase(&ids[5]).unwrap();
    let report = examine(&archive);
    assert_eq!((report.faults, report.erased), (vec![], erased + more));
}

#[test]
fn no_service_opens_a_ledger_that_an_operator_holds() {
    let scratch = Scratch::new();
    let (database, archive, _) = ledger(&scratch, 5);
    let open = || open_node(database.url(), "one", clock());
    let held = archive.hold().unwrap();
    assert!(refused(open()).contains("an operator's command has this database"));
    assert_eq!(examine(&archive).faults, [], "reading goes on");
    drop(held);
    let store = open().unwrap();
    assert!(refused(archive.hold()).contains("the node one uses this database"));
    drop(store);
    drop(archive.hold().unwrap());
}

#[test]
fn an_operator_writes_as_a_node_of_that_name() {
    let scratch = Scratch::new();
    let (_database, archive, _) = ledger(&scratch, 5);
    let size = archive.acknowledged().unwrap().unwrap().size;
    let store = archive.open(clock()).unwrap();
    assert_eq!(store.nodes().iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["operator"]);
    assert!(matches!(block_on(store.settle(remark(1))).unwrap(), Outcome::Recorded { .. }));
    drop(store);
    assert_eq!(archive.acknowledged().unwrap().unwrap().size, size + 1);
}

fn restore(into: &LedgerDatabase, from: &Path) {
    let staged = into.stage(&LedgerFile::at(from)).unwrap();
    let store = staged.open(clock()).unwrap();
    assert!(matches!(block_on(store.settle(remark(1))).unwrap(), Outcome::Recorded { .. }));
    drop(store);
    staged.put_in_place("then").unwrap();
}

#[test]
fn a_backup_is_restored_into_an_empty_database_and_into_no_other() {
    let scratch = Scratch::new();
    let backup = scratch.file("backup.db");
    sample(&backup, 20);
    let database = Cluster::shared().fresh_database();
    let archive = LedgerDatabase::at(access(&database), scratch.path());
    assert!(!archive.exists());
    let held = archive.hold().unwrap();
    archive.stage(&LedgerFile::at(&backup)).unwrap().discard();
    assert!(!archive.exists() && !scratch.file("restoring.db").exists());
    restore(&archive, &backup);
    drop(held);
    assert!(archive.exists());
    assert_eq!(archive.acknowledged().unwrap().unwrap().size, check(&backup).entries + 1);
    assert_eq!(examine(&archive).faults, []);
    let why = refused(archive.stage(&LedgerFile::at(&backup)));
    assert!(why.contains("create an empty database, point store.url at it"), "{why}");
    assert_eq!(refused(archive.check_replaceable()), why);
    let left: Vec<_> = std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_str().unwrap().starts_with("restoring")), "{left:?}");
}

#[test]
fn a_database_that_cannot_be_reached_is_not_taken_for_an_empty_one() {
    let scratch = Scratch::new();
    let nowhere = Access { url: "postgres://nobody@127.0.0.1:9/none".into(), ..Access::default() };
    let archive = LedgerDatabase::at(nowhere, scratch.path());
    assert!(archive.exists());
    for failed in [archive.examine(&mut |_| ()).map(drop), archive.check_replaceable(), archive.hold().map(drop)] {
        let Err(StoreError::Unavailable(what)) = failed else { panic!("{failed:?}") };
        assert!(what.starts_with("postgres://127.0.0.1:9/none: cannot be reached"), "{what}");
    }
    assert!(archive.engine().contains("cannot be reached"));
}

/// Both engines give the same ledger the same form.
#[test]
fn a_ledger_that_was_written_here_equals_one_that_was_moved_here() {
    let scratch = Scratch::new();
    let (written, archive, ids) = ledger(&scratch, 50);
    let (here, there, moved) = (scratch.file("here.db"), scratch.file("there.db"), scratch.file("moved.db"));
    archive.copy(&here).unwrap();
    assert_eq!(sample(&there, 50), ids);
    let database = Cluster::shared().fresh_database();
    to_postgres(&there, &access(&database), &mut |_| ()).unwrap();
    LedgerDatabase::at(access(&database), scratch.path()).copy(&moved).unwrap();
    assert_same(&here, &moved);
    let own = "SELECT idx, item, nth, leaf FROM entry UNION ALL SELECT created_entry, id, entries, NULL FROM item";
    let own = format!("SELECT * FROM ({own}) t ORDER BY 1, 2, 3, 4");
    let (written, moved) = (psql(written.url(), &own).unwrap(), psql(database.url(), &own).unwrap());
    let differing = written.lines().zip(moved.lines()).find(|(one, other)| one != other);
    assert_eq!((written.lines().count(), differing), (moved.lines().count(), None));
}
