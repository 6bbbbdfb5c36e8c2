//! The tables that every engine has, and the columns that are the same in all of them: what a copy from one engine to
//! another consists of. Columns that only one engine has are computed by that engine.

use crate::{Result, StoreError};

/// How a column's values are stored where types are strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Big,
    Int,
    Small,
    Flag,
    Text,
    Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

pub(crate) type Row = Vec<Value>;

pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// For people who watch the progress.
    pub(crate) step: &'static str,
    /// The key comes first.
    pub(crate) columns: &'static [(&'static str, Kind)],
    /// The number of columns of the key.
    pub(crate) key: usize,
    /// How many rows are in memory at a time.
    pub(crate) page: usize,
}

/// A page has no further row once it has this many bytes.
pub(crate) const PAGE_BYTES_MAX: usize = 4 << 20;

use Kind::{Big, Bytes, Flag, Int, Small, Text};

pub(crate) const ENTRY: Table =
    Table { name: "entry", step: "entries", columns: &[("idx", Big), ("data", Bytes)], key: 1, page: 2_048 };

pub(crate) const ITEM: Table = Table {
    name: "item",
    step: "items",
    columns: &[
        ("id", Bytes),
        ("created_entry", Big),
        ("version", Big),
        ("state", Text),
        ("workflow", Text),
        ("created_by", Text),
        ("title", Text),
        ("open", Flag),
        ("waits_for", Int),
        ("due_at", Big),
        ("last_entry", Big),
        ("content_entry", Big),
        ("data", Text),
    ],
    key: 1,
    page: 4_096,
};

pub(crate) const FACT: Table =
    Table { name: "fact", step: "facts", columns: &[("name", Text), ("value", Bytes)], key: 1, page: 4_096 };

/// In the order in which they are copied. What an engine computes for the items follows from the entries.
pub(crate) const TABLES: [Table; 7] = [
    ENTRY,
    Table {
        name: "document",
        step: "documents",
        columns: &[("entry", Big), ("kind", Small), ("data", Bytes)],
        key: 2,
        page: 256,
    },
    Table {
        name: "tile",
        step: "tiles",
        columns: &[("level", Small), ("idx", Big), ("hashes", Bytes)],
        key: 2,
        page: 512,
    },
    ITEM,
    Table {
        name: "idempotency",
        step: "answers",
        columns: &[("scope", Bytes), ("body", Bytes), ("answer", Bytes), ("at", Big)],
        key: 1,
        page: 4_096,
    },
    FACT,
    Table { name: "definition", step: "definitions", columns: &[("digest", Text), ("text", Text)], key: 1, page: 256 },
];

impl Table {
    pub(crate) fn is(&self, other: &Table) -> bool {
        self.name == other.name
    }

    /// The names of the columns, as in a list of SQL.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    pub(crate) fn key_columns(&self) -> &'static [(&'static str, Kind)] {
        self.columns.get(..self.key).unwrap_or_default()
    }

    /// Names the columns of the key, each with something before and after it.
    pub(crate) fn key_list(&self, before: &str, after: &str) -> String {
        let names: Vec<_> = self.key_columns().iter().map(|(name, _)| format!("{before}{name}{after}")).collect();
        names.join(", ")
    }

    pub(crate) fn key_of(&self, row: &Row) -> Row {
        row.iter().take(self.key).cloned().collect()
    }
}

impl Value {
    pub(crate) fn bytes_len(&self) -> usize {
        match self {
            Value::Null => 0,
            Value::Number(_) => 8,
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
        }
    }

    pub(crate) fn number(&self) -> Result<i64> {
        match self {
            Value::Number(number) => Ok(*number),
            _ => Err(StoreError::Damaged("a stored number is not one".into())),
        }
    }

    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(StoreError::Damaged("stored bytes are not bytes".into())),
        }
    }
}

pub(crate) fn bytes_of(row: &Row) -> usize {
    row.iter().map(Value::bytes_len).sum()
}
