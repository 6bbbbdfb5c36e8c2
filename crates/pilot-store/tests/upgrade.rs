//! A file of an older schema version is upgraded when a service opens it, and only then.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::workflow::builtin::{CONTROLLED_OPERATION, builtin};
use pilot_store::archive::Archive;
use pilot_store::conformance::{Cast, actor, remark};
use pilot_store::sqlite::LedgerFile;
use pilot_store::{Filter, Listed, Outcome, Store, StoreError, StoredDefinition};
use pilot_testing::Scratch;
use rusqlite::Connection;

use crate::damage::{check, open, sample};

const NEWEST: i64 = 7;
/// Documents and tiles as versions 1 to 6 have them, items as versions 1 to 4, 5 and 6.
const DOCUMENT_6: &str = include_str!("../src/schema/document_6.sql");
const ITEM_4: &str = include_str!("../src/schema/item_4.sql");
const ITEM_5: &str = include_str!("../src/schema/item_5.sql");
const ITEM_6: &str = include_str!("../src/schema/item_6.sql");

fn version(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Gives a file the form of an older version.
pub fn put_back(path: &Path, version: i64) {
    let (item, created_entry) = match version {
        ..5 => (ITEM_4.to_owned(), ""),
        5 => (ITEM_5.to_owned(), "created_entry,"),
        6.. => (format!("{ITEM_5}{ITEM_6}"), "created_entry,"),
    };
    let columns =
        "version, state, workflow, created_by, title, open, waits_for, due_at, last_entry, content_entry, data";
    let indices = ["item_due", "item_open", "item_ended", "item_creator", "item_creator_open"];
    let free: String = indices.iter().map(|name| format!("DROP INDEX {name};")).collect();
    let tables = ["item", "document", "tile"];
    let set_aside: String = tables.iter().map(|name| format!("ALTER TABLE {name} RENAME TO newer_{name};")).collect();
    let drop: String = tables.iter().map(|name| format!("DROP TABLE newer_{name};")).collect();
    let sql = format!(
        "{free} {set_aside} {DOCUMENT_6} {item} \
         INSERT INTO item SELECT id, {created_entry} {columns} FROM newer_item ORDER BY id; \
         INSERT INTO document SELECT * FROM newer_document; INSERT INTO tile SELECT * FROM newer_tile; \
         {drop} PRAGMA user_version = {version}; VACUUM;"
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
async fn an_older_store_is_upgraded_at_the_start_and_lists_go_by_creation() {
    for older in [4, 5, 6] {
        let scratch = Scratch::new();
        let path = scratch.file("pilot.db");
        let ids = descending(&path).await;
        let before = lists(&open(&path).unwrap()).await;
        put_back(&path, older);
        assert_eq!((version(&path), check(&path).faults), (older, vec![]));
        for _ in 0..2 {
            let store = open(&path).unwrap();
            let now = lists(&store).await;
            assert!(now[0].iter().map(|listed| &listed.item.id).eq(ids.iter().rev()), "{older}: newest first");
            assert_eq!(now, before, "{older}");
            drop(store);
            assert_eq!((version(&path), check(&path).faults), (NEWEST, vec![]), "{older}");
        }
    }
}

#[tokio::test]
async fn what_operators_do_with_an_older_store_leaves_it_at_its_version() {
    for older in [4, 6] {
        leaves_its_version(older).await;
    }
}

async fn leaves_its_version(older: i64) {
    let scratch = Scratch::new();
    let (path, copy) = (scratch.file("pilot.db"), scratch.file("copy.db"));
    let ids = descending(&path).await;
    put_back(&path, older);
    let ledger = LedgerFile::at(&path);
    let report = check(&path);
    assert_eq!((report.faults, report.items), (vec![], 40));
    ledger.copy(&copy).unwrap();
    assert_eq!((version(&copy), check(&copy).faults), (older, vec![]));
    assert!(ledger.root_at(report.entries).unwrap().is_some());
    assert_eq!(ledger.fact("head").unwrap().map(|head| head.len()), Some(40));
    assert_eq!(ledger.erasable(&ids[38]).unwrap(), 1);
    assert_eq!(ledger.erase(&ids[38]).unwrap(), 1);
    let report = check(&path);
    assert_eq!((report.faults, report.erased, version(&path)), (vec![], 1, older));
    // A restore puts a copy in the ledger's place, and writes to it.
    let staged = ledger.stage(&LedgerFile::at(&copy)).unwrap();
    drop(staged.open(Arc::new(|| pilot_core::time::Time::EPOCH)).unwrap());
    staged.put_in_place("then").unwrap();
    assert_eq!((version(&path), check(&path).faults), (NEWEST, vec![]));
    assert_eq!(version(&copy), older);
}

#[tokio::test]
async fn an_upgrade_that_fails_leaves_the_older_store_whole_and_no_copy() {
    for (older, damage, mended) in [
        // The copy cannot be made.
        (4, None, None),
        (6, None, None),
        // Two items that one entry created.
        (
            6,
            Some(
                "DROP INDEX item_created; CREATE INDEX item_created ON item (created_entry); \
                 UPDATE item SET created_entry = 0 WHERE title = 'unmistakable 1'",
            ),
            Some(
                "DROP INDEX item_created; UPDATE item SET created_entry = 2 WHERE title = 'unmistakable 1'; \
                 CREATE UNIQUE INDEX item_created ON item (created_entry)",
            ),
        ),
        (6, Some("DROP INDEX item_created"), Some("CREATE UNIQUE INDEX item_created ON item (created_entry)")),
    ] {
        let scratch = Scratch::new();
        let path = scratch.file("pilot.db");
        let ids = descending(&path).await;
        put_back(&path, older);
        let copy = scratch.file("pilot.db-upgrade");
        match damage {
            None => std::fs::create_dir(&copy).unwrap(),
            Some(sql) => Connection::open(&path).unwrap().execute_batch(sql).unwrap(),
        }
        let refused = open(&path).map(drop);
        assert_eq!(matches!(refused, Err(StoreError::Damaged(_))), damage.is_some(), "{damage:?}: {refused:?}");
        match mended {
            None => std::fs::remove_dir(&copy).unwrap(),
            Some(sql) => Connection::open(&path).unwrap().execute_batch(sql).unwrap(),
        }
        assert!(!copy.exists(), "{damage:?}");
        assert_eq!((version(&path), check(&path).faults), (older, vec![]), "{damage:?}");
        let found = lists(&open(&path).unwrap()).await.remove(0);
        assert!(found.iter().map(|listed| &listed.item.id).eq(ids.iter().rev()), "{damage:?}");
    }
}

#[tokio::test]
async fn what_an_interrupted_upgrade_left_is_removed_at_the_next_start() {
    let scratch = Scratch::new();
    let (path, copy) = (scratch.file("pilot.db"), scratch.file("pilot.db-upgrade"));
    descending(&path).await;
    for older in [6, NEWEST] {
        if older < NEWEST {
            put_back(&path, older);
        }
        std::fs::write(&copy, "half a copy").unwrap();
        drop(open(&path).unwrap());
        assert!(!copy.exists());
        assert_eq!((version(&path), check(&path).faults), (NEWEST, vec![]));
    }
}

#[tokio::test]
async fn a_database_that_another_program_has_open_is_not_upgraded() {
    for (log, carried) in [("something in it", ""), ("nothing in it", "PRAGMA wal_checkpoint(TRUNCATE)")] {
        let scratch = Scratch::new();
        let path = scratch.file("pilot.db");
        descending(&path).await;
        put_back(&path, 6);
        let other = Connection::open(&path).unwrap();
        // Nothing that stays, but it is in the write-ahead log.
        let there_and_back = "INSERT INTO fact VALUES ('other', x'00'); DELETE FROM fact WHERE name = 'other'";
        other.execute_batch(&format!("PRAGMA journal_mode = WAL; {there_and_back}; {carried}")).unwrap();
        other.execute_batch("BEGIN; SELECT count(*) FROM item").unwrap();
        let refused = open(&path).map(drop);
        let is_right = matches!(&refused, Err(StoreError::Refused(why)) if why.contains("stop that program"));
        assert!(is_right, "{log}: {refused:?}");
        assert!(!scratch.file("pilot.db-upgrade").exists(), "{log}");
        drop(other);
        assert_eq!((version(&path), check(&path).faults), (6, vec![]), "{log}");
        drop(open(&path).unwrap());
        assert_eq!((version(&path), check(&path).faults), (NEWEST, vec![]), "{log}");
    }
}

#[tokio::test]
async fn an_upgraded_store_keeps_its_mode_its_place_behind_a_link_and_copies_that_share_its_bytes() {
    let scratch = Scratch::new();
    let (path, link, kept) = (scratch.file("pilot.db"), scratch.file("link.db"), scratch.file("kept.db"));
    descending(&path).await;
    put_back(&path, 6);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    std::fs::hard_link(&path, &kept).unwrap();
    drop(open(&link).unwrap());
    assert!(link.is_symlink());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!((version(&path), check(&path).faults), (NEWEST, vec![]));
    assert_eq!((version(&kept), check(&kept).faults), (6, vec![]));
    assert!(!scratch.file("pilot.db-upgrade").exists());
}

#[tokio::test]
async fn an_erasure_removes_what_an_interrupted_upgrade_left() {
    let scratch = Scratch::new();
    let (path, left) = (scratch.file("pilot.db"), scratch.file("pilot.db-upgrade"));
    let ids = descending(&path).await;
    std::fs::write(&left, "unmistakable 38").unwrap();
    LedgerFile::at(&path).erase(&ids[38]).unwrap();
    assert!(!left.exists());
}

#[tokio::test]
async fn an_upgrade_leaves_no_copy_of_a_text_that_an_erasure_could_not_find() {
    for older in [4, 6] {
        let scratch = Scratch::new();
        let path = scratch.file("pilot.db");
        let ids = descending(&path).await;
        put_back(&path, older);
        drop(open(&path).unwrap());
        LedgerFile::at(&path).erase(&ids[38]).unwrap();
        let directory = std::fs::read_dir(path.parent().unwrap()).unwrap();
        let bytes: Vec<u8> = directory.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
        let holds = |title: &[u8]| bytes.windows(title.len()).any(|window| window == title);
        assert!(holds(b"unmistakable 37") && !holds(b"unmistakable 38"), "{older}");
        // What was erased before stays erased.
        put_back(&path, older);
        drop(open(&path).unwrap());
        let report = check(&path);
        assert_eq!((report.faults, report.erased), (vec![], 1), "{older}");
    }
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
