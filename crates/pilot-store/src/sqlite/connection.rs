//! Opening the file: version, schema, and whether what is stored is intact.

use std::path::Path;

use pilot_core::entry::Entry;
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash, root_of};
use pilot_evidence::tile::TILE_WIDTH;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::head::Head;
use super::log::Thresholds;
use super::tree::Tree;
use super::{read, wal};
use crate::{Result, StoreError};

/// Older versions can corrupt a database in WAL mode (the WAL-reset bug, fixed in 3.51.3).
const VERSION_MIN: i32 = 3_051_003;
/// The number of the schema this program writes. A file with a higher one belongs to a newer program.
pub(super) const SCHEMA_VERSION: i64 = 2;
/// The first has the same tables, and more in an item's JSON; a row is rewritten with its item's next move.
pub(super) const OLDEST_SCHEMA_VERSION: i64 = 1;
pub(super) const SCHEMA: &str = include_str!("../schema/sqlite.sql");
/// Marks the file as ours ("PILT").
pub(super) const APPLICATION_ID: i64 = 0x5049_4c54;

/// Where the size and root of the tree are kept, as of the last commit.
pub(super) const HEAD_FACT: &str = "head";

pub(super) fn head_bytes(edge: &Edge) -> Vec<u8> {
    [&edge.size().to_be_bytes()[..], &edge.root().0].concat()
}

/// What the writing thread starts from.
pub(super) struct Opened {
    pub(super) edge: Edge,
    pub(super) last_at: Time,
}

pub(super) fn open_writer(path: &Path) -> Result<Connection> {
    if rusqlite::version_number() < VERSION_MIN {
        let version = rusqlite::version();
        let message =
            format!("SQLite {version} can corrupt a database; rebuild with the bundled one (3.51.3 or newer)");
        return Err(StoreError::Refused(message));
    }
    make_private(path)
        .map_err(|error| StoreError::Unavailable(format!("{}: cannot be opened: {error}", path.display())))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| failed(path, &error))?;
    keep_log(&connection).map_err(|error| failed(path, &error))?;
    let kept_bytes = Thresholds::at(path).kept_bytes();
    // FULL: a commit is on disk when it returns. When the log is carried over is the writer's own choice.
    let settings = format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; \
         PRAGMA journal_size_limit = {kept_bytes}; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY; \
         PRAGMA trusted_schema = OFF;"
    );
    connection.execute_batch(&settings).map_err(|error| failed(path, &error))?;
    connection.set_prepared_statement_cache_capacity(64);
    migrate(&connection, path)?;
    Ok(connection)
}

/// By default SQLite copies the log into the database and deletes it when the last connection closes. After a failed
/// sync that would lose what the database has lost and the log still has: so we do it ourselves, or not at all.
fn keep_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// Closes the connection to a file whose log was carried over to the end, and lets go of the log. It matters to no
/// start whether it is there.
pub(super) fn close_carried(connection: Connection) {
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    drop(connection);
}

/// For copying the write-ahead log in parallel with the writer.
pub(super) fn open_carrier(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| failed(path, &error))?;
    keep_log(&connection).map_err(|error| failed(path, &error))?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -64;";
    connection.execute_batch(settings).map_err(|error| failed(path, &error))?;
    Ok(connection)
}

pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| failed(path, &error))?;
    set_up_reader(connection, path)
}

/// For reading where there may be no service, and perhaps no right to write: SQLite wants to create a file next to the
/// database even for reading. Where nobody can write, it need not: nothing changes.
pub(super) fn open_alone(path: &Path) -> Result<Connection> {
    let opened_to_write = std::fs::OpenOptions::new().write(true).open(path);
    let is_read_only = opened_to_write.is_err_and(|error| error.kind() == std::io::ErrorKind::ReadOnlyFilesystem);
    let Some(name) = path.to_str().filter(|_| is_read_only) else { return open_reader(path) };
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        let remedy = "copy it together with its -wal file to a writable place, and use the copy";
        return Err(StoreError::Unavailable(format!(
            "{name}: is on a read-only file system, and its last entries are in the -wal file next to it; {remedy}"
        )));
    }
    let encoded = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("file:{encoded}?immutable=1"), flags);
    set_up_reader(connection.map_err(|error| failed(path, &error))?, path)
}

fn set_up_reader(connection: Connection, path: &Path) -> Result<Connection> {
    keep_log(&connection).map_err(|error| failed(path, &error))?;
    let settings = "PRAGMA cache_size = -4096; PRAGMA query_only = ON;";
    connection.execute_batch(settings).map_err(|error| failed(path, &error))?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

fn failed(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            StoreError::Refused(format!("{path}: is not a SQLite database; check store.url"))
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            StoreError::Refused(format!("{path}: is damaged ({error}); restore it from a backup"))
        }
        Some(ErrorCode::ReadOnly) => {
            StoreError::Refused(format!("{path}: cannot be written; check its owner and mode"))
        }
        Some(ErrorCode::DatabaseBusy) => {
            StoreError::Refused(format!("{path}: another program is using it; stop that program first"))
        }
        Some(ErrorCode::SystemIoFailure) if !read::is_of_the_disk(error) => StoreError::Unavailable(format!(
            "{path}: the index of its write-ahead log cannot be created ({error}); if the disk is full, free some space"
        )),
        Some(ErrorCode::DiskFull) => StoreError::Unavailable(format!("{path}: the disk is full; free some space")),
        _ => StoreError::Unavailable(format!("{path}: {error}")),
    }
}

/// Made before SQLite does, which would let others read it; its companion files take over the mode.
pub(super) fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

fn migrate(connection: &Connection, path: &Path) -> Result<()> {
    let failed = |error: rusqlite::Error| failed(path, &error);
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    match number("PRAGMA user_version").map_err(failed)? {
        0 if number("SELECT count(*) FROM sqlite_schema").map_err(failed)? > 0 => Err(StoreError::Refused(format!(
            "{}: belongs to another program; store.url points to the wrong file",
            path.display()
        ))),
        0 => {
            let marks = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};");
            connection.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} {marks} COMMIT;")).map_err(failed)
        }
        SCHEMA_VERSION => Ok(()),
        OLDEST_SCHEMA_VERSION => {
            connection.execute_batch(&format!("PRAGMA user_version = {SCHEMA_VERSION};")).map_err(failed)
        }
        found => Err(StoreError::Refused(format!(
            "{}: was written by a newer version of pilot (schema {found}, this program supports {SCHEMA_VERSION}); use that version",
            path.display()
        ))),
    }
}

/// Rebuilds the tree's right edge from what is stored, and checks on the way that the newest part of it is whole.
pub(super) fn load(connection: &Connection) -> Result<Opened> {
    let last: Option<i64> = connection
        .query_row("SELECT max(idx) FROM entry", [], |row| row.get(0))
        .map_err(|error| read::failed(&error))?;
    let size = last.map_or(0, |last| u64::try_from(last).unwrap_or(0) + 1);
    let edge = load_edge(connection, size)?;
    let head = read::fact(connection, HEAD_FACT)?;
    if size > 0 && head != Some(head_bytes(&edge)) || size == 0 && head.is_some() {
        return Err(damaged("the entries do not match the head stored with them"));
    }
    let last_at = match size.checked_sub(1) {
        None => Time::EPOCH,
        Some(last) => last_entry(connection, last)?.at,
    };
    Ok(Opened { edge, last_at })
}

/// For operators who find that acknowledged entries are missing.
pub(super) const AFTER_LOSS: &str = "do not delete anything: the missing entries may still be readable from the \
     files by hand; `pilot restore` continues from a backup, or with --accept-loss from what is left";

/// Before SQLite reads the log, and drops what it cannot read.
pub(super) fn refuse_damaged_log(path: &Path) -> Result<()> {
    let unreadable = |error| StoreError::DiskFailed(format!("{}: {error}", wal::beside(path).display()));
    match wal::damage(path).map_err(unreadable)? {
        None => Ok(()),
        Some(what) => Err(StoreError::Damaged(format!("{}: {what}; {AFTER_LOSS}", path.display()))),
    }
}

/// What was acknowledged and is not there, in words.
pub(super) fn lost(connection: &Connection, edge: &Edge, head: Option<Head>) -> Result<Option<String>> {
    let Some(Head { size, root }) = head.filter(|head| head.size > 0) else { return Ok(None) };
    if edge.size() < size {
        let missing = size - edge.size();
        return Ok(Some(format!(
            "{size} entries were acknowledged, but only {} exist: the last {missing} are missing, because the \
             write-ahead log is damaged or gone, or because the database that crashed was replaced by another one",
            edge.size()
        )));
    }
    let then = Tree::new(connection, edge).edge_at(size)?;
    Ok((then.root() != root).then(|| format!("the first {size} entries are not those that were acknowledged")))
}

fn last_entry(connection: &Connection, index: u64) -> Result<Entry> {
    let stored = read::entries(connection, index, 1)?;
    let entry = stored.first().and_then(|stored| serde_json::from_slice::<Entry>(&stored.bytes).ok());
    entry
        .filter(|entry| entry.index == index)
        .ok_or_else(|| damaged(&format!("entry {index}, the last one, cannot be read")))
}

fn damaged(what: &str) -> StoreError {
    StoreError::Damaged(format!("{what}; run `pilot log fsck`, and restore from a backup"))
}

pub(super) fn load_edge(connection: &Connection, size: u64) -> Result<Edge> {
    let width = TILE_WIDTH as u64;
    let mut levels = Vec::new();
    let (mut level, mut row_size) = (0_u8, size);
    while row_size > 0 {
        let full = row_size / width;
        check_tiles(connection, level, full)?;
        levels.push(match level {
            0 => read::leaves(connection, full * width, row_size - full * width).map_err(|error| match error {
                StoreError::Damaged(what) => damaged(&what),
                other => other,
            })?,
            _ => (full * width..row_size).map(|at| tile_root(connection, level - 1, at)).collect::<Result<_>>()?,
        });
        (level, row_size) = (level + 1, full);
    }
    Ok(Edge::new(size, levels))
}

fn tile_root(connection: &Connection, level: u8, index: u64) -> Result<Hash> {
    let tile = read::tile(connection, level, index)?;
    tile.map(|hashes| root_of(&hashes)).ok_or_else(|| damaged(&format!("tile {level}/{index} is missing")))
}

/// The tiles of a level must be exactly those the number of entries calls for.
fn check_tiles(connection: &Connection, level: u8, expected: u64) -> Result<()> {
    let last: Option<i64> = connection
        .query_row("SELECT max(idx) FROM tile WHERE level = ?1", [level], |row| row.get(0))
        .map_err(|error| read::failed(&error))?;
    let found = last.map_or(0, |last| u64::try_from(last).unwrap_or(0) + 1);
    if found == expected {
        return Ok(());
    }
    Err(damaged(&format!("level {level} of the tree has {found} tiles, but the entries require {expected}")))
}
