//! A file of an older schema version is upgraded when a service opens it, and only then.

use std::path::Path;
use std::sync::Arc;

use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::workflow::builtin::{CONTROLLED_OPERATION, builtin};
use pilot_store::archive::Archive;
use pilot_store::conformance::{Cast, actor, remark};
use pilot_store::sqlite::LedgerFile;
use pilot_store::{Filter, Listed, Outcome, Store, StoredDefinition};
use pilot_testing::Scratch;
use rusqlite::Connection;

use crate::damage::{check, open, sample};

const NEWEST: i64 = 6;
/// The items as versions 1 to 4 have them.
const ITEM_4: &str = include_str!("../src/schema/item_4.sql");

fn version(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Gives a file the form of an older version.
pub fn put_back(path: &Path, version: i64) {
    let columns = "id, version, state, workflow, created_by, title, open, waits_for, due_at, last_entry, \
                   content_entry, data";
    let indices = ["item_created", "item_due", "item_open", "item_ended", "item_creator"];
    let free: String = indices.iter().map(|name| format!("DROP INDEX {name};")).collect();
    let sql = format!(
        "{free} ALTER TABLE item RENAME TO newer; {ITEM_4} INSERT INTO item SELECT {columns} FROM newer; \
         DROP TABLE newer; PRAGMA user_version = {version}; VACUUM;"
    );
    Connection::open(path).unwrap().execute_batch(&sql).unwrap();
}

/// Items whose ids count down, some of them on their way. The last but one has ended.
async fn descending(path: &Path) -> Vec<ItemId> {
    let (store, cast) = (open(path).unwrap(), Arc::new(Cast::default()));
    let [controlled, _] = builtin();
    let kept = StoredDefinition { digest: controlled.digest().to_string(), text: CONTROLLED_OPERATION.to_owned() };
    store.keep_definitions(vec![kept]).await.unwrap();
    let ids: Vec<ItemId> =
        (0..40).map(|number| format!("01890a5d-ac96-774b-bcce-{:012x}", 999 - number).parse().unwrap()).collect();
    let ana = actor("ana", Role::Initiator);
    let mut writes = Vec::new();
    for (number, id) in ids.iter().enumerate() {
        writes.push(cast.creation(id, &format!("unmistakable {number}"), "ana", "low"));
        writes.push(remark(number as u64));
        // One about the item before, so that entries about different items take turns.
        if let Some(before) = number.checked_sub(1).and_then(|before| ids.get(before)) {
            writes.push(cast.action(before, &ana, if number % 3 == 0 { "withdraw" } else { "submit" }, None));
        }
    }
    for write in writes {
        assert!(matches!(store.settle(write).await.unwrap(), Outcome::Recorded { .. }));
    }
    ids
}

async fn lists(store: &dyn Store) -> Vec<Vec<Listed>> {
    let mut lists = Vec::new();
    for state in [None, Some("draft"), Some("submitted"), Some("withdrawn")] {
        for created_by in [None, Some("ana")] {
            let filter = Filter {
                state: state.map(str::to_owned),
                created_by: created_by.map(str::to_owned),
                ..Filter::default()
            };
            lists.push(store.items(filter, 100).await.unwrap());
        }
    }
    lists
}

#[tokio::test]
async fn a_store_of_version_4_is_upgraded_at_the_start_and_lists_go_by_creation() {
    let scratch = Scratch::new();
    let path = scratch.file("pilot.db");
    let ids = descending(&path).await;
    let before = lists(&open(&path).unwrap()).await;
    put_back(&path, 4);
    for _ in 0..2 {
        let store = open(&path).unwrap();
        let now = lists(&store).await;
        assert!(now[0].iter().map(|listed| &listed.item.id).eq(ids.iter().rev()), "newest first");
        assert_eq!(now, before);
        drop(store);
        assert_eq!((version(&path), check(&path).faults), (NEWEST, vec![]));
    }
}

#[tokio::test]
async fn what_operators_do_with_a_store_of_version_4_leaves_it_at_its_version() {
    let scratch = Scratch::new();
    let (path, copy) = (scratch.file("pilot.db"), scratch.file("copy.db"));
    let ids = descending(&path).await;
    put_back(&path, 4);
    let ledger = LedgerFile::at(&path);
    let report = check(&path);
    assert_eq!((report.faults, report.items), (vec![], 40));
    ledger.copy(&copy).unwrap();
    assert_eq!((version(&copy), check(&copy).faults), (4, vec![]));
    assert!(ledger.root_at(report.entries).unwrap().is_some());
    assert_eq!(ledger.fact("head").unwrap().map(|head| head.len()), Some(40));
    assert_eq!(ledger.erasable(&ids[38]).unwrap(), 1);
    assert_eq!(ledger.erase(&ids[38]).unwrap(), 1);
    let report = check(&path);
    assert_eq!((report.faults, report.erased, version(&path)), (vec![], 1, 4));
    // A restore puts a copy in the ledger's place, and writes to it.
    let staged = ledger.stage(&LedgerFile::at(&copy)).unwrap();
    drop(staged.open(Arc::new(|| pilot_core::time::Time::EPOCH)).unwrap());
    staged.put_in_place("then").unwrap();
    assert_eq!((version(&path), check(&path).faults), (NEWEST, vec![]));
    assert_eq!(version(&copy), 4);
}

#[tokio::test]
async fn an_upgrade_that_fails_half_way_leaves_version_4_whole() {
    let scratch = Scratch::new();
    let path = scratch.file("pilot.db");
    let ids = descending(&path).await;
    put_back(&path, 4);
    // The indices are dropped by the time the name turns out to be taken.
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE item_before (x)").unwrap();
    assert!(open(&path).is_err());
    Connection::open(&path).unwrap().execute_batch("DROP TABLE item_before").unwrap();
    assert_eq!((version(&path), check(&path).faults), (4, vec![]));
    let found = lists(&open(&path).unwrap()).await.remove(0);
    assert!(found.iter().map(|listed| &listed.item.id).eq(ids.iter().rev()));
}

#[tokio::test]
async fn an_upgrade_leaves_no_copy_of_a_title_that_an_erasure_could_not_find() {
    let scratch = Scratch::new();
    let path = scratch.file("pilot.db");
    let ids = descending(&path).await;
    put_back(&path, 4);
    drop(open(&path).unwrap());
    LedgerFile::at(&path).erase(&ids[38]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let holds = |title: &[u8]| bytes.windows(title.len()).any(|window| window == title);
    assert!(holds(b"unmistakable 37") && !holds(b"unmistakable 38"));
}

#[tokio::test]
async fn a_store_of_the_first_schema_is_taken_over_with_its_items_as_they_are() {
    let scratch = Scratch::new();
    sample(&scratch.file("pilot.db")).await;
    let store = open(&scratch.file("pilot.db")).unwrap();
    let items = store.items(Filter::default(), 100).await.unwrap();
    drop(store);
    let connection = Connection::open(scratch.file("pilot.db")).unwrap();
    for listed in &items {
        // As it was written then: the whole item but for what its key and its content document have.
        let item = &listed.item;
        let mut row = serde_json::to_value(item).unwrap();
        row.as_object_mut().unwrap().retain(|name, _| name != "id" && name != "payload");
        let key = data_encoding::HEXLOWER.decode(item.id.as_str().replace('-', "").as_bytes()).unwrap();
        let changed = connection.execute("UPDATE item SET data = ?1 WHERE id = ?2", (row.to_string(), key));
        assert_eq!(changed, Ok(1));
    }
    drop(connection);
    put_back(&scratch.file("pilot.db"), 1);
    assert!(items.iter().any(|listed| !listed.item.votes.is_empty()), "a vote is the larger part of a row");
    assert_eq!(check(&scratch.file("pilot.db")).faults, []);
    let store = open(&scratch.file("pilot.db")).unwrap();
    assert_eq!(store.items(Filter::default(), 100).await.unwrap(), items);
    drop(store);
    assert_eq!(check(&scratch.file("pilot.db")).faults, []);
    assert_eq!(version(&scratch.file("pilot.db")), NEWEST);
}
