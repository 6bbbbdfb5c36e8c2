//! Connections to the file: settings, version, schema.

use std::path::Path;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::failure::is_of_the_disk;
use super::schema::{APPLICATION_ID, OLDEST_SCHEMA_VERSION, SCHEMA, SCHEMA_VERSION};
use super::thresholds::Thresholds;
use super::wal;
use crate::{Result, StoreError};

/// Older versions can corrupt a database in WAL mode (the WAL-reset bug, fixed in 3.51.3).
const VERSION_MIN: i32 = 3_051_003;
/// The inner pages of a ledger of fifty million entries: reading a row of it then costs little more than one of a small
/// ledger. Memory is only taken for pages that were read.
const READER_CACHE_KIB: u32 = 16_384;
/// Characters that would end the path in a file URI, or begin an escape.
const NOT_OF_A_PATH: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#');

/// The tables are those of the file's own version: only a start upgrades them.
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
    keep_plans(&connection).map_err(|error| failed(path, &error))?;
    let kept_bytes = Thresholds::at(path).kept_bytes();
    // FULL: a commit is on disk when it returns. No automatic checkpoints: the writer decides when the log is copied.
    let settings = format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; \
         PRAGMA journal_size_limit = {kept_bytes}; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY; \
         PRAGMA trusted_schema = OFF;"
    );
    connection.execute_batch(&settings).map_err(|error| failed(path, &error))?;
    connection.set_prepared_statement_cache_capacity(64);
    create_tables(&connection, path)?;
    Ok(connection)
}

/// When the last connection closes, SQLite by default copies the log into the database and deletes it. After a failed
/// sync that would destroy the only good copy: the log may still have what the database has lost. So we copy it
/// ourselves, or not at all.
pub(super) fn keep_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// A plan then depends on the text of a statement only. Otherwise values that might make a partial index usable are part
/// of it, and a statement with such a value is parsed and planned again each time it comes from the cache: for an item
/// that takes longer than reading it.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Closes the connection to a file whose log was copied completely, and lets SQLite delete the log. The next start
/// works with or without it.
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

/// For reading where there may be no service, and perhaps no permission to write: even for reading, SQLite wants to
/// create a file next to the database. On a read-only file system it does not need to, because nothing can change.
pub(super) fn open_alone(path: &Path) -> Result<Connection> {
    let opened_to_write = std::fs::OpenOptions::new().write(true).open(path);
    let is_read_only = opened_to_write.is_err_and(|error| error.kind() == std::io::ErrorKind::ReadOnlyFilesystem);
    let Some(name) = path.to_str().filter(|_| is_read_only) else { return open_reader(path) };
    if std::fs::metadata(wal::beside(path)).is_ok_and(|log| log.len() > 0) {
        let remedy = "copy it together with its -wal file to a writable place, and use the copy";
        return Err(StoreError::Unavailable(format!(
            "{name}: is on a read-only file system, and its last entries are in the -wal file next to it; {remedy}"
        )));
    }
    let encoded = utf8_percent_encode(name, NOT_OF_A_PATH);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("file:{encoded}?immutable=1"), flags);
    set_up_reader(connection.map_err(|error| failed(path, &error))?, path)
}

fn set_up_reader(connection: Connection, path: &Path) -> Result<Connection> {
    keep_log(&connection).map_err(|error| failed(path, &error))?;
    keep_plans(&connection).map_err(|error| failed(path, &error))?;
    let settings = format!("PRAGMA cache_size = -{READER_CACHE_KIB}; PRAGMA query_only = ON;");
    connection.execute_batch(&settings).map_err(|error| failed(path, &error))?;
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
        Some(ErrorCode::SystemIoFailure) if !is_of_the_disk(error) => StoreError::Unavailable(format!(
            "{path}: the index of its write-ahead log cannot be created ({error}); if the disk is full, free some space"
        )),
        Some(ErrorCode::DiskFull) => StoreError::Full(format!("{path}: the disk is full; free some space")),
        _ => StoreError::Unavailable(format!("{path}: {error}")),
    }
}

/// Created before SQLite does it, because SQLite would let others read it; its companion files inherit the mode.
pub(super) fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

/// In a new file. One that belongs to a newer version, or to another program, is refused.
fn create_tables(connection: &Connection, path: &Path) -> Result<()> {
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
        OLDEST_SCHEMA_VERSION..=SCHEMA_VERSION => Ok(()),
        found => Err(StoreError::Refused(format!(
            "{}: was written by a newer version of pilot (schema {found}, this program supports {SCHEMA_VERSION}); use that version",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{OptionalExtension as _, StatementStatus};

    use super::*;
    use crate::sqlite::read::ITEM;

    #[test]
    fn a_statement_is_not_planned_again_for_another_value() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pilot.db");
        let writer = open_writer(&path).unwrap();
        for connection in [writer, open_reader(&path).unwrap()] {
            let sql = format!("{ITEM} WHERE i.id = ?1");
            for number in 0..3_u8 {
                // A statement that goes back to the cache forgets its values.
                let mut statement = connection.prepare_cached(&sql).unwrap();
                statement.query_row([[number; 16]], |_| Ok(())).optional().unwrap();
            }
            let statement = connection.prepare_cached(&sql).unwrap();
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        }
    }
}
