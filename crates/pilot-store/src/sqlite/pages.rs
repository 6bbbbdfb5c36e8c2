//! A ledger in a file, read table by table to be copied into another engine.

use std::fs::File;
use std::path::Path;

use pilot_core::time::Time;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params_from_iter, types};

use super::failure::failed;
use super::head::HEAD_FACT;
use super::lock::{Lock, lock};
use super::schema::{CREATED_ENTRY_SINCE, OLDEST_SCHEMA_VERSION, SCHEMA_VERSION};
use super::{connection, opening, read};
use crate::archive::Head;
use crate::tables::{FACT, ITEM, PAGE_BYTES_MAX, Row, Table, Value, bytes_of};
use crate::{Result, StoreError};

/// An intact ledger that no service can open for as long as this lives.
pub(crate) struct Pages {
    connection: Connection,
    has_created_entry: bool,
    head: Head,
    last_at: Time,
    _lock: Lock,
}

impl Pages {
    pub(crate) fn open(path: &Path) -> Result<Pages> {
        // Locking creates a file, which must not appear next to a ledger that is not there.
        let unreadable = |error| StoreError::Unavailable(format!("{}: cannot be read: {error}", path.display()));
        File::open(path).map_err(unreadable)?;
        let lock = lock(path)?;
        opening::refuse_damaged_log(path)?;
        let connection = connection::open_alone(path)?;
        connection.execute_batch("BEGIN").map_err(|error| failed(&error))?;
        let version = check_version(&connection, path)?;
        let opened = opening::whole(&connection, path)?;
        Ok(Pages {
            connection,
            has_created_entry: version >= CREATED_ENTRY_SINCE,
            head: Head { size: opened.edge.size(), root: opened.edge.root() },
            last_at: opened.last_at,
            _lock: lock,
        })
    }

    pub(crate) fn head(&self) -> Head {
        self.head
    }

    pub(crate) fn last_at(&self) -> Time {
        self.last_at
    }

    pub(crate) fn fact(&self, name: &str) -> Result<Option<Vec<u8>>> {
        read::fact(&self.connection, name)
    }

    /// How many rows there are to copy.
    pub(crate) fn count(&self, table: &Table) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {}{}", table.name, without_own(table, "WHERE"));
        read::counted(self.connection.query_row(&sql, [], |row| row.get(0)).map_err(|error| failed(&error))?)
    }

    /// The rows after a key, in order. In a file of an older version, what created an item is NULL.
    pub(crate) fn page(&self, table: &Table, after: Option<&Row>) -> Result<Vec<Row>> {
        let names = if table.is(&ITEM) && !self.has_created_entry {
            table.names().replace("created_entry", "NULL")
        } else {
            table.names()
        };
        let key = table.key_list("", "");
        let marks = vec!["?"; table.key].join(", ");
        let after_key = if after.is_some() { format!("({key}) > ({marks})") } else { "TRUE".to_owned() };
        let own = without_own(table, "AND");
        let sql =
            format!("SELECT {names} FROM {} WHERE {after_key}{own} ORDER BY {key} LIMIT {}", table.name, table.page);
        let mut statement = self.connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
        let values = after.into_iter().flatten().map(stored);
        let mut rows = statement.query(params_from_iter(values)).map_err(|error| failed(&error))?;
        let (mut page, mut bytes) = (Vec::new(), 0);
        while bytes < PAGE_BYTES_MAX
            && let Some(row) = rows.next().map_err(|error| failed(&error))?
        {
            let row = (0..table.columns.len()).map(|column| value(row.get_ref(column)));
            let row = row.collect::<rusqlite::Result<Row>>().map_err(|error| failed(&error))?;
            bytes += bytes_of(&row);
            page.push(row);
        }
        Ok(page)
    }
}

/// This engine's own fact stays where it is.
fn without_own(table: &Table, word: &str) -> String {
    if table.is(&FACT) { format!(" {word} name <> '{HEAD_FACT}'") } else { String::new() }
}

fn check_version(connection: &Connection, path: &Path) -> Result<i64> {
    let found: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(|error| failed(&error))?;
    match found {
        OLDEST_SCHEMA_VERSION..=SCHEMA_VERSION => Ok(found),
        0 => Err(StoreError::Refused(format!(
            "{}: is not a ledger, or is a copy that was never finished",
            path.display()
        ))),
        _ => Err(StoreError::Refused(format!(
            "{}: was written by a newer version of pilot (schema {found}); use that version",
            path.display()
        ))),
    }
}

pub(super) fn stored(value: &Value) -> types::Value {
    match value {
        Value::Null => types::Value::Null,
        Value::Number(number) => types::Value::Integer(*number),
        Value::Text(text) => types::Value::Text(text.clone()),
        Value::Bytes(bytes) => types::Value::Blob(bytes.clone()),
    }
}

fn value(value: rusqlite::Result<ValueRef<'_>>) -> rusqlite::Result<Value> {
    match value? {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) => Ok(Value::Number(number)),
        text @ ValueRef::Text(_) => Ok(Value::Text(text.as_str()?.to_owned())),
        ValueRef::Blob(bytes) => Ok(Value::Bytes(bytes.to_owned())),
        ValueRef::Real(_) => Err(types::FromSqlError::InvalidType.into()),
    }
}
