//! A database that a ledger is copied into: page by page, each in a transaction of its own, so that a copy that was
//! interrupted goes on where it stopped. No service opens the database before all of it is there.

use std::collections::HashMap;
use std::pin::pin;

use pilot_core::item::ItemId;
use pilot_core::time::Time;
use pilot_evidence::merkle::Hash;
use serde::Deserialize;

use super::address::Access;
use super::failure::failed;
use super::native::{Native, natives, read, type_of};
use super::opening;
use super::reserved::{self, CREATE_MARK, DROP_MARK, head_of};
use super::session::Session;
use super::snapshot::{connect_to_any, wait_until_durable};
use crate::archive::Head;
use crate::row::{ItemKey, from_key, to_key};
use crate::tables::{ENTRY, ITEM, Kind, Row, TABLES, Table, Value};
use crate::{Result, StoreError};

mod verify;

const LOCK: &str = "SELECT size, root FROM head WHERE id = 0 FOR UPDATE";
/// The columns that only this engine has.
const OF_ENTRY: [(&str, Kind); 3] = [("item", Kind::Bytes), ("nth", Kind::Big), ("leaf", Kind::Bytes)];
const OF_ITEM: [(&str, Kind); 1] = [("entries", Kind::Big)];

pub(crate) struct Filling {
    session: Session,
    source: Head,
}

/// Which item an entry is about.
#[derive(Deserialize)]
struct About {
    item: Option<ItemId>,
}

fn not_empty(what: &str) -> StoreError {
    StoreError::Refused(format!("{what}; create an empty database and name that one"))
}

impl Filling {
    /// Begins to copy the ledger with this head, or goes on with it. Refused if anything else is in the database; none if
    /// all of it is already there.
    pub(crate) async fn begin(access: &Access, source: Head) -> Result<Option<Filling>> {
        let session = connect_to_any(access).await?;
        opening::check_server(&session).await?;
        opening::ensure_tables(&session).await?;
        // Only this process waits for what it does itself.
        session.run("SET idle_in_transaction_session_timeout = '60s'; BEGIN").await.map_err(failed)?;
        let row = session.query_opt(LOCK, &[]).await.map_err(failed)?;
        let found = head_of(&row.ok_or_else(|| StoreError::Damaged("the head of the ledger is missing".into()))?)?;
        match reserved::unfinished(&session).await? {
            Some(marked) if marked == source && found.size == 0 => {}
            Some(marked) => {
                return Err(not_empty(&format!(
                    "the database has the unfinished copy of another ledger, or of an earlier state of this one \
                     ({} entries, root {}; this one has {}, root {})",
                    marked.size,
                    marked.root.to_base64(),
                    source.size,
                    source.root.to_base64()
                )));
            }
            None if found == source => return Ok(None),
            None if found.size > 0 => {
                return Err(not_empty(&format!(
                    "the database is not empty: it has a ledger of {} entries",
                    found.size
                )));
            }
            None => mark(&session, source).await?,
        }
        session.run("COMMIT").await.map_err(failed)?;
        Ok(Some(Filling { session, source }))
    }

    /// The key of the last row that is there: the copy goes on after it.
    pub(crate) async fn last_key(&self, table: &Table) -> Result<Option<Row>> {
        let (names, down) = (table.key_list("", ""), table.key_list("", " DESC"));
        let sql = format!("SELECT {names} FROM {} ORDER BY {down} LIMIT 1", table.name);
        let Some(row) = self.session.query_opt(&sql, &[]).await.map_err(failed)? else { return Ok(None) };
        let columns = table.key_columns().iter().enumerate();
        columns.map(|(column, (_, kind))| read(&row, column, *kind)).collect::<Result<Row>>().map(Some)
    }

    /// Writes a page in one transaction.
    pub(crate) async fn write(&self, table: &Table, rows: Vec<Row>) -> Result<()> {
        self.begin_page().await?;
        let (rows, own): (_, &[(&str, Kind)]) = if table.is(&ENTRY) {
            (self.with_items(rows).await?, &OF_ENTRY)
        } else if table.is(&ITEM) {
            (self.with_counts(rows).await?, &OF_ITEM)
        } else {
            (rows, &[])
        };
        let columns: Vec<_> = table.columns.iter().chain(own).copied().collect();
        let expected = rows.len() as u64;
        if self.copy(table.name, &columns, rows).await? != expected {
            return Err(StoreError::Unavailable("PostgreSQL did not take all rows of a page".into()));
        }
        self.session.run("COMMIT").await.map_err(failed)
    }

    /// Whatever woke up in the meantime cannot write to the ledger before it is all there.
    async fn begin_page(&self) -> Result<()> {
        self.session.run("BEGIN").await.map_err(failed)?;
        let row = self.session.query_opt(LOCK, &[]).await.map_err(failed)?;
        let size = row.as_ref().map(head_of).transpose()?.map(|head| head.size);
        let marked = reserved::unfinished(&self.session).await?;
        if size == Some(0) && marked == Some(self.source) {
            return Ok(());
        }
        Err(StoreError::Refused("another process writes to the database while the ledger is copied into it".into()))
    }

    async fn copy(&self, table: &str, columns: &[(&str, Kind)], rows: Vec<Row>) -> Result<u64> {
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        let types: Vec<_> = columns.iter().map(|(_, kind)| type_of(*kind)).collect();
        let sql = format!("COPY {table} ({}) FROM STDIN (FORMAT binary)", names.join(", "));
        let mut writer = pin!(self.session.copy_in(&sql, &types).await.map_err(failed)?);
        for row in rows {
            let row = natives(row, columns)?;
            let values: Vec<_> = row.iter().map(Native::to_sql).collect();
            writer.as_mut().write(&values).await.map_err(failed)?;
        }
        writer.finish().await.map_err(failed)
    }

    /// Adds to each entry its item, its number among the entries about it, and its hash.
    async fn with_items(&self, mut rows: Vec<Row>) -> Result<Vec<Row>> {
        let mut about = Vec::with_capacity(rows.len());
        for row in &rows {
            about.push(item_of(row)?);
        }
        let mut keys: Vec<ItemKey> = about.iter().flatten().copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let places = self.places(&keys).await?;
        let mut counts: HashMap<_, _> = places.into_iter().map(|(key, place)| (key, place.count)).collect();
        for (row, item) in rows.iter_mut().zip(about) {
            let leaf = Hash::of_leaf(row.get(1).map_or(Ok(&[][..]), Value::bytes)?);
            match item {
                Some(key) => {
                    let count = counts.entry(key).or_insert(0);
                    *count += 1;
                    row.extend([Value::Bytes(key.to_vec()), Value::Number(*count)]);
                }
                None => row.extend([Value::Null, Value::Null]),
            }
            row.push(Value::Bytes(leaf.0.to_vec()));
        }
        Ok(rows)
    }

    /// Adds to each item the number of entries about it; and which created it, if the row does not say.
    async fn with_counts(&self, mut rows: Vec<Row>) -> Result<Vec<Row>> {
        let key = |row: &Row| -> Result<ItemKey> {
            let bytes = row.first().map_or(Ok(&[][..]), Value::bytes)?;
            bytes.try_into().map_err(|_| StoreError::Damaged("an item's id is not a UUID".into()))
        };
        let keys = rows.iter().map(key).collect::<Result<Vec<_>>>()?;
        let places = self.places(&keys).await?;
        for (row, key) in rows.iter_mut().zip(keys) {
            let place = places.get(&key).filter(|place| place.count > 0);
            let Some(place) = place else {
                let id = from_key(&key)?;
                return Err(source_damaged(&format!("no entry is about item {id}")));
            };
            if let Some(created @ Value::Null) = row.get_mut(1) {
                *created = place.first.map_or(Value::Null, Value::Number);
            }
            row.push(Value::Number(place.count));
        }
        Ok(rows)
    }

    /// What the entries that are there say about these items.
    async fn places(&self, keys: &[ItemKey]) -> Result<HashMap<ItemKey, Place>> {
        let sql = "SELECT k.key, (SELECT max(nth) FROM entry WHERE item = k.key), \
                   (SELECT idx FROM entry WHERE item = k.key AND nth = 1) FROM unnest($1::bytea[]) AS k (key)";
        let asked: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let rows = self.session.query(sql, &[&asked]).await.map_err(failed)?;
        let mut places = HashMap::with_capacity(rows.len());
        for row in &rows {
            let key: &[u8] = row.try_get(0).map_err(failed)?;
            let key = key.try_into().map_err(|_| StoreError::Damaged("an item's id is not a UUID".into()))?;
            let (count, first): (Option<i64>, _) = (row.try_get(1).map_err(failed)?, row.try_get(2).map_err(failed)?);
            places.insert(key, Place { count: count.unwrap_or(0), first });
        }
        Ok(places)
    }

    /// With this the database is a ledger that services may open.
    pub(crate) async fn finish(self, last_at: Time, epoch: u64) -> Result<()> {
        self.session.run("UPDATE item SET wakes_at = due_at WHERE due_at IS NOT NULL").await.map_err(failed)?;
        self.session.run("ANALYZE entry, document, tile, item, idempotency, fact, definition").await.map_err(failed)?;
        self.begin_page().await?;
        let sql = "UPDATE head SET size = $1, root = $2, last_at = $3, epoch = $4 WHERE id = 0";
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (size, root, epoch) = (number(self.source.size), &self.source.root.0[..], number(epoch));
        self.session.execute(sql, &[&size, &root, &last_at.unix_micros(), &epoch]).await.map_err(failed)?;
        self.session.run(DROP_MARK).await.map_err(failed)?;
        self.session.run("COMMIT").await.map_err(failed)?;
        wait_until_durable(&self.session).await
    }
}

struct Place {
    /// How many entries are about it, and the first of them.
    count: i64,
    first: Option<i64>,
}

async fn mark(session: &Session, source: Head) -> Result<()> {
    for table in &TABLES {
        let sql = format!("SELECT 1 FROM {} LIMIT 1", table.name);
        if session.query_opt(&sql, &[]).await.map_err(failed)?.is_some() {
            return Err(not_empty(&format!("the database is not empty: its table {} has rows", table.name)));
        }
    }
    reserved::refuse_running(session).await?;
    session.run(CREATE_MARK).await.map_err(failed)?;
    let sql = "INSERT INTO pilot_transfer (id, size, root) VALUES (0, $1, $2)";
    let size = i64::try_from(source.size).unwrap_or(i64::MAX);
    session.execute(sql, &[&size, &&source.root.0[..]]).await.map_err(failed).map(drop)
}

fn item_of(row: &Row) -> Result<Option<ItemKey>> {
    let index = row.first().map_or(Ok(-1), Value::number)?;
    let bytes = row.get(1).map_or(Ok(&[][..]), Value::bytes)?;
    let about: About = serde_json::from_slice(bytes)
        .map_err(|error| source_damaged(&format!("entry {index} cannot be read ({error})")))?;
    Ok(about.item.as_ref().map(to_key))
}

fn source_damaged(what: &str) -> StoreError {
    StoreError::Damaged(format!("{what}; run `pilot log fsck` on the ledger that is being copied"))
}
