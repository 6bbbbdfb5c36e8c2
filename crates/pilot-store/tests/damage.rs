//! Whatever is changed in the file behind the program's back is found, and named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_core::workflow::builtin::{CONTROLLED_OPERATION, builtin};
use pilot_store::archive::Report;
use pilot_store::conformance::{Cast, TestClock, actor, remark};
use pilot_store::sqlite::Sqlite;
use pilot_store::sqlite::fsck::fsck;
use pilot_store::{Outcome, Store, StoreError, StoredDefinition};
use pilot_testing::{Dice, Scratch, asked, fresh_seed};
use rusqlite::Connection;
use rusqlite::types::Value;

pub fn open(path: &Path) -> Result<Sqlite, StoreError> {
    let clock = TestClock::default();
    Sqlite::open(path, Arc::new(move || clock.now()))
}

/// A ledger with a full tile, a few items on their way, and documents of every kind but inputs.
pub async fn sample(path: &Path) {
    let (store, cast) = (open(path).unwrap(), Arc::new(Cast::default()));
    let [controlled, _] = builtin();
    let kept = StoredDefinition { digest: controlled.digest().to_string(), text: CONTROLLED_OPERATION.to_owned() };
    store.keep_definitions(vec![kept]).await.unwrap();
    for number in 0..12_u64 {
        let id = cast.id();
        let (ana, ben) = (actor("ana", Role::Initiator), actor("ben", Role::Approver));
        let mut writes = vec![cast.creation(&id, &format!("item {number}"), "ana", "low")];
        writes.push(cast.action(&id, &ana, "submit", None));
        writes.push(match number % 3 {
            0 => cast.action(&id, &ben, "approve", None),
            1 => cast.action(&id, &ben, "reject", Some("not now")),
            _ => cast.action(&id, &ana, "withdraw", None),
        });
        writes.extend((0..20).map(remark));
        for write in writes {
            assert!(matches!(store.settle(write).await.unwrap(), Outcome::Recorded { .. }));
        }
    }
}

pub fn check(path: &Path) -> Report {
    fsck(path, &mut |_| ()).unwrap()
}

#[tokio::test]
async fn a_whole_ledger_has_no_faults_and_the_same_root() {
    let scratch = Scratch::new();
    sample(&scratch.file("pilot.db")).await;
    let report = check(&scratch.file("pilot.db"));
    assert_eq!(report.faults, []);
    assert_eq!((report.entries, report.items, report.tiles, report.definitions), (276, 12, 1, 1));
    assert_eq!((report.documents, report.erased), (16, 0));
    let store = open(&scratch.file("pilot.db")).unwrap();
    assert_eq!(report.root.unwrap(), store.head().borrow().root().to_base64());
    // While the service has the file open, it can be read all the same.
    assert_eq!(check(&scratch.file("pilot.db")).faults, []);
}

#[tokio::test]
async fn an_erased_document_is_counted_and_is_no_fault() {
    let scratch = Scratch::new();
    sample(&scratch.file("pilot.db")).await;
    let connection = Connection::open(scratch.file("pilot.db")).unwrap();
    connection.execute("UPDATE document SET data = NULL WHERE entry = 0", []).unwrap();
    drop(connection);
    let report = check(&scratch.file("pilot.db"));
    assert_eq!(report.faults, []);
    assert_eq!((report.documents, report.erased, report.items_not_replayed), (15, 1, 1));
}

/// Of an answer that is remembered.
const KEY: &str = "x'abababababababababababababababababababababababababababababababab'";

#[tokio::test]
async fn every_kind_of_damage_is_found_and_named() {
    let free = "DROP TRIGGER entry_is_never_updated; DROP TRIGGER entry_is_never_deleted;";
    let guard = "CREATE TRIGGER entry_is_never_updated BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entries are never updated'); END; \
                 CREATE TRIGGER entry_is_never_deleted BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;";
    let flip = |table: &str, column: &str, place: &str| {
        // Whatever the byte is, it is another one afterwards.
        let other = format!("CASE substr({column}, 9, 1) WHEN x'7e' THEN x'7f' ELSE x'7e' END");
        format!(
            "UPDATE {table} SET {column} = CAST(substr({column}, 1, 8) || {other} || substr({column}, 10) AS BLOB) WHERE {place}"
        )
    };
    let damages = [
        ("a byte of an entry in a full tile", flip("entry", "data", "idx = 5"), "tile 0/0"),
        ("a look at nothing", "INSERT INTO fact VALUES ('look/nowhere/ana', x'7b7d')".into(), "fact look/nowhere/ana"),
        ("a look that says nothing", "INSERT INTO fact VALUES ('look/01890a5d-ac96-774b-bcce-000000000001/ana', x'7b7d')".into(), "fact look/01890a5d-ac96-774b-bcce-000000000001/ana"),
        ("a byte of a later entry", flip("entry", "data", "idx = 270"), "entry 270"),
        ("another time in an entry", "UPDATE entry SET data = CAST(replace(data, '2027-', '2026-') AS BLOB) WHERE idx = 100".into(), "entry 100"),
        ("another index in an entry", "UPDATE entry SET data = CAST(replace(data, '\"index\":7,', '\"index\":8,') AS BLOB) WHERE idx = 7".into(), "entry 7"),
        ("a space in an entry", "UPDATE entry SET data = CAST(data || ' ' AS BLOB) WHERE idx = 275".into(), "entry 275"),
        ("an unknown format", "UPDATE entry SET data = CAST(replace(data, '\"v\":1', '\"v\":9') AS BLOB) WHERE idx = 275".into(), "entry 275"),
        ("an entry in the middle is gone", "DELETE FROM entry WHERE idx = 30".into(), "entry 30"),
        ("the last entry of an item is gone", "DELETE FROM entry WHERE idx >= 255".into(), "item 01890a5d-ac96-774b-bcce-00000000000c"),
        ("the very last entry is gone", "DELETE FROM entry WHERE idx = 275".into(), "tree"),
        ("a fact in the last entry", "UPDATE entry SET data = CAST(replace(data, '\"version\":\"19\"', '\"version\":\"18\"') AS BLOB) WHERE idx = 275".into(), "tree"),
        ("two entries change places", "UPDATE entry SET idx = 9999 WHERE idx = 10; UPDATE entry SET idx = 10 WHERE idx = 11; UPDATE entry SET idx = 11 WHERE idx = 9999".into(), "entry 10"),
        ("a link that leads elsewhere", "UPDATE entry SET prev = 0 WHERE idx = 24".into(), "entry 24"),
        ("an entry added at the end", "INSERT INTO entry SELECT 276, prev, CAST(replace(data, '\"index\":275', '\"index\":276') AS BLOB) FROM entry WHERE idx = 254".into(), "entry 276"),
        ("a byte of a tile", flip("tile", "hashes", "level = 0"), "tile 0/0"),
        ("a tile is gone", "DELETE FROM tile".into(), "tile 0/0"),
        ("a tile too many", "INSERT INTO tile SELECT level, 1, hashes FROM tile".into(), "tile 0/1"),
        ("a byte of a document", flip("document", "data", "entry = 0"), "document 0/0"),
        ("a document is gone", "DELETE FROM document WHERE entry = 25".into(), "document 25/1"),
        ("a document that no entry names", "INSERT INTO document VALUES (3, 1, x'00')".into(), "document 3/1"),
        ("a document without an entry", "INSERT INTO document VALUES (5000, 1, x'00')".into(), "document 5000/1"),
        ("another state in a row", "UPDATE item SET state = 'cleared' WHERE title = 'item 0'".into(), "item 01890a5d-ac96-774b-bcce-000000000001"),
        ("another role of a participant", "UPDATE item SET data = replace(data, '\"initiator\"', '\"executor\"') WHERE title = 'item 0'".into(), "item 01890a5d-ac96-774b-bcce-000000000001"),
        ("another column of a row", "UPDATE item SET waits_for = 31 WHERE title = 'item 0'".into(), "item 01890a5d-ac96-774b-bcce-000000000001"),
        ("a deadline taken away", "UPDATE item SET due_at = NULL WHERE title = 'item 0'".into(), "item 01890a5d-ac96-774b-bcce-000000000001"),
        ("another entry that created an item", "UPDATE item SET created_entry = created_entry + 1 WHERE title = 'item 0'".into(), "item 01890a5d-ac96-774b-bcce-000000000001"),
        ("two items change places in lists", "UPDATE item SET created_entry = 9999 WHERE title = 'item 0'; UPDATE item SET created_entry = 0 WHERE title = 'item 1'; UPDATE item SET created_entry = 23 WHERE title = 'item 0'".into(), "item 01890a5d-ac96-774b-bcce-000000000002"),
        ("an item is gone", "DELETE FROM item WHERE title = 'item 3'".into(), "item 01890a5d-ac96-774b-bcce-000000000004"),
        ("an item nobody created", "INSERT INTO item SELECT x'00112233445566778899aabbccddeeff', 99999, version, state, workflow, created_by, title, open, waits_for, due_at, last_entry, content_entry, data FROM item LIMIT 1".into(), "item 00112233-4455-6677-8899-aabbccddeeff"),
        ("another definition", "UPDATE definition SET text = replace(text, '\"72h\"', '\"71h\"')".into(), "definition sha256:"),
        ("a byte of a remembered answer", format!("INSERT INTO idempotency VALUES ({KEY}, {KEY}, CAST('2~1 2 -' || char(10) || '{{}}' AS BLOB), 0)"), "answer abababab"),
        ("an answer that cannot be read", format!("INSERT INTO idempotency VALUES ({KEY}, {KEY}, CAST('201 2 -' || char(10) || '{{\"id' AS BLOB), 0)"), "answer abababab"),
        ("an answer about nothing there is", format!("INSERT INTO idempotency VALUES ({KEY}, {KEY}, CAST('201 2 -' || char(10) || '{{\"id\":\"01890a5d-ac96-774b-bcce-00000000beef\"}}' AS BLOB), 0)"), "answer abababab"),
        ("an answer from the future", format!("INSERT INTO idempotency VALUES ({KEY}, {KEY}, CAST('201 9 -' || char(10) || '{{\"id\":\"01890a5d-ac96-774b-bcce-000000000001\"}}' AS BLOB), 0)"), "answer abababab"),
        ("an answer that names no entry there is", format!("INSERT INTO idempotency VALUES ({KEY}, {KEY}, CAST('entry 9999999' AS BLOB), 0)"), "answer abababab"),
        ("an answer without a key", format!("INSERT INTO idempotency VALUES (x'abababab', {KEY}, CAST('200 - -' || char(10) AS BLOB), 0)"), "answer abababab"),
        ("the guard against changes is gone", "DROP TRIGGER entry_is_never_updated".into(), "schema"),
    ];
    let scratch = Scratch::new();
    sample(&scratch.file("pilot.db")).await;
    for (name, sql, place) in damages {
        let copy = scratch.file("copy.db");
        std::fs::copy(scratch.file("pilot.db"), &copy).unwrap();
        let connection = Connection::open(&copy).unwrap();
        connection.pragma_update(None, "journal_mode", "DELETE").unwrap();
        let regard = if name.starts_with("the guard") { String::new() } else { guard.to_owned() };
        let unguard = if regard.is_empty() { "" } else { free };
        connection
            .execute_batch(&format!("{unguard} {sql}; {regard}"))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        drop(connection);
        let report = check(&copy);
        let named = report.faults.iter().any(|fault| fault.place.starts_with(place));
        let is_at_the_edge = ["tree", "entry 27"].iter().any(|edge| place.starts_with(edge));
        assert!(!is_at_the_edge || open(&copy).is_err(), "{name}: a root that is wrong would be signed");
        assert!(named, "{name}: {place} is not among {:#?}", report.faults);
    }
}

#[tokio::test]
async fn a_store_of_a_newer_program_is_refused() {
    let scratch = Scratch::new();
    sample(&scratch.file("pilot.db")).await;
    let connection = Connection::open(scratch.file("pilot.db")).unwrap();
    let known: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    connection.pragma_update(None, "user_version", known + 1).unwrap();
    drop(connection);
    for refused in [open(&scratch.file("pilot.db")).map(drop), fsck(&scratch.file("pilot.db"), &mut |_| ()).map(drop)] {
        let Err(StoreError::Refused(reason)) = refused else { panic!("{refused:?}") };
        assert!(reason.contains("newer version"), "{reason}");
    }
}

/// One at a time, which makes the log grow fast: each writes several pages.
async fn grow(store: &Sqlite, by: u64) {
    for number in 0..by {
        store.settle(remark(number)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stays_long_stops_nobody_and_the_log_grows_no_further_when_it_leaves() {
    let scratch = Scratch::new();
    let store = Sqlite::open_to_fill(&scratch.file("pilot.db"), Arc::new(|| Time::EPOCH)).unwrap();
    let log_size = || std::fs::metadata(scratch.file("pilot.db-wal")).unwrap().len();
    grow(&store, 1_000).await;
    let of_a_thousand = log_size();
    let reader =
        Connection::open_with_flags(scratch.file("pilot.db"), rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count = || reader.query_row("SELECT count(*) FROM entry", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count(), 1_000);
    grow(&store, 6_000).await;
    assert_eq!(count(), 1_000, "it sees the moment it began at");
    assert!(log_size() > 6 * of_a_thousand, "the log cannot begin anew: {} after {of_a_thousand}", log_size());
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(count(), 7_000);
    drop(reader);
    grow(&store, 33_000).await;
    // On a slow disk up to four times 48 MiB.
    let bound = 5 * (48 << 20);
    assert!(log_size() < bound && bound < 40 * of_a_thousand, "{} after {of_a_thousand}", log_size());
    drop(store);
    assert!(!scratch.file("pilot.db-wal").exists(), "at the end everything is in the database");
    assert_eq!(check(&scratch.file("pilot.db")).faults, []);
}

/// Everything the ledger consists of, as SQLite reads it; none when it cannot.
///
/// Of a definition what counts is what it says, which its digest covers; its text has comments too.
/// Remembered answers and facts are left out: nothing they could be held against is stored, and a day later they are gone.
fn contents(path: &Path) -> rusqlite::Result<Vec<Vec<Value>>> {
    let connection = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut all = Vec::new();
    for table in ["entry", "document", "tile", "item"] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2"))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            all.push((0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?);
        }
    }
    let mut statement = connection.prepare("SELECT digest, text FROM definition")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let parsed = Definition::parse(&row.get::<_, String>(1)?).map(|definition| definition.digest().to_string());
        all.push(vec![row.get(0)?, Value::Text(parsed.unwrap_or_default())]);
    }
    Ok(all)
}

#[tokio::test]
async fn of_random_bit_flips_every_one_that_matters_is_found() {
    let flips = asked("PILOT_LONG").unwrap_or(1) * 500;
    let scratch = Scratch::new();
    sample(&scratch.file("pilot.db")).await;
    let bytes = std::fs::read(scratch.file("pilot.db")).unwrap();
    let original = contents(&scratch.file("pilot.db")).unwrap();
    let seed = fresh_seed();
    println!("seed {seed}, {} bytes", bytes.len());
    let (mut dice, copy) = (Dice::new(seed), scratch.file("flipped.db"));
    let (mut found, mut harmless) = (0, 0);
    for _ in 0..flips {
        let (place, bit) = (dice.below(bytes.len()), dice.below(8));
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << bit;
        for companion in ["flipped.db-wal", "flipped.db-shm"] {
            let _ = std::fs::remove_file(scratch.file(companion));
        }
        std::fs::write(&copy, flipped).unwrap();
        let is_found = fsck(&copy, &mut |_| ()).map_or(true, |report| !report.faults.is_empty());
        if is_found {
            found += 1;
            continue;
        }
        harmless += 1;
        let now = contents(&copy).unwrap_or_default();
        let changed = original.iter().zip(&now).find(|(before, now)| before != now);
        let unnoticed = now.len() != original.len() || changed.is_some();
        assert!(
            !unnoticed,
            "seed {seed}: bit {bit} of byte {place} changes the ledger, and nobody notices: {changed:?}"
        );
    }
    println!("{found} of {flips} flips found, {harmless} in unused space");
    assert!(found > flips / 4, "the test must hit something: {found} of {flips}");
}

/// What a crash leaves of a store that is being written: the files as they are, without the log's index.
fn crash(from: &Path, to: &Path, with_head: bool) {
    for suffix in ["", "-wal", "-shm", "-head"] {
        let named = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        let _ = std::fs::remove_file(named(to));
        if suffix != "-shm" && (suffix != "-head" || with_head) {
            std::fs::copy(named(from), named(to)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_the_log_of_a_store_that_crashed_loses_nothing_silently() {
    let flips = asked("PILOT_LONG").unwrap_or(1) * 80;
    let scratch = Scratch::new();
    let (path, copy) = (scratch.file("pilot.db"), scratch.file("crashed.db"));
    drop(open(&path).unwrap());
    let (store, writes) = (open(&path).unwrap(), 30);
    grow(&store, writes).await;
    let log = std::fs::read(scratch.file("pilot.db-wal")).unwrap();
    let seed = fresh_seed();
    println!("seed {seed}, {} bytes of log", log.len());
    let (mut dice, mut found, mut last) = (Dice::new(seed), 0, 0);
    for number in 0..flips {
        let with_head = number % 2 == 0;
        crash(&path, &copy, with_head);
        let (place, bit) = (dice.below(log.len()), dice.below(8));
        let mut flipped = log.clone();
        flipped[place] ^= 1 << bit;
        std::fs::write(scratch.file("crashed.db-wal"), flipped).unwrap();
        let is_named = !check(&copy).faults.is_empty();
        match open(&copy) {
            Err(StoreError::Damaged(reason)) => {
                assert!(reason.contains("do not delete anything"), "{reason}");
                assert!(is_named, "bit {bit} of {place}: the start finds what fsck does not");
                found += 1;
            }
            Err(error) => panic!("bit {bit} of {place}: {error}"),
            // It hit what nobody reads; or, where the head was lost with the power, the last commit of all.
            Ok(opened) => {
                let entries = opened.head().borrow().size();
                let may_miss = u64::from(!with_head);
                assert!(entries + may_miss >= writes, "bit {bit} of {place}: {entries} of {writes} are there");
                last += writes - entries;
            }
        }
    }
    println!("{found} of {flips} found; the last commit lost without a trace {last} times, where nothing speaks of it");
    assert!(found > flips / 2, "{found} of {flips}");
    // And without a flip everything is there.
    crash(&path, &copy, true);
    assert_eq!(open(&copy).unwrap().head().borrow().size(), writes);
}
