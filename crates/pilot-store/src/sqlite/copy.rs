//! Copies of the database: made while a service may be writing, and read without one.

use std::path::Path;

use pilot_evidence::merkle::Hash;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{connection, failure, opening, read};
use crate::tree::Tree;
use crate::{Result, StoreError};

/// Copies the database as it is at one moment into a new file, readable only by its owner and on disk when this
/// returns.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let unwritten = |error: &dyn std::fmt::Display| {
        StoreError::Unavailable(format!("{}: the copy cannot be written: {error}", to.display()))
    };
    let source = connection::open_alone(from)?;
    connection::make_private(to).map_err(|error| unwritten(&error))?;
    let mut target = Connection::open(to).map_err(|error| unwritten(&error))?;
    let backup = Backup::new(&source, &mut target).map_err(|error| unwritten(&error))?;
    // All pages in one step are one snapshot; in several steps, every commit of the service would restart the copy.
    match backup.step(-1).map_err(|error| unwritten(&error))? {
        StepResult::Done => {}
        other => return Err(unwritten(&format!("{other:?}"))),
    }
    drop(backup);
    // One file, without a separate log that could be left behind.
    target.pragma_update(None, "journal_mode", "DELETE").map_err(|error| unwritten(&error))?;
    target.close().map_err(|(_, error)| unwritten(&error))?;
    std::fs::File::open(to).and_then(|file| file.sync_all()).map_err(|error| unwritten(&error))
}

/// The root of the tree at a size, computed from what is stored; `None` if there are fewer entries.
pub fn root_at(path: &Path, size: u64) -> Result<Option<Hash>> {
    let connection = connection::open_alone(path)?;
    let last: Option<i64> = connection
        .query_row("SELECT max(idx) FROM entry", [], |row| row.get(0))
        .map_err(|error| failure::failed(&error))?;
    let entries = read::size_after(last)?;
    if entries < size {
        return Ok(None);
    }
    let head = opening::load_edge(&connection, entries)?;
    Ok(Some(Tree::new(read::Stored(&connection), &head).edge_at(size)?.root()))
}

/// One stored fact, read without a service.
pub fn fact_in(path: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    read::fact(&connection::open_alone(path)?, name)
}

/// Every fact whose name begins with this prefix, read without a service.
pub fn facts_in(path: &Path, beginning: &str) -> Result<Vec<(String, Vec<u8>)>> {
    read::facts(&connection::open_alone(path)?, beginning)
}
