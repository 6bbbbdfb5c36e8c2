//! `fsck`: reads everything that is stored and reports what is inconsistent. It changes nothing.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pilot_core::document::{ContentDigest, DocumentKind};
use pilot_core::entry::{Entry, EntryError};
use pilot_core::item::ItemId;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_evidence::merkle::{Edge, Hash};
use rusqlite::Connection;

mod answers;
mod documents;
mod items;

use documents::Documents;

use super::connection;
use super::head::{self, HEAD_FACT, head_bytes};
use super::read;
use super::schema::{self, APPLICATION_ID, OLDEST_SCHEMA_VERSION, SCHEMA_VERSION};
use super::{failure, lock, opening, wal};
use crate::archive::{Head, Progress, Report};
use crate::look::Look;
use crate::row::{NEWER, kind_number, kind_of};
use crate::{Result, StoreError};

/// Reads the whole store. An error means that it could not be read at all; whatever is wrong inside is in the report.
pub fn fsck(path: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    std::fs::File::open(path)
        .map_err(|error| StoreError::Unavailable(format!("{}: cannot be read: {error}", path.display())))?;
    let mut report = Report::default();
    // Read first: whatever was acknowledged by then must be there.
    let head = head::read(path)?;
    if let Some(what) = log_damage(path)? {
        report.fault("write-ahead log", what);
    }
    let connection = match connection::open_alone(path) {
        Ok(connection) => connection,
        Err(StoreError::Refused(what) | StoreError::Damaged(what)) => {
            report.fault("database", what);
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    let mut check = Check { connection: &connection, report, progress, definitions: HashMap::new() };
    check.run(path)?;
    let lost = check.lost(head);
    check.or_fault("head", lost)?;
    Ok(check.report)
}

/// What is wrong with the write-ahead log. While a service is writing it, only that service can tell.
pub fn log_damage(path: &Path) -> Result<Option<String>> {
    if std::fs::metadata(wal::beside(path)).map_or(0, |log| log.len()) == 0 {
        return Ok(None);
    }
    let Ok(_alone) = lock(path) else { return Ok(None) };
    wal::damage(path).map_err(|error| StoreError::DiskFailed(error.to_string()))
}

struct Check<'c> {
    connection: &'c Connection,
    report: Report,
    progress: &'c mut dyn FnMut(Progress),
    definitions: HashMap<String, Arc<Definition>>,
}

/// What the entries say about an item; its row must agree.
struct Trace {
    first: u64,
    last: u64,
    count: u64,
}

type Traces = HashMap<ItemId, Trace>;

/// How often progress is reported.
const STRIDE: u64 = 4_096;

impl Check<'_> {
    fn run(&mut self, path: &Path) -> Result<()> {
        if let Err(error) = self.connection.execute_batch("BEGIN") {
            return self.unreadable("database", &failure::failed(&error));
        }
        let known = self.schema(path);
        self.or_fault("schema", known)?;
        let whole = self.integrity();
        self.or_fault("database", whole)?;
        let definitions = self.definitions();
        self.or_fault("definitions", definitions)?;
        let mut traces = Traces::new();
        let entries = self.entries(&mut traces);
        self.or_fault("entries", entries)?;
        let items = self.items(&traces);
        self.or_fault("items", items)?;
        let answers = self.answers(&traces);
        self.or_fault("answers", answers)
    }

    fn lost(&mut self, head: Option<Head>) -> Result<()> {
        let entries = self.number("SELECT coalesce(max(idx), -1) FROM entry")?;
        let edge = opening::load_edge(self.connection, read::counted(entries + 1)?)?;
        if let Some(what) = opening::lost(self.connection, &edge, head)? {
            self.report.fault("head", what);
        }
        Ok(())
    }

    /// Damage is a fault like any other; a file that cannot be read at the moment is not.
    fn or_fault(&mut self, place: &str, done: Result<()>) -> Result<()> {
        match done {
            Ok(()) => Ok(()),
            Err(error) => self.unreadable(place, &error),
        }
    }

    fn unreadable(&mut self, place: &str, error: &StoreError) -> Result<()> {
        match error {
            StoreError::Damaged(_) | StoreError::DiskFailed(_) => {
                self.report.fault(place, format!("cannot be read to the end: {error}"));
                Ok(())
            }
            StoreError::Refused(reason) => Err(StoreError::Refused(reason.clone())),
            StoreError::Hangs(reason) => Err(StoreError::Hangs(reason.clone())),
            StoreError::Full(reason) => Err(StoreError::Full(reason.clone())),
            // A value of the wrong type for its column is damage too, although SQLite does not complain.
            StoreError::Unavailable(reason)
                if ["locked", "unable to open", NEWER].iter().any(|passing| reason.contains(passing)) =>
            {
                Err(StoreError::Unavailable(reason.clone()))
            }
            StoreError::Unavailable(reason) => {
                self.report.fault(place, format!("cannot be read to the end: {reason}"));
                Ok(())
            }
        }
    }

    fn tell(&mut self, step: &'static str, done: u64, of: u64) {
        if done.is_multiple_of(STRIDE) || done == of {
            (self.progress)(Progress { step, done, of });
        }
    }

    fn number(&self, sql: &str) -> Result<i64> {
        self.connection.query_row(sql, [], |row| row.get(0)).map_err(|error| failure::failed(&error))
    }

    fn count(&self, table: &str) -> Result<u64> {
        read::counted(self.number(&format!("SELECT count(*) FROM {table}"))?)
    }

    /// Checks that the tables, indices and the triggers that protect the ledger are those this program creates.
    fn schema(&mut self, path: &Path) -> Result<()> {
        let found = self.number("PRAGMA user_version")?;
        if found > SCHEMA_VERSION {
            let refused = format!(
                "{}: was written by a newer version of pilot (schema {found}); use that version",
                path.display()
            );
            return Err(StoreError::Refused(refused));
        }
        if found < OLDEST_SCHEMA_VERSION || self.number("PRAGMA application_id")? != APPLICATION_ID {
            self.report.fault("schema", "the file is not marked as a store of this program");
        }
        let failed = |error: rusqlite::Error| failure::failed(&error);
        let fresh = Connection::open_in_memory().map_err(failed)?;
        fresh.execute_batch(schema::of_version(found)).map_err(failed)?;
        if described(&fresh)? != described(self.connection)? {
            self.report.fault("schema", "tables, indices or triggers are not those this program makes");
        }
        Ok(())
    }

    fn integrity(&mut self) -> Result<()> {
        self.tell("database", 0, 1);
        let mut statement =
            self.connection.prepare("PRAGMA integrity_check").map_err(|error| failure::failed(&error))?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0)).map_err(|error| failure::failed(&error))?;
        for line in lines {
            let line = line.map_err(|error| failure::failed(&error))?;
            if line != "ok" {
                self.report.fault("database", line);
            }
        }
        self.tell("database", 1, 1);
        Ok(())
    }

    fn definitions(&mut self) -> Result<()> {
        let failed = |error: rusqlite::Error| failure::failed(&error);
        let mut statement = self.connection.prepare("SELECT digest, text FROM definition").map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (digest, text): (String, String) = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
            self.report.definitions += 1;
            match Definition::parse(&text) {
                Ok(definition) if **definition.digest() == *digest => {
                    self.definitions.insert(digest, Arc::new(definition));
                }
                Ok(_) => self.report.fault(format!("definition {digest}"), "its text has another digest"),
                Err(_) => self.report.fault(format!("definition {digest}"), "its text is not valid"),
            }
        }
        Ok(())
    }

    /// Reads every entry in order, with its documents, and builds the tree over them.
    fn entries(&mut self, traces: &mut Traces) -> Result<()> {
        let total = self.count("entry")?;
        let mut ledger = Ledger::default();
        let mut documents = Documents::new(self.connection)?;
        let failed = |error: rusqlite::Error| failure::failed(&error);
        let mut statement =
            self.connection.prepare("SELECT idx, prev, data FROM entry ORDER BY idx").map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let index: i64 = row.get(0).map_err(failed)?;
            let previous: Option<i64> = row.get(1).map_err(failed)?;
            let bytes = row.get_ref(2).map_err(failed)?.as_blob().map_err(|error| damaged(&error))?;
            let index = u64::try_from(index).map_err(|_| StoreError::Damaged(format!("an entry has index {index}")))?;
            self.entry(index, previous, bytes, &mut ledger, traces, &mut documents)?;
            self.report.entries += 1;
            self.tell("entries", self.report.entries, total);
        }
        for (index, kind, _) in documents.rest()? {
            self.report.fault(format!("document {index}/{kind}"), "belongs to no entry");
        }
        self.looks()?;
        self.tiles(&ledger)
    }

    fn entry(
        &mut self,
        index: u64,
        previous: Option<i64>,
        bytes: &[u8],
        ledger: &mut Ledger,
        traces: &mut Traces,
        documents: &mut Documents<'_>,
    ) -> Result<()> {
        let place = format!("entry {index}");
        if index != ledger.next {
            let missing = if index == ledger.next + 1 { place_of(ledger.next) } else { span(ledger.next, index - 1) };
            self.report.fault(missing, "is missing");
            ledger.is_broken = true;
        }
        ledger.next = index + 1;
        self.grow(bytes, ledger)?;
        let beside = documents.of(index)?;
        let entry = match Entry::parse(bytes) {
            Ok(entry) => entry,
            // Not reported as damage: a newer program can read it.
            Err(EntryError::Newer { v }) => {
                self.report.fault(place, format!("has format {v}, which this program does not know"));
                return Ok(());
            }
            Err(error) => {
                self.report.fault(place, format!("cannot be read: {error}"));
                return Ok(());
            }
        };
        if entry.to_bytes().ok().as_deref() != Some(bytes) {
            self.report.fault(&place, "is not written in canonical form");
        }
        if entry.v != entry.format() {
            self.report.fault(&place, format!("has format {}, which this program does not support", entry.v));
        }
        if entry.index != index {
            self.report.fault(&place, format!("says that it is entry {}", entry.index));
        }
        if ledger.last_at.is_some_and(|last_at| entry.at < last_at) {
            self.report.fault(&place, "is earlier than the entry before");
        }
        ledger.last_at = Some(entry.at);
        self.chain(&entry, index, previous, traces);
        self.documents_of(&entry, index, &beside);
        Ok(())
    }

    fn grow(&mut self, bytes: &[u8], ledger: &mut Ledger) -> Result<()> {
        if ledger.is_broken {
            return Ok(());
        }
        let mut full = Vec::new();
        ledger.edge.push(Hash::of_leaf(bytes), &mut full);
        for tile in full {
            let place = format!("tile {}/{}", tile.level, tile.index);
            let level = usize::from(tile.level);
            if ledger.tiles.len() <= level {
                ledger.tiles.resize(level + 1, 0);
            }
            if let Some(count) = ledger.tiles.get_mut(level) {
                *count += 1;
            }
            match read::tile(self.connection, tile.level, tile.index) {
                Ok(Some(stored)) if stored == tile.hashes => self.report.tiles += 1,
                Ok(Some(_)) => self.report.fault(place, "does not follow from the entries"),
                Ok(None) => self.report.fault(place, "is missing"),
                Err(StoreError::Damaged(what)) => self.report.fault(place, what),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn tiles(&mut self, ledger: &Ledger) -> Result<()> {
        if ledger.is_broken {
            self.report.fault("tree", "cannot be computed because entries are missing");
            return Ok(());
        }
        self.report.root = Some(ledger.edge.root().to_base64());
        let head = read::fact(self.connection, HEAD_FACT)?;
        let expected = (ledger.next > 0).then(|| head_bytes(&ledger.edge));
        if head.as_deref() != expected.as_ref().map(<[u8; 40]>::as_slice) {
            self.report.fault("tree", "the entries do not match the head stored with them");
        }
        let failed = |error: rusqlite::Error| failure::failed(&error);
        let mut statement =
            self.connection.prepare("SELECT level, idx FROM tile ORDER BY level, idx").map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (level, index): (i64, i64) = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
            let known = usize::try_from(level).ok().and_then(|level| ledger.tiles.get(level)).copied().unwrap_or(0);
            if u64::try_from(index).map_or(true, |index| index >= known) {
                self.report.fault(format!("tile {level}/{index}"), "has no entries below it");
            }
        }
        Ok(())
    }

    /// Looks prove nothing, so only their shape is checked.
    fn looks(&mut self) -> Result<()> {
        let failed = |error: rusqlite::Error| failure::failed(&error);
        let sql = "SELECT name, value FROM fact WHERE name >= 'look/' AND name < 'look0'";
        let mut statement = self.connection.prepare(sql).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (name, value): (String, Vec<u8>) = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
            match Look::check(&name, &value) {
                Ok(()) => {}
                Err(StoreError::Damaged(what)) => self.report.fault(format!("fact {name}"), what),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks that `prev` points to the previous entry about the same item.
    fn chain(&mut self, entry: &Entry, index: u64, previous: Option<i64>, traces: &mut Traces) {
        let previous = previous.map(|previous| u64::try_from(previous).unwrap_or(u64::MAX));
        let expected = match &entry.item {
            None => None,
            Some(id) => {
                let trace = traces.entry(id.clone()).or_insert(Trace { first: index, last: index, count: 0 });
                trace.count += 1;
                let before = std::mem::replace(&mut trace.last, index);
                (trace.count > 1).then_some(before)
            }
        };
        if previous != expected {
            let words = |place: Option<u64>| place.map_or("none".to_owned(), |index| format!("entry {index}"));
            let what = format!("points back to {}, but should point to {}", words(previous), words(expected));
            self.report.fault(place_of(index), what);
        }
    }

    fn documents_of(&mut self, entry: &Entry, index: u64, beside: &[(i64, Option<Vec<u8>>)]) {
        let named = entry.documents();
        for kind in [DocumentKind::Content, DocumentKind::Comment, DocumentKind::Inputs, DocumentKind::RoleMap] {
            let digest = named.iter().find(|(known, _)| *known == kind).map(|(_, digest)| digest);
            let found = beside.iter().find(|(known, _)| *known == kind_number(kind)).map(|(_, data)| data);
            let place = || format!("document {index}/{}", kind_number(kind));
            match (digest, found) {
                (None, None) => {}
                (Some(_), None) => self.report.fault(place(), "is missing"),
                (None, Some(_)) => self.report.fault(place(), "is not named by its entry"),
                (Some(_), Some(None)) => self.report.erased += 1,
                (Some(digest), Some(Some(bytes))) if ContentDigest::of_bytes(bytes) == *digest => {
                    self.report.documents += 1;
                }
                (Some(_), Some(Some(_))) => self.report.fault(place(), "is not the one its entry names"),
            }
        }
        for (kind, _) in beside.iter().filter(|(kind, _)| kind_of(*kind).is_none()) {
            self.report.fault(format!("document {index}/{kind}"), "has an unknown kind");
        }
    }
}

fn damaged(error: &rusqlite::types::FromSqlError) -> StoreError {
    StoreError::Damaged(error.to_string())
}

fn place_of(index: u64) -> String {
    format!("entry {index}")
}

fn span(from: u64, to: u64) -> String {
    format!("entries {from} to {to}")
}

fn described(connection: &Connection) -> Result<Vec<(String, String, Option<String>)>> {
    let failed = |error: rusqlite::Error| failure::failed(&error);
    // The tables that ANALYZE creates are not part of the schema.
    let sql = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).map_err(failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(failed)
}

/// The ledger as read so far.
#[derive(Default)]
struct Ledger {
    edge: Edge,
    next: u64,
    last_at: Option<Time>,
    /// The number of full tiles, by level.
    tiles: Vec<u64>,
    /// An entry is missing, so there is no tree to compare with.
    is_broken: bool,
}
