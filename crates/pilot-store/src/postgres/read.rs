//! Reading: each function is one query, on any connection.

use std::ops::Range;
use std::sync::Arc;

use pilot_core::item::{Item, ItemId};
use pilot_core::limits::STORE_PAGE_BYTES_MAX;
use pilot_core::time::Time;
use pilot_evidence::merkle::Hash;
use tokio_postgres::Row;

use super::failure::failed;
use super::group::Placed;
use super::session::Session;
use crate::row::{Columns, from_key, kind_of, to_item, to_key};
use crate::{RangeEnd, Result, ShownItem, Standing, StoreError, StoredDefinition, StoredEntry};

pub(super) const PLACED: &str = "SELECT i.id, i.data, d.data, i.last_entry, i.content_entry, i.open, i.version, \
     i.state, i.workflow, i.created_by, i.title, i.created_entry, i.entries FROM item i \
     LEFT JOIN document d ON d.entry = i.content_entry AND d.kind = 0 WHERE i.id = ANY($1)";

/// The same columns, and a fact.
const SHOWN: &str = "SELECT i.id, i.data, d.data, i.last_entry, i.content_entry, i.open, i.version, \
     i.state, i.workflow, i.created_by, i.title, i.created_entry, i.entries, f.value FROM item i \
     LEFT JOIN document d ON d.entry = i.content_entry AND d.kind = 0 \
     LEFT JOIN fact f ON f.name = $2 WHERE i.id = $1";

/// Indices and versions are never negative; a negative one is damage.
fn index(row: &Row, column: usize) -> Result<u64> {
    let number: i64 = row.try_get(column).map_err(failed)?;
    u64::try_from(number).map_err(|_| StoreError::Damaged(format!("a stored index is {number}")))
}

/// For bounds in queries: nothing is stored beyond what PostgreSQL can count.
pub(super) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A row of [`PLACED`].
pub(super) fn placed(row: &Row) -> Result<Placed> {
    let key: &[u8] = row.try_get(0).map_err(failed)?;
    let text = |column: usize| row.try_get::<_, &str>(column).map_err(failed);
    let columns = Columns {
        data: text(1)?,
        content: row.try_get(2).map_err(failed)?,
        version: index(row, 6)?,
        state: text(7)?,
        workflow: text(8)?,
        created_by: text(9)?,
        title: text(10)?,
    };
    let item = to_item(from_key(key)?, &columns)?;
    let is_open = row.try_get(5).map_err(failed)?;
    Ok(Placed {
        // What follows from the definition is not needed: a write gives it again.
        standing: Standing { item, is_open, waits_for: Vec::new(), due_at: None },
        last_entry: index(row, 3)?,
        content_entry: index(row, 4)?,
        created_entry: index(row, 11)?,
        entries: index(row, 12)?,
    })
}

pub(super) async fn items(session: &Session, keys: &[&[u8]]) -> Result<Vec<Placed>> {
    session.query(PLACED, &[&keys]).await.map_err(failed)?.iter().map(placed).collect()
}

pub(super) async fn item(session: &Session, id: &ItemId) -> Result<Option<Item>> {
    let found = items(session, &[&to_key(id)]).await?;
    Ok(found.into_iter().next().map(|placed| placed.standing.item))
}

pub(super) async fn shown_item(session: &Session, id: &ItemId, fact: &str) -> Result<Option<ShownItem>> {
    let key = to_key(id);
    let Some(row) = session.query_opt(SHOWN, &[&&key[..], &fact]).await.map_err(failed)? else { return Ok(None) };
    let item = Arc::new(placed(&row)?.standing.item);
    Ok(Some(ShownItem { item, content: row.try_get(2).map_err(failed)?, fact: row.try_get(13).map_err(failed)? }))
}

pub(super) async fn newest_entries(
    session: &Session,
    id: &ItemId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<StoredEntry>> {
    let sql = "SELECT idx, data FROM entry WHERE item = $1 \
               AND nth < coalesce((SELECT nth FROM entry WHERE idx = $2 AND item = $1), $3) ORDER BY nth DESC LIMIT $4";
    // An entry of another item leads nowhere; without one, the newest is the first.
    let (key, before, otherwise) = (to_key(id), before.map_or(-1, bound), if before.is_some() { -1 } else { i64::MAX });
    let rows = session.query(sql, &[&&key[..], &before, &otherwise, &count(limit)]).await.map_err(failed)?;
    let read = |row: &Row| {
        let bytes = row.try_get(1).map_err(failed)?;
        Ok(StoredEntry { index: index(row, 0)?, bytes, documents: Vec::new() })
    };
    rows.iter().map(read).collect()
}

pub(super) async fn history(
    session: &Session,
    id: &ItemId,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<StoredEntry>> {
    let sql = "WITH page AS (SELECT idx, data FROM entry WHERE item = $1 AND idx > $2 ORDER BY nth LIMIT $3) \
               SELECT p.idx, p.data, d.kind, d.data FROM page p LEFT JOIN document d ON d.entry = p.idx \
               ORDER BY p.idx, d.kind";
    let (key, after, limit) = (to_key(id), after.map_or(-1, bound), count(limit));
    let rows = session.query(sql, &[&&key[..], &after, &limit]).await.map_err(failed)?;
    with_documents(&rows, usize::MAX)
}

pub(super) async fn places(session: &Session, id: &ItemId) -> Result<Vec<u64>> {
    let key = to_key(id);
    let rows = session.query("SELECT idx FROM entry WHERE item = $1 ORDER BY nth", &[&&key[..]]).await;
    rows.map_err(failed)?.iter().map(|row| index(row, 0)).collect()
}

pub(super) async fn earlier_places(session: &Session, first: u64, entries: &Range<u64>) -> Result<Vec<u64>> {
    let sql = "SELECT p.idx FROM entry e \
               JOIN entry l ON l.item = e.item AND l.nth = e.nth - 1 AND l.idx < $1 \
               JOIN entry p ON p.item = e.item AND p.nth < e.nth \
               WHERE e.idx >= $2 AND e.idx < $3 ORDER BY p.idx";
    let values = [first, entries.start, entries.end].map(bound);
    let rows = session.query(sql, &[&values[0], &values[1], &values[2]]).await.map_err(failed)?;
    rows.iter().map(|row| index(row, 0)).collect()
}

/// An entry fills one row for each of its documents. No further entry is begun once `bytes_max` is reached.
fn with_documents(rows: &[Row], bytes_max: usize) -> Result<Vec<StoredEntry>> {
    let (mut entries, mut bytes): (Vec<StoredEntry>, _) = (Vec::new(), 0);
    for row in rows {
        let place = index(row, 0)?;
        if entries.last().is_none_or(|last| last.index != place) {
            if bytes >= bytes_max {
                break;
            }
            let data: Vec<u8> = row.try_get(1).map_err(failed)?;
            bytes += data.len();
            entries.push(StoredEntry { index: place, bytes: data, documents: Vec::new() });
        }
        let kind: Option<i16> = row.try_get(2).map_err(failed)?;
        let document: Option<Vec<u8>> = row.try_get(3).map_err(failed)?;
        if let (Some(entry), Some(kind), Some(document)) = (entries.last_mut(), kind, document) {
            let unknown = || StoreError::Damaged(format!("entry {place} has a document of the unknown kind {kind}"));
            bytes += document.len();
            entry.documents.push((kind_of(i64::from(kind)).ok_or_else(unknown)?, document));
        }
    }
    Ok(entries)
}

/// Up to `end`: what lies beyond may still be lost.
pub(super) async fn entries(session: &Session, from: u64, limit: usize, end: u64) -> Result<Vec<StoredEntry>> {
    let sql = "SELECT idx, data FROM entry WHERE idx >= $1 AND idx < $2 ORDER BY idx LIMIT $3";
    let rows = session.query(sql, &[&bound(from), &bound(end), &count(limit)]).await.map_err(failed)?;
    rows.iter().map(bare).collect()
}

/// Those that are not about an item: few, however long the ledger is.
pub(super) async fn service_entries(session: &Session, from: u64, until: u64) -> Result<Vec<StoredEntry>> {
    let sql = "SELECT idx, data FROM entry WHERE item IS NULL AND idx >= $1 AND idx < $2 ORDER BY idx";
    let rows = session.query(sql, &[&bound(from), &bound(until)]).await.map_err(failed)?;
    rows.iter().map(bare).collect()
}

/// Without documents.
fn bare(row: &Row) -> Result<StoredEntry> {
    let bytes = row.try_get(1).map_err(failed)?;
    Ok(StoredEntry { index: index(row, 0)?, bytes, documents: Vec::new() })
}

pub(super) async fn whole_entries(session: &Session, from: u64, limit: usize, end: u64) -> Result<Vec<StoredEntry>> {
    // Read in steps, so that a page of long documents does not read far more than it returns.
    const STEP: u64 = 64;
    let sql = "SELECT e.idx, e.data, d.kind, d.data FROM entry e LEFT JOIN document d ON d.entry = e.idx \
               WHERE e.idx >= $1 AND e.idx < $2 ORDER BY e.idx, d.kind";
    let end = end.min(from.saturating_add(limit as u64));
    let (mut entries, mut bytes, mut next) = (Vec::new(), 0, from);
    while next < end && bytes < STORE_PAGE_BYTES_MAX {
        let until = end.min(next.saturating_add(STEP));
        let rows = session.query(sql, &[&bound(next), &bound(until)]).await.map_err(failed)?;
        let read = with_documents(&rows, STORE_PAGE_BYTES_MAX - bytes)?;
        bytes += read.iter().map(bytes_of).sum::<usize>();
        entries.extend(read);
        next = until;
    }
    Ok(entries)
}

fn bytes_of(entry: &StoredEntry) -> usize {
    entry.bytes.len() + entry.documents.iter().map(|(_, document)| document.len()).sum::<usize>()
}

pub(super) async fn whole_entries_at(session: &Session, indices: &[u64]) -> Result<Vec<StoredEntry>> {
    let sql = "SELECT e.idx, e.data, d.kind, d.data FROM unnest($1::bigint[]) WITH ORDINALITY AS w (idx, place) \
               JOIN entry e ON e.idx = w.idx LEFT JOIN document d ON d.entry = e.idx ORDER BY w.place, d.kind";
    let (mut entries, mut bytes) = (Vec::with_capacity(indices.len()), 0);
    for wanted in indices.chunks(64) {
        if bytes >= STORE_PAGE_BYTES_MAX {
            break;
        }
        let numbers: Vec<_> = wanted.iter().copied().map(bound).collect();
        let rows = session.query(sql, &[&numbers]).await.map_err(failed)?;
        let read = with_documents(&rows, STORE_PAGE_BYTES_MAX - bytes)?;
        for (entry, wanted) in read.iter().zip(wanted) {
            if entry.index != *wanted {
                return Err(StoreError::Damaged(format!("entry {wanted} is missing")));
            }
        }
        bytes += read.iter().map(bytes_of).sum::<usize>();
        let is_whole = read.len() == wanted.len();
        entries.extend(read);
        if !is_whole && bytes < STORE_PAGE_BYTES_MAX {
            return Err(StoreError::Damaged("an entry of an item is missing".into()));
        }
    }
    Ok(entries)
}

pub(super) async fn leaves(session: &Session, from: u64, count: u64) -> Result<Vec<Hash>> {
    let sql = "SELECT idx, data FROM entry WHERE idx >= $1 AND idx < $2 ORDER BY idx";
    let rows = session.query(sql, &[&bound(from), &bound(from.saturating_add(count))]).await.map_err(failed)?;
    let mut hashes = Vec::with_capacity(rows.len());
    for (row, expected) in rows.iter().zip(from..) {
        if index(row, 0)? != expected {
            return Err(StoreError::Damaged(format!("entry {expected} is missing")));
        }
        hashes.push(Hash::of_leaf(row.try_get(1).map_err(failed)?));
    }
    if hashes.len() as u64 != count {
        return Err(StoreError::Damaged(format!("entries are missing after index {}", from + hashes.len() as u64)));
    }
    Ok(hashes)
}

pub(super) async fn due(session: &Session, now: Time, limit: usize) -> Result<Vec<ItemId>> {
    let sql = "SELECT id FROM item WHERE wakes_at <= $1 AND due_at <= $1 ORDER BY wakes_at, created_entry LIMIT $2";
    let rows = session.query(sql, &[&now.unix_micros(), &count(limit)]).await.map_err(failed)?;
    rows.iter().map(|row| from_key(row.try_get(0).map_err(failed)?)).collect()
}

/// Only `wakes_at` has an index, and an item wakes up no later than it is due: those that wake up earlier are looked at too.
pub(super) async fn due_within(session: &Session, after: Time, until: Time, limit: usize) -> Result<Vec<ItemId>> {
    let sql = "SELECT id FROM item WHERE wakes_at <= $2 AND due_at > $1 AND due_at <= $2 \
               ORDER BY due_at, created_entry LIMIT $3";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&after.unix_micros(), &until.unix_micros(), &count(limit)];
    let rows = session.query(sql, &values).await.map_err(failed)?;
    rows.iter().map(|row| from_key(row.try_get(0).map_err(failed)?)).collect()
}

pub(super) async fn fact(session: &Session, name: &str) -> Result<Option<Vec<u8>>> {
    let row = session.query_opt("SELECT value FROM fact WHERE name = $1", &[&name]).await.map_err(failed)?;
    row.map(|row| row.try_get(0).map_err(failed)).transpose()
}

pub(super) async fn facts(session: &Session, beginning: &str) -> Result<Vec<(String, Vec<u8>)>> {
    // Names are ASCII, so every name with this prefix sorts below the prefix followed by the highest character.
    let sql = "SELECT name, value FROM fact WHERE name >= $1 AND name < $2 ORDER BY name";
    let above = format!("{beginning}{}", char::MAX);
    let rows = session.query(sql, &[&beginning, &above]).await.map_err(failed)?;
    rows.iter().map(|row| Ok((row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?))).collect()
}

pub(super) async fn facts_in(
    session: &Session,
    names: &Range<String>,
    from: RangeEnd,
    limit: usize,
) -> Result<Vec<(String, Vec<u8>)>> {
    let order = from.order();
    let sql = format!("SELECT name, value FROM fact WHERE name >= $1 AND name < $2 ORDER BY name {order} LIMIT $3");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = session.query(&sql, &[&names.start, &names.end, &limit]).await.map_err(failed)?;
    rows.iter().map(|row| Ok((row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?))).collect()
}

pub(super) async fn definitions(session: &Session) -> Result<Vec<StoredDefinition>> {
    let rows = session.query("SELECT digest, text FROM definition ORDER BY digest", &[]).await.map_err(failed)?;
    let read = |row: &Row| {
        Ok(StoredDefinition { digest: row.try_get(0).map_err(failed)?, text: row.try_get(1).map_err(failed)? })
    };
    rows.iter().map(read).collect()
}
