//! Reading: each function is one query and works on any connection.

use std::ops::Range;
use std::sync::Arc;

use pilot_core::decide::OpenItems;
use pilot_core::entry::Entry;
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::STORE_PAGE_BYTES_MAX;
use pilot_core::time::Time;
use pilot_evidence::merkle::Hash;
use rusqlite::{Connection, OptionalExtension};

use super::failure::failed;
use crate::row::{Columns, ItemKey, from_key, kind_of, to_item, to_key};
use crate::tree::{Tiles, hashes_of};
use crate::{CountOpen, RangeEnd, Result, ShownItem, StoreError, StoredEntry};

/// Indices and versions are never negative; a negative one is damage.
pub(super) fn index(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number = row.get::<_, i64>(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// A number of rows, or the index after the last one. A negative one is damage.
pub(super) fn counted(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| StoreError::Damaged(format!("a number of rows is {number}")))
}

/// The number of rows if this is the last index.
pub(super) fn size_after(last: Option<i64>) -> Result<u64> {
    last.map_or(Ok(0), |last| counted(last).map(|last| last + 1))
}

/// For bounds in queries: nothing is stored beyond what SQLite can count.
pub(super) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) const ITEM: &str = "SELECT i.id, i.data, d.data, i.last_entry, i.content_entry, i.open, i.version, i.state, \
     i.workflow, i.created_by, i.title FROM item i \
     LEFT JOIN document d ON d.entry = i.content_entry AND d.kind = 0";

/// An item with the ledger indices that its row points to.
pub(super) struct Placed {
    pub(super) key: ItemKey,
    pub(super) item: Item,
    pub(super) last_entry: u64,
    pub(super) content_entry: u64,
    pub(super) is_open: bool,
    /// How many entries there are about it, once counted.
    pub(super) entries: Option<usize>,
}

pub(super) fn placed(connection: &Connection, id: &ItemId) -> Result<Option<Placed>> {
    let sql = format!("{ITEM} WHERE i.id = ?1");
    let mut statement = connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
    let row = statement.query_row([to_key(id)], read_item).optional().map_err(|error| failed(&error))?;
    row.transpose()
}

pub(super) fn item(connection: &Connection, id: &ItemId) -> Result<Option<Item>> {
    Ok(placed(connection, id)?.map(|placed| placed.item))
}

/// The item that an entry created. Older files cannot be asked this.
pub(super) fn item_created(connection: &Connection, entry: u64) -> Result<Option<Item>> {
    let sql = format!("{ITEM} WHERE i.created_entry = ?1");
    let mut statement = connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
    let row = statement.query_row([bound(entry)], read_item).optional().map_err(|error| failed(&error))?;
    Ok(row.transpose()?.map(|placed| placed.item))
}

/// An item with its content and a fact, as of one moment: a statement sees nothing else.
pub(super) fn shown_item(connection: &Connection, id: &ItemId, name: &str) -> Result<Option<ShownItem>> {
    let sql = format!("SELECT shown.*, (SELECT value FROM fact WHERE name = ?2) FROM ({ITEM} WHERE i.id = ?1) shown");
    let mut statement = connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
    let read = |row: &rusqlite::Row<'_>| Ok((read_item(row)?, row.get(2)?, row.get(11)?));
    let row = statement.query_row((to_key(id), name), read).optional().map_err(|error| failed(&error))?;
    let Some((placed, content, fact)) = row else { return Ok(None) };
    Ok(Some(ShownItem { item: Arc::new(placed?.item), content, fact }))
}

/// Entries about an item before an index, the newest first. The chain is followed from the entry it is asked for, or
/// from the item's last.
pub(super) fn newest_entries(
    connection: &Connection,
    id: &ItemId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<StoredEntry>> {
    // An entry of another item leads to nothing that is this item's: the caller gives one that it was given.
    let first = if before.is_some() { "SELECT prev FROM entry WHERE idx = ?2 AND prev < idx" } else { LAST_ENTRY };
    let sql = format!(
        "WITH RECURSIVE chain (idx) AS ({first} \
           UNION ALL SELECT e.prev FROM entry e JOIN chain c ON e.idx = c.idx WHERE e.prev < e.idx LIMIT ?3) \
         SELECT e.idx, e.data FROM chain c JOIN entry e ON e.idx = c.idx ORDER BY e.idx DESC"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
    let bounds = (to_key(id), before.map_or(-1, bound), bound(limit as u64));
    let read =
        |row: &rusqlite::Row<'_>| Ok(StoredEntry { index: index(row, 0)?, bytes: row.get(1)?, documents: Vec::new() });
    let rows = statement.query_map(bounds, read).map_err(|error| failed(&error))?;
    rows.collect::<rusqlite::Result<_>>().map_err(|error| failed(&error))
}

/// Names every parameter, so that it takes the same ones as the other beginning of a chain.
const LAST_ENTRY: &str = "SELECT last_entry FROM item WHERE id = ?1 AND ?2 < 0";

fn read_item(row: &rusqlite::Row<'_>) -> rusqlite::Result<Result<Placed>> {
    let key = row.get_ref(0)?.as_blob()?;
    let text = |column| row.get_ref(column).and_then(|value| value.as_str().map_err(Into::into));
    let columns = Columns {
        data: text(1)?,
        content: row.get_ref(2)?.as_blob_or_null()?,
        version: index(row, 6)?,
        state: text(7)?,
        workflow: text(8)?,
        created_by: text(9)?,
        title: text(10)?,
    };
    let (last_entry, content_entry, is_open) = (index(row, 3)?, index(row, 4)?, row.get(5)?);
    let item = from_key(key).and_then(|id| to_item(id, &columns));
    Ok(item.map(|item| Placed { key: to_key(&item.id), item, last_entry, content_entry, is_open, entries: None }))
}

/// Both counts stop where a limit is reached, so that counting costs the same however many there are.
pub(super) fn open_items(connection: &Connection, count: &CountOpen) -> Result<OpenItems> {
    let CountOpen { creator, workflow, max } = count;
    let number = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| {
        let mut statement = connection.prepare_cached(sql)?;
        statement.query_row(parameters, |row| row.get::<_, i64>(0))
    };
    let of_workflow = number(
        "SELECT count(*) FROM (SELECT 1 FROM item WHERE created_by = ?1 AND workflow = ?2 AND open = 1 LIMIT 1)",
        &[&creator.as_str(), workflow],
    );
    let in_all = max.map_or(Ok(0), |max| {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM item WHERE created_by = ?1 AND open = 1 LIMIT ?2)";
        number(sql, &[&creator.as_str(), &max])
    });
    let whole = |count: rusqlite::Result<i64>| {
        let count = counted(count.map_err(|error| failed(&error))?)?;
        Ok::<_, StoreError>(usize::try_from(count).unwrap_or(usize::MAX))
    };
    Ok(OpenItems { of_workflow: whole(of_workflow)?, in_all: whole(in_all)?, max: *max })
}

/// Entries after an index. The chain runs from the newest entry backwards: it is followed only as far as needed, and
/// documents are read only for the entries of the page.
pub(super) fn history(
    connection: &Connection,
    id: &ItemId,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<StoredEntry>> {
    let sql = "WITH RECURSIVE chain (idx) AS ( \
                 SELECT last_entry FROM item WHERE id = ?1 AND last_entry > ?2 \
                 UNION ALL SELECT e.prev FROM entry e JOIN chain c ON e.idx = c.idx \
                   WHERE e.prev < e.idx AND e.prev > ?2), \
               page (idx) AS (SELECT idx FROM chain ORDER BY idx LIMIT ?3) \
               SELECT e.idx, e.data, d.kind, d.data FROM page p JOIN entry e ON e.idx = p.idx \
               LEFT JOIN document d ON d.entry = e.idx ORDER BY e.idx, d.kind";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let after = after.map_or(-1, bound);
    let limit = bound(limit as u64);
    with_documents(statement.query((to_key(id), after, limit)), usize::MAX).map_err(|error| failed(&error))
}

/// How many entries there are about the item whose newest entry is `last_entry`. Stops counting at `most`.
pub(super) fn entries_of(connection: &Connection, last_entry: u64, most: usize) -> Result<usize> {
    let sql = "WITH RECURSIVE chain (idx) AS ( \
                 SELECT ?1 UNION ALL SELECT e.prev FROM entry e JOIN chain c ON e.idx = c.idx WHERE e.prev < e.idx LIMIT ?2) \
               SELECT count(*) FROM chain";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let bounds = [bound(last_entry), bound(most as u64)];
    let count: i64 = statement.query_row(bounds, |row| row.get(0)).map_err(|error| failed(&error))?;
    counted(count).map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}

pub(super) fn places(connection: &Connection, id: &ItemId) -> Result<Vec<u64>> {
    let sql = "WITH RECURSIVE chain (idx) AS ( \
                 SELECT last_entry FROM item WHERE id = ?1 \
                 UNION ALL SELECT e.prev FROM entry e JOIN chain c ON e.idx = c.idx WHERE e.prev < e.idx) \
               SELECT idx FROM chain ORDER BY idx";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let rows = statement.query_map([to_key(id)], |row| index(row, 0)).map_err(|error| failed(&error))?;
    rows.collect::<rusqlite::Result<_>>().map_err(|error| failed(&error))
}

pub(super) fn earlier_places(connection: &Connection, first: u64, entries: &Range<u64>) -> Result<Vec<u64>> {
    let sql = "WITH RECURSIVE chain (idx) AS ( \
                 SELECT prev FROM entry WHERE idx >= ?2 AND idx < ?3 AND prev < ?1 AND prev < idx \
                 UNION ALL SELECT e.prev FROM entry e JOIN chain c ON e.idx = c.idx WHERE e.prev < e.idx) \
               SELECT idx FROM chain ORDER BY idx";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let bounds = [first, entries.start, entries.end].map(bound);
    let rows = statement.query_map(bounds, |row| index(row, 0)).map_err(|error| failed(&error))?;
    rows.collect::<rusqlite::Result<_>>().map_err(|error| failed(&error))
}

/// An entry fills one row for each of its documents. No further entry is begun once `bytes_max` is reached.
fn with_documents(rows: rusqlite::Result<rusqlite::Rows<'_>>, bytes_max: usize) -> rusqlite::Result<Vec<StoredEntry>> {
    let (mut rows, mut entries, mut bytes) = (rows?, Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let is_new = is_new(row, &entries)?;
        if is_new && bytes >= bytes_max {
            break;
        }
        bytes += read_with_document(row, is_new, &mut entries)?;
    }
    Ok(entries)
}

fn is_new(row: &rusqlite::Row<'_>, entries: &[StoredEntry]) -> rusqlite::Result<bool> {
    let index = index(row, 0)?;
    Ok(entries.last().is_none_or(|last| last.index != index))
}

/// Returns how many bytes it read.
fn read_with_document(
    row: &rusqlite::Row<'_>,
    is_new: bool,
    entries: &mut Vec<StoredEntry>,
) -> rusqlite::Result<usize> {
    let mut read = 0;
    if is_new {
        let entry = StoredEntry { index: index(row, 0)?, bytes: row.get(1)?, documents: Vec::new() };
        read += entry.bytes.len();
        entries.push(entry);
    }
    let kind: Option<i64> = row.get(2)?;
    let document: Option<Vec<u8>> = row.get(3)?;
    if let (Some(entry), Some(kind), Some(document)) = (entries.last_mut(), kind, document) {
        let kind = kind_of(kind).ok_or(rusqlite::Error::IntegralValueOutOfRange(2, kind))?;
        read += document.len();
        entry.documents.push((kind, document));
    }
    Ok(read)
}

/// The items to which entries in this range gave other contents, by the entries that created them, the same one perhaps
/// several times. An item that such an entry created is not one of them.
pub(super) fn edited(connection: &Connection, from: u64, until: u64) -> Result<Vec<u64>> {
    let sql = "SELECT e.data FROM document d JOIN entry e ON e.idx = d.entry \
               WHERE d.entry >= ?1 AND d.entry < ?2 AND d.kind = 0 AND e.prev IS NOT NULL";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let mut of_item =
        connection.prepare_cached("SELECT created_entry FROM item WHERE id = ?1").map_err(|error| failed(&error))?;
    let (mut rows, mut edited) =
        (statement.query([bound(from), bound(until)]).map_err(|error| failed(&error))?, Vec::new());
    while let Some(row) = rows.next().map_err(|error| failed(&error))? {
        let bytes = row.get_ref(0).and_then(|value| value.as_blob().map_err(Into::into));
        let entry = Entry::parse(bytes.map_err(|error| failed(&error))?);
        let unreadable =
            |cause: &dyn std::fmt::Display| StoreError::Damaged(format!("an entry cannot be read: {cause}"));
        let id = entry.map_err(|error| unreadable(&error))?.item.ok_or_else(|| unreadable(&"it is about no item"))?;
        let created_entry = of_item.query_row([to_key(&id)], |row| index(row, 0));
        edited.push(created_entry.map_err(|error| failed(&error))?);
    }
    Ok(edited)
}

/// The items whose ids are in a range, by the entries that created them: at most `limit`.
pub(super) fn created_with_ids(connection: &Connection, ids: &(ItemId, ItemId), limit: usize) -> Result<Vec<u64>> {
    let sql = "SELECT created_entry FROM item WHERE id BETWEEN ?1 AND ?2 LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let values = (to_key(&ids.0), to_key(&ids.1), bound(limit as u64));
    let rows = statement.query_map(values, |row| index(row, 0)).map_err(|error| failed(&error))?;
    rows.collect::<rusqlite::Result<_>>().map_err(|error| failed(&error))
}

/// How many entries there are.
pub(super) fn size(connection: &Connection) -> Result<u64> {
    let mut statement = connection.prepare_cached("SELECT max(idx) FROM entry").map_err(|error| failed(&error))?;
    size_after(statement.query_row([], |row| row.get(0)).map_err(|error| failed(&error))?)
}

pub(super) fn entries(connection: &Connection, from: u64, limit: usize) -> Result<Vec<StoredEntry>> {
    let sql = "SELECT idx, data FROM entry WHERE idx >= ?1 ORDER BY idx LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let (from, limit) = (bound(from), bound(limit as u64));
    let read =
        |row: &rusqlite::Row<'_>| Ok(StoredEntry { index: index(row, 0)?, bytes: row.get(1)?, documents: Vec::new() });
    let rows = statement.query_map([from, limit], read).map_err(|error| failed(&error))?;
    rows.collect::<rusqlite::Result<_>>().map_err(|error| failed(&error))
}

pub(super) fn leaves(connection: &Connection, from: u64, count: u64) -> Result<Vec<Hash>> {
    let mut statement = connection
        .prepare_cached("SELECT idx, data FROM entry WHERE idx >= ?1 ORDER BY idx LIMIT ?2")
        .map_err(|error| failed(&error))?;
    let read = |row: &rusqlite::Row<'_>| Ok((index(row, 0)?, Hash::of_leaf(row.get_ref(1)?.as_blob()?)));
    let rows = statement.query_map([bound(from), bound(count)], read).map_err(|error| failed(&error))?;
    let mut hashes = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    for (row, expected) in rows.zip(from..) {
        let (index, hash) = row.map_err(|error| failed(&error))?;
        if index != expected {
            return Err(StoreError::Damaged(format!("entry {expected} is missing")));
        }
        hashes.push(hash);
    }
    if hashes.len() as u64 != count {
        return Err(StoreError::Damaged(format!("entries are missing after index {}", from + hashes.len() as u64)));
    }
    Ok(hashes)
}

pub(super) fn whole_entries(connection: &Connection, from: u64, limit: usize) -> Result<Vec<StoredEntry>> {
    let sql = "SELECT e.idx, e.data, d.kind, d.data FROM entry e LEFT JOIN document d ON d.entry = e.idx \
               WHERE e.idx >= ?1 AND e.idx < ?2 ORDER BY e.idx, d.kind";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let until = bound(from.saturating_add(limit as u64));
    let rows = statement.query([bound(from), until]);
    with_documents(rows, STORE_PAGE_BYTES_MAX).map_err(|error| failed(&error))
}

pub(super) fn whole_entries_at(connection: &Connection, indices: &[u64]) -> Result<Vec<StoredEntry>> {
    let (mut entries, mut bytes) = (Vec::with_capacity(indices.len()), 0);
    for index in indices {
        if bytes >= STORE_PAGE_BYTES_MAX {
            break;
        }
        let found = whole_entries(connection, *index, 1)?.pop();
        let found = found.ok_or_else(|| StoreError::Damaged(format!("entry {index} is missing")))?;
        bytes += found.bytes.len() + found.documents.iter().map(|(_, document)| document.len()).sum::<usize>();
        entries.push(found);
    }
    Ok(entries)
}

pub(super) fn due(connection: &Connection, after: Time, until: Time, limit: usize) -> Result<Vec<ItemId>> {
    let sql = "SELECT id FROM item WHERE due_at > ?1 AND due_at <= ?2 ORDER BY due_at, created_entry LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let limit = bound(limit as u64);
    let rows = statement.query_map([after.unix_micros(), until.unix_micros(), limit], |row| row.get::<_, Vec<u8>>(0));
    let rows = rows.map_err(|error| failed(&error))?;
    rows.map(|key| from_key(&key.map_err(|error| failed(&error))?)).collect()
}

pub(super) fn fact(connection: &Connection, name: &str) -> Result<Option<Vec<u8>>> {
    let mut statement =
        connection.prepare_cached("SELECT value FROM fact WHERE name = ?1").map_err(|error| failed(&error))?;
    statement.query_row([name], |row| row.get(0)).optional().map_err(|error| failed(&error))
}

/// Every fact whose name begins with this prefix, ordered by name.
pub(super) fn facts(connection: &Connection, beginning: &str) -> Result<Vec<(String, Vec<u8>)>> {
    // Names are ASCII, so every name with this prefix sorts below the prefix followed by the highest character.
    let sql = "SELECT name, value FROM fact WHERE name >= ?1 AND name < ?1 || char(1114111) ORDER BY name";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let rows =
        statement.query_map([beginning], |row| Ok((row.get(0)?, row.get(1)?))).map_err(|error| failed(&error))?;
    rows.collect::<rusqlite::Result<_>>().map_err(|error| failed(&error))
}

pub(super) fn facts_in(
    connection: &Connection,
    names: &Range<String>,
    from: RangeEnd,
    limit: usize,
) -> Result<Vec<(String, Vec<u8>)>> {
    let order = from.order();
    let sql = format!("SELECT name, value FROM fact WHERE name >= ?1 AND name < ?2 ORDER BY name {order} LIMIT ?3");
    let mut statement = connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map((&names.start, &names.end, limit), |row| Ok((row.get(0)?, row.get(1)?)));
    rows.and_then(Iterator::collect).map_err(|error| failed(&error))
}

pub(super) fn tile(connection: &Connection, level: u8, index: u64) -> Result<Option<Vec<Hash>>> {
    let sql = "SELECT hashes FROM tile WHERE level = ?1 AND idx = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let key = (level, bound(index));
    let bytes: Option<Vec<u8>> =
        statement.query_row(key, |row| row.get(0)).optional().map_err(|error| failed(&error))?;
    bytes.map(|bytes| hashes_of(level, index, &bytes)).transpose()
}

/// The tiles in the file.
pub(super) struct Stored<'c>(pub(super) &'c Connection);

impl Tiles for Stored<'_> {
    fn full_tile(&mut self, level: u8, index: u64) -> Result<Option<Vec<Hash>>> {
        tile(self.0, level, index)
    }
}
