//! Brings a file of an older schema version up to date, in one transaction: if it is interrupted, the file is as before.

use std::collections::HashMap;

use rusqlite::{Connection, TransactionBehavior};

use super::failure::failed;
use super::schema::{CREATED_ENTRY_SINCE, CREATOR_OPEN, ITEM, SCHEMA_VERSION};
use crate::row::{ItemKey, from_key};
use crate::{Result, StoreError};

/// Indices keep their names when their table is renamed, and the new table needs these names.
const SET_ASIDE: &str = "DROP INDEX item_due; DROP INDEX item_open; DROP INDEX item_ended; DROP INDEX item_creator; \
     ALTER TABLE item RENAME TO item_before;";

const COPY: &str = "INSERT INTO item (id, created_entry, version, state, workflow, created_by, title, open, waits_for, \
     due_at, last_entry, content_entry, data) \
     SELECT id, ?2, version, state, workflow, created_by, title, open, waits_for, due_at, last_entry, content_entry, data \
     FROM item_before WHERE id = ?1";

pub(super) fn upgrade(connection: &mut Connection) -> Result<()> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|error| failed(&error));
    let (version, secure_delete) = (number("PRAGMA user_version")?, number("PRAGMA secure_delete")?);
    if version >= SCHEMA_VERSION {
        return Ok(());
    }
    // The old rows are overwritten, not just unlinked: a later erasure could not find them.
    connection.pragma_update(None, "secure_delete", true).map_err(|error| failed(&error))?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| failed(&error))?;
    let rewritten = if version < CREATED_ENTRY_SINCE { Some(rewrite_items(&transaction)?) } else { None };
    let finish = format!("{CREATOR_OPEN} PRAGMA user_version = {SCHEMA_VERSION}");
    transaction.execute_batch(&finish).map_err(|error| failed(&error))?;
    transaction.commit().map_err(|error| failed(&error))?;
    connection.pragma_update(None, "secure_delete", secure_delete).map_err(|error| failed(&error))?;
    tracing::info!("the store was upgraded from schema {version} to {SCHEMA_VERSION}");
    if let Some(items) = rewritten {
        tracing::info!(items, "its {items} items are now listed in the order in which the ledger created them");
    }
    Ok(())
}

/// Gives each item's row the entry that created it. Returns how many there are.
fn rewrite_items(connection: &Connection) -> Result<usize> {
    let created = creations(connection)?;
    connection.execute_batch(SET_ASIDE).map_err(|error| failed(&error))?;
    connection.execute_batch(ITEM).map_err(|error| failed(&error))?;
    let mut copy = connection.prepare(COPY).map_err(|error| failed(&error))?;
    for (key, entry) in &created {
        copy.execute((key, entry)).map_err(|error| failed(&error))?;
    }
    drop(copy);
    connection.execute_batch("DROP TABLE item_before").map_err(|error| failed(&error))?;
    Ok(created.len())
}

/// Each item with the first entry of its chain, in that order. The entries are read once, from the newest down, which
/// takes the same time however they are spread over the items.
fn creations(connection: &Connection) -> Result<Vec<(ItemKey, i64)>> {
    let mut chains = newest_entries(connection)?;
    let mut created = Vec::with_capacity(chains.len());
    let mut statement =
        connection.prepare("SELECT idx, prev FROM entry ORDER BY idx DESC").map_err(|error| failed(&error))?;
    let mut rows = statement.query([]).map_err(|error| failed(&error))?;
    while let Some(row) = rows.next().map_err(|error| failed(&error))? {
        let entry: i64 = row.get(0).map_err(|error| failed(&error))?;
        let Some(key) = chains.remove(&entry) else { continue };
        match row.get::<_, Option<i64>>(1).map_err(|error| failed(&error))? {
            None => created.push((key, entry)),
            Some(prev) => lead(&mut chains, prev, key)?,
        }
    }
    // What is left leads to an entry that is not there, or to a later one.
    if let Some(key) = chains.values().next() {
        return Err(damaged(key, "the entry that created it is missing"));
    }
    created.reverse();
    Ok(created)
}

/// The newest entry about each item.
fn newest_entries(connection: &Connection) -> Result<HashMap<i64, ItemKey>> {
    let mut chains = HashMap::new();
    let mut statement = connection.prepare("SELECT id, last_entry FROM item").map_err(|error| failed(&error))?;
    let mut rows = statement.query([]).map_err(|error| failed(&error))?;
    while let Some(row) = rows.next().map_err(|error| failed(&error))? {
        let (key, entry) = (row.get(0).map_err(|error| failed(&error))?, row.get(1).map_err(|error| failed(&error))?);
        lead(&mut chains, entry, key)?;
    }
    Ok(chains)
}

fn lead(chains: &mut HashMap<i64, ItemKey>, entry: i64, key: ItemKey) -> Result<()> {
    match chains.insert(entry, key) {
        None => Ok(()),
        Some(_) => Err(damaged(&key, &format!("it shares entry {entry} with another item"))),
    }
}

fn damaged(key: &ItemKey, what: &str) -> StoreError {
    let id = from_key(key).map_or_else(|_| "without an id".to_owned(), |id| id.to_string());
    StoreError::Damaged(format!("item {id}: {what}; run `pilot log fsck`, and restore from a backup"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema::of_version;

    /// Two items whose entries take turns, with one about the service in between. The later one has the smaller id.
    fn version_4() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(of_version(4)).unwrap();
        connection.pragma_update(None, "user_version", 4).unwrap();
        for (index, prev) in [(0, None), (1, None), (2, Some(1)), (3, None), (4, Some(2)), (5, Some(3))] {
            connection.execute("INSERT INTO entry VALUES (?1, ?2, x'00')", (index, prev)).unwrap();
        }
        for (id, last_entry) in [([9; 16], 4), ([5; 16], 5)] {
            let sql = "INSERT INTO item VALUES (?1, 1, 's', 'w', 'ana', 't', 1, 0, NULL, ?2, 0, '[]')";
            connection.execute(sql, (id, last_entry)).unwrap();
        }
        connection
    }

    /// Everything that is in the file, as text.
    fn everything(connection: &Connection) -> Vec<String> {
        let sql = "SELECT 'version ' || user_version FROM pragma_user_version \
                   UNION ALL SELECT name || ' ' || sql FROM sqlite_schema WHERE sql IS NOT NULL \
                   UNION ALL SELECT hex(id) || ' ' || last_entry FROM item";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(|row| row.unwrap()).collect()
    }

    #[test]
    fn each_item_gets_the_first_entry_of_its_chain_and_the_tables_are_those_of_a_new_file() {
        let (mut upgraded, fresh) = (version_4(), Connection::open_in_memory().unwrap());
        upgrade(&mut upgraded).unwrap();
        let mut statement = upgraded.prepare("SELECT id, created_entry FROM item ORDER BY created_entry").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let rows: Vec<(ItemKey, i64)> = rows.map(|row| row.unwrap()).collect();
        assert_eq!(rows, [([9; 16], 1), ([5; 16], 3)]);
        fresh.execute_batch(of_version(SCHEMA_VERSION)).unwrap();
        fresh.pragma_update(None, "user_version", SCHEMA_VERSION).unwrap();
        let tables = |connection| everything(connection).into_iter().filter(|line| line.len() > 40).collect::<Vec<_>>();
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        assert_eq!(sorted(tables(&upgraded)), sorted(tables(&fresh)));
    }

    #[test]
    fn an_upgrade_that_is_not_committed_changes_nothing() {
        let mut connection = version_4();
        let before = everything(&connection);
        let transaction = connection.transaction().unwrap();
        assert_eq!(rewrite_items(&transaction).unwrap(), 2);
        assert_ne!(everything(&transaction), before);
        drop(transaction);
        assert_eq!(everything(&connection), before);
    }

    #[test]
    fn an_item_whose_chain_is_broken_is_damage_and_the_file_stays_as_it_is() {
        let broken = [
            ("UPDATE item SET last_entry = 77 WHERE last_entry = 5", "is missing"),
            ("UPDATE item SET last_entry = 2", "it shares entry 2 with another item"),
            ("UPDATE item SET last_entry = 2 WHERE last_entry = 5", "it shares entry 2 with another item"),
            (
                "INSERT INTO entry VALUES (6, 6, x'00'); UPDATE item SET last_entry = 6 WHERE last_entry = 5",
                "is missing",
            ),
            (
                "INSERT INTO entry VALUES (7, 6, x'00'); UPDATE item SET last_entry = 7 WHERE last_entry = 5",
                "is missing",
            ),
        ];
        for (sql, reason) in broken {
            let mut connection = version_4();
            connection.execute_batch(sql).unwrap();
            let before = everything(&connection);
            let damaged = upgrade(&mut connection);
            assert!(matches!(&damaged, Err(StoreError::Damaged(what)) if what.contains(reason)), "{sql}: {damaged:?}");
            assert_eq!(everything(&connection), before, "{sql}");
        }
    }
}
