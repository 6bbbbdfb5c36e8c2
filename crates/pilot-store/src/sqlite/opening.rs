//! Checks that the store is intact when it is opened: rebuilds the tree's right edge, compares it, and looks for what
//! was acknowledged.

use std::path::Path;

use pilot_core::entry::{Entry, EntryError};
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash, root_of};
use pilot_evidence::tile::TILE_WIDTH;
use rusqlite::Connection;

use super::failure::failed;
use super::head::{self, HEAD_FACT, head_bytes};
use super::{read, wal};
use crate::archive::Head;
use crate::tree::Tree;
use crate::{Result, StoreError};

/// What the writing thread starts from.
pub(super) struct Opened {
    pub(super) edge: Edge,
    pub(super) last_at: Time,
}

/// What is stored, if nothing that was acknowledged is missing.
pub(super) fn whole(connection: &Connection, path: &Path) -> Result<Opened> {
    let opened = load(connection)?;
    match lost(connection, &opened.edge, head::read(path)?)? {
        None => Ok(opened),
        Some(lost) => Err(StoreError::Damaged(format!("{lost}; {AFTER_LOSS}"))),
    }
}

/// Rebuilds the tree's right edge from what is stored, checking that the newest part of the tree is intact.
pub(super) fn load(connection: &Connection) -> Result<Opened> {
    let last: Option<i64> =
        connection.query_row("SELECT max(idx) FROM entry", [], |row| row.get(0)).map_err(|error| failed(&error))?;
    let size = read::size_after(last)?;
    let edge = load_edge(connection, size)?;
    let head = read::fact(connection, HEAD_FACT)?;
    if size > 0 && head.as_deref() != Some(&head_bytes(&edge)[..]) || size == 0 && head.is_some() {
        return Err(damaged("the entries do not match the head stored with them"));
    }
    let last_at = match size.checked_sub(1) {
        None => Time::EPOCH,
        Some(last) => last_entry(connection, last)?.at,
    };
    Ok(Opened { edge, last_at })
}

/// For operators who find acknowledged entries missing.
const AFTER_LOSS: &str = "do not delete anything: the missing entries may still be readable from the \
     files by hand; `pilot restore` continues from a backup, or with --accept-loss from what is left";

/// Must run before SQLite reads the log, because SQLite drops what it cannot read.
pub(super) fn refuse_damaged_log(path: &Path) -> Result<()> {
    let unreadable = |error| StoreError::DiskFailed(format!("{}: {error}", wal::beside(path).display()));
    match wal::damage(path).map_err(unreadable)? {
        None => Ok(()),
        Some(what) => Err(StoreError::Damaged(format!("{}: {what}; {AFTER_LOSS}", path.display()))),
    }
}

/// Which acknowledged entries are missing, as text.
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
    let then = Tree::new(read::Stored(connection), edge).edge_at(size)?;
    Ok((then.root() != root).then(|| format!("the first {size} entries are not those that were acknowledged")))
}

fn last_entry(connection: &Connection, index: u64) -> Result<Entry> {
    let stored = read::entries(connection, index, 1)?;
    let unreadable = || damaged(&format!("entry {index}, the last one, cannot be read"));
    match Entry::parse(&stored.first().ok_or_else(unreadable)?.bytes) {
        Ok(entry) if entry.index == index => Ok(entry),
        Err(newer @ EntryError::Newer { .. }) => {
            Err(StoreError::Unavailable(format!("entry {index}, the last one: {newer}")))
        }
        Ok(_) | Err(EntryError::Malformed(_)) => Err(unreadable()),
    }
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

/// A level must have exactly the tiles that the number of entries requires.
fn check_tiles(connection: &Connection, level: u8, expected: u64) -> Result<()> {
    let last: Option<i64> = connection
        .query_row("SELECT max(idx) FROM tile WHERE level = ?1", [level], |row| row.get(0))
        .map_err(|error| failed(&error))?;
    let found = read::size_after(last)?;
    if found == expected {
        return Ok(());
    }
    Err(damaged(&format!("level {level} of the tree has {found} tiles, but the entries require {expected}")))
}
