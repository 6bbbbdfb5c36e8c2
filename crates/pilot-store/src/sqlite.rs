//! The embedded store: one SQLite file, opened by one process.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};

/// Older versions can corrupt a database in WAL mode (the WAL-reset bug, fixed in 3.51.3).
const VERSION_MIN: i32 = 3_051_003;
/// The number of the schema this program writes. A file with a higher one belongs to a newer program.
const SCHEMA_VERSION: i64 = 1;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("SQLite {0} is linked, but versions before 3.51.3 can corrupt a database; rebuild with the bundled one")]
    OldLibrary(&'static str),
    #[error("{}: was written by a newer version of pilot (schema {found}, this program knows {SCHEMA_VERSION}); use that version", path.display())]
    NewerSchema { path: PathBuf, found: i64 },
    #[error("{}: another process has it open; only one service may use a store", path.display())]
    InUse { path: PathBuf },
    #[error("{}: cannot be used as the store", path.display())]
    Open { path: PathBuf, source: rusqlite::Error },
    #[error("{}: cannot be made", path.display())]
    Make { path: PathBuf, source: std::io::Error },
    #[error("the store does not answer")]
    Unavailable(#[source] rusqlite::Error),
}

/// Made before SQLite does, which would let others read it; its companion files take over the mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

pub struct Sqlite {
    connection: Mutex<Connection>,
}

impl Sqlite {
    pub fn open(path: &Path) -> Result<Sqlite, StoreError> {
        if rusqlite::version_number() < VERSION_MIN {
            return Err(StoreError::OldLibrary(rusqlite::version()));
        }
        let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                StoreError::InUse { path: path.to_owned() }
            }
            _ => StoreError::Open { path: path.to_owned(), source },
        };
        make_private(path).map_err(|source| StoreError::Make { path: path.to_owned(), source })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        // Exclusive: a second process finds out at its start, not in the middle of a write.
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN EXCLUSIVE; COMMIT;").map_err(failed)?;
        let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        match found {
            0 => connection.pragma_update(None, "user_version", SCHEMA_VERSION).map_err(failed)?,
            SCHEMA_VERSION => {}
            _ => return Err(StoreError::NewerSchema { path: path.to_owned(), found }),
        }
        Ok(Sqlite { connection: Mutex::new(connection) })
    }

    /// Whether the store answers at all.
    pub fn check(&self) -> Result<(), StoreError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.query_row("SELECT 1", [], |_| Ok(())).map_err(StoreError::Unavailable)
    }
}
