//! What is checked when a node opens the ledger: the server's settings, the tables' version, and the end of the ledger.

use pilot_core::entry::{Entry, EntryError};
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash, root_of};
use pilot_evidence::tile::TILE_WIDTH;
use tokio_postgres::error::SqlState;

use super::failure::{self, failed};
use super::flight::Head;
use super::read::bound;
use super::reserved;
use super::session::Session;
use super::team::{self, NODES_MAX};
use crate::tree::hashes_of;
use crate::{Duty, Result, StoreError};

const SCHEMA: &str = include_str!("../schema/postgres.sql");
/// The tables as this program writes them.
pub(super) const SCHEMA_VERSION: i32 = 1;
const SERVER_VERSION_MIN: i32 = 150_000;

async fn setting(session: &Session, name: &str) -> Result<String> {
    let row = session.query_opt("SELECT current_setting($1, true)", &[&name]).await.map_err(failed)?;
    let value: Option<Option<String>> = row.map(|row| row.try_get(0)).transpose().map_err(failed)?;
    Ok(value.flatten().unwrap_or_default())
}

/// Refuses a server that could lose what it acknowledged.
pub(super) async fn check_server(session: &Session) -> Result<()> {
    let version = setting(session, "server_version_num").await?;
    if version.parse::<i32>().unwrap_or(0) < SERVER_VERSION_MIN {
        let found = setting(session, "server_version").await?;
        return Err(StoreError::Refused(format!("PostgreSQL {found} is too old; use version 15 or newer")));
    }
    for (name, why) in [
        ("fsync", "a crash of its machine could damage the ledger or lose acknowledged entries"),
        ("full_page_writes", "a crash of its machine could damage the ledger"),
    ] {
        if setting(session, name).await? == "off" {
            return Err(StoreError::Refused(format!("the database runs with {name} = off: {why}; turn it on")));
        }
    }
    let encoding = setting(session, "server_encoding").await?;
    if encoding != "UTF8" {
        let remedy = "create the database with ENCODING 'UTF8'";
        return Err(StoreError::Refused(format!("the database's encoding is {encoding}; {remedy}")));
    }
    if setting(session, "data_checksums").await? != "on" {
        tracing::warn!(
            "the database has no data checksums, so damage on its disk can go unnoticed; pg_checksums --enable turns them on"
        );
    }
    Ok(())
}

/// Creates the tables in an empty database, or checks that this program may use those that are there. Refuses a ledger
/// that is only half there, or that an operator's command has for itself.
pub(super) async fn ensure_schema(session: &Session) -> Result<()> {
    reserved::refuse_unfinished(session).await?;
    ensure_tables(session).await?;
    reserved::refuse_held(session).await
}

/// Refuses one node too many.
pub(super) async fn check_room(session: &Session) -> Result<()> {
    let sql =
        "SELECT count(*) FROM node WHERE seen >= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 1000000";
    let row = session.query_opt(sql, &[]).await.map_err(failed)?;
    let live: Option<i64> = row.map(|row| row.try_get(0)).transpose().map_err(failed)?;
    if live.is_some_and(|live| live >= NODES_MAX) {
        return Err(StoreError::Refused(format!("the ledger has {NODES_MAX} nodes, as many as it can have; stop one")));
    }
    Ok(())
}

/// Creates the tables in an empty database, or checks that this program may use those that are there.
pub(super) async fn ensure_tables(session: &Session) -> Result<()> {
    for attempt in 0.. {
        if let Some(version) = schema_version(session).await? {
            version.check()?;
            return add_duties(session).await;
        }
        match create(session).await {
            Ok(()) => return Ok(()),
            // Another node was faster.
            Err(error)
                if attempt < 3
                    && error.code().is_some_and(|code| {
                        matches!(*code, SqlState::DUPLICATE_TABLE | SqlState::UNIQUE_VIOLATION)
                    }) => {}
            Err(error) if error.code() == Some(&SqlState::DUPLICATE_TABLE) => {
                return Err(StoreError::Refused(format!(
                    "the database belongs to another program ({}); give pilot a database of its own",
                    failure::describe(&error)
                )));
            }
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                return Err(StoreError::Refused(format!(
                    "the database's user may not create tables ({}); make it the owner of the database",
                    failure::describe(&error)
                )));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

async fn create(session: &Session) -> std::result::Result<(), tokio_postgres::Error> {
    let duties: Vec<_> = Duty::ALL.iter().map(|duty| format!("('{}', '', 0, 0)", duty.as_str())).collect();
    let root: String = Edge::default().root().0.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(
        "BEGIN; {SCHEMA} \
         INSERT INTO head VALUES (0, 0, '\\x{root}', 0, 0); \
         INSERT INTO duty (name, node, fence, until) VALUES {}; \
         INSERT INTO pilot_schema VALUES (0, {SCHEMA_VERSION}, {SCHEMA_VERSION}, {SCHEMA_VERSION}); COMMIT",
        duties.join(", ")
    );
    let created = session.run(&text).await;
    if created.is_err() {
        session.run("ROLLBACK").await?;
    }
    created
}

/// Tables that an older program made lack the duties that came later. Such a program leaves alone what it does not know.
async fn add_duties(session: &Session) -> Result<()> {
    let wanted = team::all();
    let missing = "SELECT count(*) FROM unnest($1::text[]) AS w(name) WHERE name NOT IN (SELECT name FROM duty)";
    let row = session.query_opt(missing, &[&wanted]).await.map_err(failed)?;
    let missing: Option<i64> = row.map(|row| row.try_get(0)).transpose().map_err(failed)?;
    if missing.is_some_and(|missing| missing > 0) {
        let sql = "INSERT INTO duty (name, node, fence, until) SELECT name, '', 0, 0 FROM unnest($1::text[]) AS w(name) \
                   ON CONFLICT (name) DO NOTHING";
        session.execute(sql, &[&wanted]).await.map_err(failed)?;
    }
    Ok(())
}

/// Whether there are tables of this program.
pub(super) async fn has_tables(session: &Session) -> Result<bool> {
    Ok(schema_version(session).await?.is_some())
}

struct Version {
    version: i32,
    oldest_writer: i32,
}

impl Version {
    fn check(&self) -> Result<()> {
        if self.oldest_writer > SCHEMA_VERSION {
            return Err(StoreError::Refused(format!(
                "the database's tables have version {}, which this program may no longer write (it knows {SCHEMA_VERSION}); use a newer pilot",
                self.version
            )));
        }
        if self.version < SCHEMA_VERSION {
            return Err(StoreError::Refused(format!(
                "the database's tables have version {}, and this program needs {SCHEMA_VERSION}",
                self.version
            )));
        }
        Ok(())
    }
}

async fn schema_version(session: &Session) -> Result<Option<Version>> {
    let exists = "SELECT to_regclass('pilot_schema') IS NOT NULL";
    let row = session.query_opt(exists, &[]).await.map_err(failed)?;
    let exists: Option<bool> = row.map(|row| row.try_get(0)).transpose().map_err(failed)?;
    if exists != Some(true) {
        return Ok(None);
    }
    let row = session.query_opt("SELECT version, oldest_writer FROM pilot_schema WHERE id = 0", &[]).await;
    let row = row.map_err(failed)?.ok_or_else(|| StoreError::Damaged("the tables have no version".into()))?;
    let (version, oldest_writer) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    Ok(Some(Version { version, oldest_writer }))
}

/// The right edge of the tree, rebuilt from what is stored and compared with the head, and the time of the last entry.
pub(super) async fn load(session: &Session) -> Result<(Edge, Time)> {
    let sql = "SELECT size, root, last_at, epoch, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
               (SELECT max(idx) FROM entry) FROM head WHERE id = 0";
    let row = session.query_opt(sql, &[]).await.map_err(failed)?;
    let row = row.ok_or_else(|| damaged("the head of the ledger is missing"))?;
    let head = Head::read(&row).map_err(failed)?;
    let last: Option<i64> = row.try_get(5).map_err(failed)?;
    if last.map_or(0, |last| last + 1) != bound(head.size) {
        return Err(damaged("the number of entries is not the one in the head"));
    }
    let edge = load_edge(session, head.size).await?;
    if edge.root() != head.root {
        return Err(damaged("the entries do not match the head stored with them"));
    }
    if let Some(last) = head.size.checked_sub(1) {
        check_last(session, last, &head).await?;
    }
    Ok((edge, head.last_at))
}

async fn check_last(session: &Session, index: u64, head: &Head) -> Result<()> {
    let row = session.query_opt("SELECT data FROM entry WHERE idx = $1", &[&bound(index)]).await.map_err(failed)?;
    let bytes: Option<Vec<u8>> = row.map(|row| row.try_get(0)).transpose().map_err(failed)?;
    let unreadable = || damaged(&format!("entry {index}, the last one, cannot be read"));
    match Entry::parse(&bytes.ok_or_else(unreadable)?) {
        Ok(entry) if entry.index == index && entry.at == head.last_at => Ok(()),
        Err(newer @ EntryError::Newer { .. }) => {
            Err(StoreError::Unavailable(format!("entry {index}, the last one: {newer}")))
        }
        Ok(_) | Err(EntryError::Malformed(_)) => Err(unreadable()),
    }
}

fn damaged(what: &str) -> StoreError {
    StoreError::Damaged(format!("{what}; run `pilot log fsck`, and restore the database from a backup"))
}

/// The right edge of the tree at this size, by full tiles and the entries after them.
pub(super) async fn load_edge(session: &Session, size: u64) -> Result<Edge> {
    let width = TILE_WIDTH as u64;
    let mut levels = Vec::new();
    let (mut level, mut row_size) = (0_u8, size);
    while row_size > 0 {
        let full = row_size / width;
        levels.push(match level {
            0 => leaves(session, full * width, row_size).await?,
            _ => roots(session, level - 1, full * width, row_size).await?,
        });
        (level, row_size) = (level + 1, full);
    }
    Ok(Edge::new(size, levels))
}

async fn leaves(session: &Session, from: u64, until: u64) -> Result<Vec<Hash>> {
    let sql = "SELECT leaf FROM entry WHERE idx >= $1 AND idx < $2 ORDER BY idx";
    let rows = session.query(sql, &[&bound(from), &bound(until)]).await.map_err(failed)?;
    let mut hashes = Vec::new();
    for row in &rows {
        let bytes: &[u8] = row.try_get(0).map_err(failed)?;
        hashes.push(Hash(bytes.try_into().map_err(|_| damaged("a stored hash is cut"))?));
    }
    if hashes.len() as u64 == until - from { Ok(hashes) } else { Err(damaged("entries are missing")) }
}

async fn roots(session: &Session, level: u8, from: u64, until: u64) -> Result<Vec<Hash>> {
    let sql = "SELECT idx, hashes FROM tile WHERE level = $1 AND idx >= $2 AND idx < $3 ORDER BY idx";
    let rows = session.query(sql, &[&i16::from(level), &bound(from), &bound(until)]).await.map_err(failed)?;
    let mut hashes = Vec::new();
    for (row, index) in rows.iter().zip(from..) {
        if row.try_get::<_, i64>(0).map_err(failed)? != bound(index) {
            return Err(damaged(&format!("tile {level}/{index} is missing")));
        }
        hashes.push(root_of(&hashes_of(level, index, row.try_get(1).map_err(failed)?)?));
    }
    if hashes.len() as u64 == until - from {
        Ok(hashes)
    } else {
        Err(damaged(&format!("tiles of level {level} are missing")))
    }
}
