//! Brings a file of an older schema version up to date. All of it is copied into a new file, which takes the old one's
//! place once it is complete and on disk; until then the old one is not touched.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::beside::{directory_of, with_suffix};
use super::failure::failed;
use super::log::carry_recovered;
use super::overwrite::destroy;
use super::schema::{APPLICATION_ID, CREATED_ENTRY_SINCE, SCHEMA, SCHEMA_VERSION};
use super::{connection, opening, wal};
use crate::row::{ItemKey, from_key};
use crate::{Result, StoreError};

/// What is copied as it is, in the order in which rows were written, and what it is called for people.
const COPIES: [(&str, &str); 6] = [
    ("entries", "INSERT INTO entry (idx, prev, data) SELECT idx, prev, data FROM older.entry ORDER BY idx"),
    (
        "documents",
        "INSERT INTO document (entry, kind, data) SELECT entry, kind, data FROM older.document ORDER BY entry, kind",
    ),
    ("tiles", "INSERT INTO tile (level, idx, hashes) SELECT level, idx, hashes FROM older.tile ORDER BY level, idx"),
    (
        "answers",
        "INSERT INTO idempotency (scope, body, answer, at) \
         SELECT scope, body, answer, at FROM older.idempotency ORDER BY scope",
    ),
    ("facts", "INSERT INTO fact (name, value) SELECT name, value FROM older.fact ORDER BY name"),
    ("definitions", "INSERT INTO definition (digest, text) SELECT digest, text FROM older.definition ORDER BY digest"),
];
/// By an index, because sorting whole rows takes memory for all of them.
const COPY_ITEMS: &str = "INSERT INTO item (id, created_entry, version, state, workflow, created_by, title, open, \
     waits_for, due_at, last_entry, content_entry, data) \
     SELECT id, created_entry, version, state, workflow, created_by, title, open, waits_for, due_at, last_entry, \
     content_entry, data FROM older.item INDEXED BY item_created ORDER BY created_entry";
const COPY_ITEM: &str = "INSERT INTO item (id, created_entry, version, state, workflow, created_by, title, open, \
     waits_for, due_at, last_entry, content_entry, data) \
     SELECT id, ?2, version, state, workflow, created_by, title, open, waits_for, due_at, last_entry, content_entry, data \
     FROM older.item WHERE id = ?1";
/// Nobody reads the copy before it is complete, and then all of it is synced. Nobody else may open the old file meanwhile.
const SETTINGS: &str = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_size = -32768; \
     PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA locking_mode = EXCLUSIVE;";
const REMEDY: &str = "run `pilot log fsck`, and restore from a backup";

/// The connection to an up-to-date file: this one, or one to the copy that took its file's place.
pub(super) fn upgraded(connection: Connection, path: &Path) -> Result<Connection> {
    discard_copy(path)?;
    let version = number(&connection, "PRAGMA user_version")?;
    if version >= SCHEMA_VERSION {
        return Ok(connection);
    }
    tracing::info!(
        "upgrading the store from schema {version} to {SCHEMA_VERSION}; this takes seconds for each million entries"
    );
    opening::whole(&connection, path)?;
    carry_recovered(&connection, path)?;
    let created = if version < CREATED_ENTRY_SINCE { Some(creations(&connection)?) } else { None };
    let place = in_place(path)?;
    let used = number(&connection, "PRAGMA page_count")? - number(&connection, "PRAGMA freelist_count")?;
    check_room(&place, used.unsigned_abs() * number(&connection, "PRAGMA page_size")?.unsigned_abs())?;
    drop(connection);
    let copied = complete_copy(&place, created.as_deref());
    if copied.is_err() {
        let _ = discard_copy(path);
    }
    let connection = copied?;
    // If this fails, it is unknown which file has which name on disk: neither may be destroyed.
    exchange(&place, &copy_beside(&place)).map_err(|error| unwritten(&place, &error))?;
    drop(connection);
    // By now this is the name of the old file.
    discard_copy(path)?;
    tracing::info!("the store was upgraded to schema {SCHEMA_VERSION}");
    connection::open_writer(path)
}

/// Removes what an interrupted upgrade left: half of a copy, or the old file. An erasure could not find the texts in it.
pub(super) fn discard_copy(path: &Path) -> Result<()> {
    let copy = copy_beside(&in_place(path)?);
    let discard = || {
        if copy.symlink_metadata().is_ok() {
            // Otherwise a power cut could undo an exchange of names after the old file was overwritten.
            File::open(directory_of(&copy))?.sync_all()?;
        }
        destroy(&copy)
    };
    discard().map_err(|error| unwritten(&copy, &error))
}

/// Where the file itself is: a link to it stays a link.
fn in_place(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|error| unwritten(path, &error))
}

fn copy_beside(place: &Path) -> PathBuf {
    with_suffix(place, "-upgrade")
}

fn number(connection: &Connection, sql: &str) -> Result<i64> {
    connection.query_row(sql, [], |row| row.get(0)).map_err(|error| failed(&error))
}

/// Refused before anything is written: a full disk would be in the way of everything else on it.
fn check_room(place: &Path, bytes: u64) -> Result<()> {
    let directory = directory_of(place);
    let disk = rustix::fs::statvfs(&directory).map_err(|error| unwritten(&directory, &error))?;
    // Some network file systems do not tell.
    if disk.f_blocks == 0 {
        return Ok(());
    }
    enough(disk.f_bavail.saturating_mul(disk.f_frsize), bytes).map_err(|missing| {
        StoreError::Refused(format!(
            "{}: has to be copied once for this version of pilot; free {} MiB on the disk of {}",
            place.display(),
            missing.div_ceil(1 << 20),
            directory.display()
        ))
    })
}

/// A quarter more than the pages in use: rows may lie less tightly, and others write too. `Err` says what is missing.
fn enough(free: u64, bytes: u64) -> std::result::Result<(), u64> {
    let needed = bytes.saturating_add(bytes / 4);
    if free >= needed { Ok(()) } else { Err(needed - free) }
}

/// A copy that is on disk, ready to take the old file's place. The connection keeps everyone else out until it does.
fn complete_copy(place: &Path, created: Option<&[(ItemKey, i64)]>) -> Result<Connection> {
    // What another program keeps in the write-ahead log of this file must not be read as that of the copy.
    if fs::metadata(wal::beside(place)).is_ok_and(|log| log.len() > 0) {
        return Err(in_use(place));
    }
    let copy = copy_beside(place);
    let connection = copy_of(place, &copy, created)?;
    give_same_rights(place, &copy)
        .and_then(|()| File::open(&copy)?.sync_all())
        .map_err(|error| unwritten(&copy, &error))?;
    Ok(connection)
}

fn copy_of(place: &Path, copy: &Path, created: Option<&[(ItemKey, i64)]>) -> Result<Connection> {
    connection::make_private(copy).map_err(|error| unwritten(copy, &error))?;
    let uncopied = |error: rusqlite::Error| uncopied(place, &error);
    let connection = Connection::open(copy).map_err(uncopied)?;
    connection::keep_log(&connection).map_err(uncopied)?;
    connection.busy_timeout(Duration::ZERO).map_err(uncopied)?;
    connection.execute_batch(SETTINGS).map_err(uncopied)?;
    // As bytes, because a name need not be UTF-8.
    connection.execute("ATTACH DATABASE ?1 AS older", [place.as_os_str().as_bytes()]).map_err(uncopied)?;
    connection.execute_batch(&format!("BEGIN; {SCHEMA}")).map_err(uncopied)?;
    let mut entries = None;
    for (what, sql) in COPIES {
        let rows = connection.execute(sql, []).map_err(uncopied)?;
        tracing::info!(rows, "copied {rows} {what}");
        entries = entries.or(Some(rows));
    }
    let items = number(&connection, "SELECT count(*) FROM older.item NOT INDEXED")?;
    let copied = copy_items(&connection, created).map_err(uncopied)?;
    // An item that an index does not have, or has twice, must not get lost.
    expect_all("items", items.unsigned_abs(), copied)?;
    // The tree over what was copied, compared with the head that came along.
    expect_all("entries", opening::load(&connection)?.edge.size(), entries.unwrap_or(0))?;
    let marks = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT");
    connection.execute_batch(&marks).map_err(uncopied)?;
    Ok(connection)
}

fn copy_items(connection: &Connection, created: Option<&[(ItemKey, i64)]>) -> rusqlite::Result<usize> {
    let copied = match created {
        None => connection.execute(COPY_ITEMS, [])?,
        Some(created) => {
            let mut copy = connection.prepare(COPY_ITEM)?;
            created.iter().map(|(key, entry)| copy.execute((key, entry))).sum::<rusqlite::Result<usize>>()?
        }
    };
    tracing::info!(rows = copied, "copied {copied} items");
    Ok(copied)
}

fn expect_all(what: &str, expected: u64, copied: usize) -> Result<()> {
    if u64::try_from(copied) == Ok(expected) {
        return Ok(());
    }
    Err(StoreError::Damaged(format!("there are {expected} {what}, and {copied} could be copied; {REMEDY}")))
}

/// Gives the copy the owner and the mode of the old file.
fn give_same_rights(place: &Path, copy: &Path) -> io::Result<()> {
    let (wanted, given) = (fs::metadata(place)?, fs::metadata(copy)?);
    if (wanted.uid(), wanted.gid()) != (given.uid(), given.gid()) {
        std::os::unix::fs::chown(copy, Some(wanted.uid()), Some(wanted.gid()))?;
    }
    fs::set_permissions(copy, wanted.permissions())
}

/// From here on the copy is the ledger, and the old file is what an interrupted upgrade leaves.
fn exchange(place: &Path, copy: &Path) -> io::Result<()> {
    // Both are empty, and must not be taken for those of the copy.
    for suffix in ["-wal", "-shm"] {
        match fs::remove_file(with_suffix(place, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match renameat_with(CWD, copy, CWD, place, RenameFlags::EXCHANGE) {
        // Not every file system exchanges names. Those that do not would not write zeros where the old bytes are either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::rename(copy, place)?;
            tracing::warn!("the old file was replaced, but this file system does not let its bytes be overwritten");
        }
        exchanged => exchanged?,
    }
    File::open(directory_of(place))?.sync_all()
}

fn in_use(path: &Path) -> StoreError {
    StoreError::Refused(format!(
        "{}: another program has the database open, which has to be copied once; stop that program",
        path.display()
    ))
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("{}: the store cannot be upgraded: {error}", path.display()))
}

/// Rows that contradict each other, or an index that is missing, are damage of the old file.
fn uncopied(place: &Path, error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => in_use(place),
        Some(ErrorCode::DiskFull) => StoreError::Refused(format!(
            "{}: has to be copied once for this version of pilot, but the disk is full; free some space",
            place.display()
        )),
        Some(ErrorCode::ConstraintViolation | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
            StoreError::Damaged(format!("the store cannot be upgraded: {error}; {REMEDY}"))
        }
        _ => failed(error),
    }
}

/// Each item with the first entry of its chain, in that order. The entries are read once, from the newest down, which
/// takes the same time however they are spread over the items.
fn creations(connection: &Connection) -> Result<Vec<(ItemKey, i64)>> {
    let mut chains = newest_entries(connection)?;
    let mut created = Vec::with_capacity(chains.len());
    let mut statement =
        connection.prepare("SELECT idx, prev FROM entry ORDER BY idx DESC").map_err(|error| failed(&error))?;
    let mut rows = statement.query([]).map_err(|error| failed(&error))?;
    while let Some(row) = rows.next().map_err(|error| failed(&error))? {
        let entry: i64 = row.get(0).map_err(|error| failed(&error))?;
        let Some(key) = chains.remove(&entry) else { continue };
        match row.get::<_, Option<i64>>(1).map_err(|error| failed(&error))? {
            None => created.push((key, entry)),
            Some(prev) => lead(&mut chains, prev, key)?,
        }
    }
    // What is left leads to an entry that is not there, or to a later one.
    if let Some(key) = chains.values().next() {
        return Err(damaged(key, "the entry that created it is missing"));
    }
    created.reverse();
    Ok(created)
}

/// The newest entry about each item.
fn newest_entries(connection: &Connection) -> Result<HashMap<i64, ItemKey>> {
    let mut chains = HashMap::new();
    let mut statement = connection.prepare("SELECT id, last_entry FROM item").map_err(|error| failed(&error))?;
    let mut rows = statement.query([]).map_err(|error| failed(&error))?;
    while let Some(row) = rows.next().map_err(|error| failed(&error))? {
        let (key, entry) = (row.get(0).map_err(|error| failed(&error))?, row.get(1).map_err(|error| failed(&error))?);
        lead(&mut chains, entry, key)?;
    }
    Ok(chains)
}

fn lead(chains: &mut HashMap<i64, ItemKey>, entry: i64, key: ItemKey) -> Result<()> {
    match chains.insert(entry, key) {
        None => Ok(()),
        Some(_) => Err(damaged(&key, &format!("it shares entry {entry} with another item"))),
    }
}

fn damaged(key: &ItemKey, what: &str) -> StoreError {
    let id = from_key(key).map_or_else(|_| "without an id".to_owned(), |id| id.to_string());
    StoreError::Damaged(format!("item {id}: {what}; {REMEDY}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema::of_version;

    /// Two items whose entries take turns, with one about the service in between. The later one has the smaller id.
    fn version_4() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(of_version(4)).unwrap();
        for (index, prev) in [(0, None), (1, None), (2, Some(1)), (3, None), (4, Some(2)), (5, Some(3))] {
            connection.execute("INSERT INTO entry VALUES (?1, ?2, x'00')", (index, prev)).unwrap();
        }
        for (id, last_entry) in [([9; 16], 4), ([5; 16], 5)] {
            let sql = "INSERT INTO item VALUES (?1, 1, 's', 'w', 'ana', 't', 1, 0, NULL, ?2, 0, '[]')";
            connection.execute(sql, (id, last_entry)).unwrap();
        }
        connection
    }

    #[test]
    fn each_item_was_created_by_the_first_entry_of_its_chain() {
        assert_eq!(creations(&version_4()).unwrap(), [([9; 16], 1), ([5; 16], 3)]);
    }

    #[test]
    fn an_item_whose_chain_is_broken_is_damage() {
        let broken = [
            ("UPDATE item SET last_entry = 77 WHERE last_entry = 5", "is missing"),
            ("UPDATE item SET last_entry = 2", "it shares entry 2 with another item"),
            ("UPDATE item SET last_entry = 2 WHERE last_entry = 5", "it shares entry 2 with another item"),
            (
                "INSERT INTO entry VALUES (6, 6, x'00'); UPDATE item SET last_entry = 6 WHERE last_entry = 5",
                "is missing",
            ),
            (
                "INSERT INTO entry VALUES (7, 6, x'00'); UPDATE item SET last_entry = 7 WHERE last_entry = 5",
                "is missing",
            ),
        ];
        for (sql, reason) in broken {
            let connection = version_4();
            connection.execute_batch(sql).unwrap();
            let damaged = creations(&connection);
            assert!(matches!(&damaged, Err(StoreError::Damaged(what)) if what.contains(reason)), "{sql}: {damaged:?}");
        }
    }

    #[test]
    fn a_copy_needs_a_quarter_more_than_the_pages_in_use() {
        assert_eq!([enough(125, 100), enough(124, 100), enough(0, 1_000)], [Ok(()), Err(1), Err(1_250)]);
    }
}
