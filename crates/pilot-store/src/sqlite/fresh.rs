//! A new file that a ledger of another engine is copied into. Until it is finished it has no version, and nothing opens
//! it as a ledger.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pilot_evidence::merkle::Edge;
use rusqlite::{Connection, params_from_iter};

use super::beside::directory_of;
use super::head::{HEAD_FACT, head_bytes_of};
use super::pages::stored;
use super::schema::{APPLICATION_ID, SCHEMA, SCHEMA_VERSION};
use super::{connection, read};
use crate::archive::Head;
use crate::tables::{ENTRY, Row, Table};
use crate::{Result, StoreError};

/// How many entries are hashed at a time.
const HASHED: u64 = 4_096;

/// Removed again unless it is finished.
pub(crate) struct FreshFile {
    connection: Option<Connection>,
    path: PathBuf,
    is_finished: bool,
}

impl Drop for FreshFile {
    fn drop(&mut self) {
        if !self.is_finished {
            self.connection = None;
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl FreshFile {
    /// Refused if there is a file of this name.
    pub(crate) fn create(path: &Path) -> Result<FreshFile> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        made.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                StoreError::Refused(format!("{}: already exists; name a new file", path.display()))
            }
            _ => unwritten(path, &error),
        })?;
        let mut file = FreshFile { connection: None, path: path.to_owned(), is_finished: false };
        let connection = Connection::open(path).map_err(|error| unwritten(path, &error))?;
        // Nobody reads it before it is finished, and then all of it is synced.
        let settings = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_size = -32768; \
                        PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF;";
        connection.execute_batch(settings).map_err(|error| unwritten(path, &error))?;
        connection.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA}")).map_err(|error| unwritten(path, &error))?;
        connection.set_prepared_statement_cache_capacity(32);
        file.connection = Some(connection);
        Ok(file)
    }

    /// An entry's row has one value more: the entry before it about the same item.
    pub(crate) fn insert(&self, table: &Table, rows: &[Row]) -> Result<()> {
        let names = if table.is(&ENTRY) { format!("{}, prev", table.names()) } else { table.names() };
        let marks = vec!["?"; names.split(", ").count()].join(", ");
        let sql = format!("INSERT INTO {} ({names}) VALUES ({marks})", table.name);
        let failed = |error: rusqlite::Error| unwritten(&self.path, &error);
        let mut statement = self.connection()?.prepare_cached(&sql).map_err(failed)?;
        for row in rows {
            statement.execute(params_from_iter(row.iter().map(stored))).map_err(failed)?;
        }
        Ok(())
    }

    /// The root over the entries as they are in the file.
    pub(crate) fn root(&self, size: u64) -> Result<Head> {
        let (mut edge, mut full) = (Edge::default(), Vec::new());
        while edge.size() < size {
            for leaf in read::leaves(self.connection()?, edge.size(), HASHED.min(size - edge.size()))? {
                edge.push(leaf, &mut full);
                full.clear();
            }
        }
        Ok(Head { size: edge.size(), root: edge.root() })
    }

    /// With this the file is a ledger, and on disk.
    pub(crate) fn finish(mut self, head: Head) -> Result<()> {
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| unwritten(&path, &error);
        let connection = self.connection.take().ok_or_else(closed)?;
        if head.size > 0 {
            let sql = "INSERT INTO fact (name, value) VALUES (?1, ?2)";
            connection.execute(sql, (HEAD_FACT, head_bytes_of(&head))).map_err(failed)?;
        }
        let marks = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT");
        connection.execute_batch(&marks).map_err(failed)?;
        connection::close_carried(connection);
        let synced = File::open(&path).and_then(|file| file.sync_all());
        let synced = synced.and_then(|()| File::open(directory_of(&path))?.sync_all());
        synced.map_err(|error| unwritten(&path, &error))?;
        self.is_finished = true;
        Ok(())
    }

    fn connection(&self) -> Result<&Connection> {
        self.connection.as_ref().ok_or_else(closed)
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the copy is already closed".into())
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("{}: the copy cannot be written: {error}", path.display()))
}
