//! Erases what people wrote about an item that has ended. The entries stay, and so does every proof.
//!
//! Nodes may be running: the end of the ledger is locked first, as for every write. The tables forget at once, and the
//! space is given free afterwards. What the server has written elsewhere stays there until it is recycled: its
//! write-ahead log, archived logs, base backups, and the free space of its files.

use pilot_core::item::ItemId;
use serde_json::Value;

use super::failure::{describe, failed};
use super::session::Session;
use super::snapshot::wait_until_durable;
use crate::look::looks_of;
use crate::row::{ERASED_TITLE, to_key};
use crate::{Result, StoreError};

/// The documents of an item that still have their contents.
const DOCUMENTS: &str = "entry IN (SELECT idx FROM entry WHERE item = $1) AND data IS NOT NULL";

/// How many documents an item has. Refused while the item is open, because decisions still depend on them.
pub(super) async fn erasable(session: &Session, id: &ItemId) -> Result<u64> {
    let key = &to_key(id)[..];
    let row = session.query_opt("SELECT open FROM item WHERE id = $1", &[&key]).await.map_err(failed)?;
    match row.map(|row| row.try_get::<_, bool>(0)).transpose().map_err(failed)? {
        None => Err(StoreError::Refused(format!("there is no item {id}"))),
        Some(true) => Err(StoreError::Refused(format!(
            "item {id} is still open, and decisions depend on what would be erased; withdraw it or let it end first"
        ))),
        Some(false) => {
            let sql = format!("SELECT count(*) FROM document WHERE {DOCUMENTS}");
            let row = session.query_opt(&sql, &[&key]).await.map_err(failed)?;
            let count: i64 = row.map_or(Ok(0), |row| row.try_get(0)).map_err(failed)?;
            Ok(count.unsigned_abs())
        }
    }
}

/// Erases the documents, and whatever else in the tables repeats them.
pub(super) async fn erase(session: &Session, id: &ItemId) -> Result<u64> {
    session.run("BEGIN").await.map_err(failed)?;
    session.query("SELECT 1 FROM head WHERE id = 0 FOR UPDATE", &[]).await.map_err(failed)?;
    erasable(session, id).await?;
    let key = &to_key(id)[..];
    let sql = format!("UPDATE document SET data = NULL WHERE {DOCUMENTS}");
    let documents = session.execute(&sql, &[&key]).await.map_err(failed)?;
    let row = session.query_opt("SELECT data FROM item WHERE id = $1", &[&key]).await.map_err(failed)?;
    let data: String = row.map_or(Ok(String::new()), |row| row.try_get(0)).map_err(failed)?;
    let data = without_title(id, data)?;
    let sql = "UPDATE item SET title = $2, data = $3 WHERE id = $1";
    session.execute(sql, &[&key, &ERASED_TITLE, &data]).await.map_err(failed)?;
    // An answer stored for repetition quotes the item.
    let sql = "DELETE FROM idempotency WHERE position($1 IN answer) > 0";
    session.execute(sql, &[&id.as_str().as_bytes()]).await.map_err(failed)?;
    // Who looked at the content, and when.
    let beginning = looks_of(id);
    let above = format!("{beginning}{}", char::MAX);
    let sql = "DELETE FROM fact WHERE name >= $1 AND name < $2";
    session.execute(sql, &[&beginning, &above]).await.map_err(failed)?;
    session.run("COMMIT").await.map_err(failed)?;
    wait_until_durable(session).await?;
    if let Err(error) = session.run("VACUUM document, item, idempotency, fact").await {
        let cause = describe(&error);
        tracing::warn!(cause, "the space of what was erased was not given free; autovacuum does it later");
    }
    Ok(documents)
}

/// In its first form, a row repeats the title in its data.
fn without_title(id: &ItemId, data: String) -> Result<String> {
    if !data.starts_with('{') {
        return Ok(data);
    }
    let unreadable = |error| StoreError::Damaged(format!("item {id} cannot be read: {error}"));
    let mut row: Value = serde_json::from_str(&data).map_err(unreadable)?;
    if let Some(title) = row.get_mut("title") {
        *title = ERASED_TITLE.into();
    }
    Ok(row.to_string())
}
