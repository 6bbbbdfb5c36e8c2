//! The statements that the writing thread runs for every write. Each is prepared when it is first needed, and kept as
//! long as the connection.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Params, Statement, ToSql};

use super::failure;
use crate::{Result, StoreError};

pub(super) struct Prepared<'c> {
    text: &'static str,
    statement: Option<Statement<'c>>,
}

pub(super) struct Statements<'c> {
    pub(super) begin: Prepared<'c>,
    pub(super) commit: Prepared<'c>,
    pub(super) entry: Prepared<'c>,
    pub(super) document: Prepared<'c>,
    pub(super) tile: Prepared<'c>,
    pub(super) fact: Prepared<'c>,
    pub(super) forgotten: Prepared<'c>,
    pub(super) key: Prepared<'c>,
    pub(super) new_item: Prepared<'c>,
    /// Sets only what almost every move changes: SQLite looks up every named column in its indices, even if the value
    /// stays the same.
    pub(super) moved_item: Prepared<'c>,
    pub(super) changed_item: Prepared<'c>,
}

impl Default for Statements<'_> {
    fn default() -> Self {
        let prepared = |text| Prepared { text, statement: None };
        Statements {
            begin: prepared("BEGIN IMMEDIATE"),
            commit: prepared("COMMIT"),
            entry: prepared("INSERT INTO entry (idx, prev, data) VALUES (?1, ?2, ?3)"),
            document: prepared("INSERT INTO document (entry, kind, data) VALUES (?1, ?2, ?3)"),
            tile: prepared("INSERT INTO tile (level, idx, hashes) VALUES (?1, ?2, ?3)"),
            fact: prepared(
                "INSERT INTO fact (name, value) VALUES (?1, ?2) \
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            ),
            forgotten: prepared("DELETE FROM fact WHERE name = ?1"),
            // Replaces only a key that is older than promised.
            key: prepared("INSERT OR REPLACE INTO idempotency (scope, body, answer, at) VALUES (?1, ?2, ?3, ?4)"),
            new_item: prepared(
                "INSERT INTO item (id, version, state, workflow, created_by, title, open, waits_for, due_at, \
                 created_entry, last_entry, content_entry, data) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12)",
            ),
            // Compare-and-swap: the row must still be the one that was decided on.
            moved_item: prepared(
                "UPDATE item SET version = ?2, state = ?3, waits_for = ?4, due_at = ?5, last_entry = ?6, data = ?7 \
                 WHERE id = ?1 AND version = ?8 AND last_entry = ?9",
            ),
            changed_item: prepared(
                "UPDATE item SET version = ?2, state = ?3, title = ?4, open = ?5, waits_for = ?6, due_at = ?7, \
                 last_entry = ?8, content_entry = ?9, data = ?10 WHERE id = ?1 AND version = ?11 AND last_entry = ?12",
            ),
        }
    }
}

impl<'c> Prepared<'c> {
    /// Returns how many rows it changed.
    pub(super) fn execute(&mut self, connection: &'c Connection, values: impl Params) -> Result<usize> {
        let statement = match &mut self.statement {
            Some(statement) => statement,
            None => self.statement.insert(connection.prepare(self.text).map_err(|error| failure::failed(&error))?),
        };
        statement.execute(values).map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => {
                StoreError::Damaged(format!("the ledger would contradict itself: {error}"))
            }
            _ => failure::failed(&error),
        })
    }

    /// Changes the row that was decided on. Nobody else writes to this engine, so a row that has changed since is
    /// damage; deciding again on top of it would put the damage into the ledger permanently.
    pub(super) fn swap(&mut self, connection: &'c Connection, values: impl Params) -> Result<()> {
        match self.execute(connection, values)? {
            1 => Ok(()),
            _ => Err(StoreError::Damaged("the stored item is not the one that was decided on".into())),
        }
    }

    /// For statements that must change exactly one row.
    pub(super) fn run(&mut self, connection: &'c Connection, values: impl Params) -> Result<()> {
        match self.execute(connection, values)? {
            1 => Ok(()),
            _ => Err(StoreError::Damaged("a row that was to be written is not there".into())),
        }
    }
}

/// JSON that was just written: stored as text, although held as bytes.
pub(super) struct TextBytes<'a>(pub(super) &'a [u8]);

impl ToSql for TextBytes<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}
