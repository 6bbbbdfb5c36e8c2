//! Erases what people wrote about an item that has ended. The entries stay, and so does every proof.

use std::path::Path;

use pilot_core::item::ItemId;
use rusqlite::{Connection, OptionalExtension};

use super::log::carry_recovered;
use super::{connection, failure, lock, read, search_index, upgrade};
use crate::look::looks_of;
use crate::row::{ERASED_TITLE, to_key};
use crate::{Result, StoreError};

/// The entries about an item, newest first, as in a history.
const CHAIN: &str = "WITH RECURSIVE chain (idx) AS ( \
     SELECT last_entry FROM item WHERE id = ?1 \
     UNION ALL SELECT e.prev FROM entry e JOIN chain c ON e.idx = c.idx WHERE e.prev < e.idx)";

/// How many documents an item has. Refused while the item is open, because decisions still depend on them.
pub fn erasable(path: &Path, id: &ItemId) -> Result<u64> {
    count(&connection::open_reader(path)?, id)
}

fn count(connection: &Connection, id: &ItemId) -> Result<u64> {
    let failed = |error: rusqlite::Error| failure::failed(&error);
    let is_open =
        connection.query_row("SELECT open FROM item WHERE id = ?1", [to_key(id)], |row| row.get::<_, bool>(0));
    match is_open.optional().map_err(failed)? {
        None => Err(StoreError::Refused(format!("there is no item {id}"))),
        Some(true) => Err(StoreError::Refused(format!(
            "item {id} is still open, and decisions depend on what would be erased; withdraw it or let it end first"
        ))),
        Some(false) => {
            let sql = format!(
                "{CHAIN} SELECT count(*) FROM chain c CROSS JOIN document d ON d.entry = c.idx WHERE d.data IS NOT NULL"
            );
            let count: i64 = connection.query_row(&sql, [to_key(id)], |row| row.get(0)).map_err(failed)?;
            read::counted(count)
        }
    }
}

/// Erases the documents and every other copy of their contents in the file and in those next to it. The bytes are
/// overwritten, not just unlinked.
pub fn erase(path: &Path, id: &ItemId) -> Result<u64> {
    let _lock = lock(path)?;
    let connection = connection::open_writer(path)?;
    let failed = |error: rusqlite::Error| failure::failed(&error);
    let documents = count(&connection, id)?;
    // First: if this is interrupted, the next attempt still finds something to erase, and the next start makes it again.
    search_index::destroy(path).map_err(|error| {
        StoreError::Unavailable(format!("{}: its search index cannot be erased: {error}", path.display()))
    })?;
    upgrade::discard_copy(path)?;
    connection.execute_batch("PRAGMA secure_delete = ON; BEGIN IMMEDIATE").map_err(failed)?;
    let erase = format!("{CHAIN} UPDATE document SET data = NULL WHERE entry IN (SELECT idx FROM chain)");
    connection.execute(&erase, [to_key(id)]).map_err(failed)?;
    // In schema version 1, a row repeats the title in its data.
    let title = "UPDATE item SET title = ?2, data = CASE WHEN data LIKE '{%' THEN json_set(data, '$.title', ?2) ELSE data END \
                 WHERE id = ?1";
    connection.execute(title, (to_key(id), ERASED_TITLE)).map_err(failed)?;
    // An answer stored for repetition quotes the item.
    let answers = "DELETE FROM idempotency WHERE instr(CAST(answer AS TEXT), ?1) > 0";
    connection.execute(answers, [id.as_str()]).map_err(failed)?;
    // Who looked at the content, and when.
    let looks = "DELETE FROM fact WHERE name >= ?1 AND name < ?1 || char(1114111)";
    connection.execute(looks, [looks_of(id)]).map_err(failed)?;
    connection.execute_batch("COMMIT").map_err(failed)?;
    carry_recovered(&connection, path)?;
    connection::close_carried(connection);
    Ok(documents)
}
