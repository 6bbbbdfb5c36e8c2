//! Compares item rows with a replay of their history.

use std::sync::Arc;

use pilot_core::decide::due_at;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::{Item, ItemId};
use pilot_core::workflow::Definition;
use pilot_evidence::replay::{Stray, follow};
use rusqlite::Connection;

use super::{Check, Trace, Traces, damaged, place_of};
use crate::row::{from_key, role_bits, to_key};
use crate::sqlite::failure;
use crate::sqlite::read::{self, Placed};
use crate::sqlite::schema::CREATED_ENTRY_SINCE;
use crate::{Result, StoreError, StoredEntry};

impl Check<'_> {
    pub(super) fn items(&mut self, traces: &Traces) -> Result<()> {
        let total = self.count("item")?;
        let failed = |error: rusqlite::Error| failure::failed(&error);
        let has_created_entry = self.number("PRAGMA user_version")? >= CREATED_ENTRY_SINCE;
        let created_entry = if has_created_entry { "created_entry" } else { "NULL" };
        let sql = format!("SELECT id, {created_entry} FROM item ORDER BY id");
        let mut statement = self.connection.prepare(&sql).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        let (mut known, mut spans) = (0_u64, Vec::new());
        while let Some(row) = rows.next().map_err(failed)? {
            let key = row.get_ref(0).map_err(failed)?.as_blob().map_err(|error| damaged(&error))?;
            self.report.items += 1;
            self.tell("items", self.report.items, total);
            let Ok(id) = from_key(key) else {
                self.report.fault("item", "an id is not a UUID");
                continue;
            };
            let Some(trace) = traces.get(&id) else {
                self.report.fault(format!("item {id}"), "no entry is about it");
                continue;
            };
            known += 1;
            let created_entry = row.get(1).map_err(failed)?;
            self.created_entry(&id, created_entry, trace);
            match self.item(&id, trace) {
                Ok(span) => spans.extend(span),
                Err(StoreError::Damaged(what)) => self.report.fault(format!("item {id}"), what),
                Err(error) => return Err(error),
            }
        }
        if known < traces.len() as u64 {
            self.missing_items(traces)?;
        }
        self.one_at_a_time(spans);
        Ok(())
    }

    /// In older versions a row does not say.
    fn created_entry(&mut self, id: &ItemId, created_entry: Option<i64>, trace: &Trace) {
        let Some(found) = created_entry.filter(|found| u64::try_from(*found) != Ok(trace.first)) else { return };
        let what = format!("its row says that entry {found} created it, but entry {} did", trace.first);
        self.report.fault(format!("item {id}"), what);
    }

    fn missing_items(&mut self, traces: &Traces) -> Result<()> {
        for (id, trace) in traces {
            if read::placed(self.connection, id)?.is_none() {
                self.report.fault(format!("item {id}"), format!("is missing, but entry {} is about it", trace.last));
            }
        }
        Ok(())
    }

    fn item(&mut self, id: &ItemId, trace: &Trace) -> Result<Option<Span>> {
        let placed = read::placed(self.connection, id)?.ok_or_else(|| StoreError::Damaged("is gone".into()))?;
        let history = read::history(self.connection, id, None, usize::MAX)?;
        let place = format!("item {id}");
        if placed.last_entry != trace.last || history.len() as u64 != trace.count {
            let what = format!(
                "its row leads to {} entries up to {}, but the ledger has {} up to {}",
                history.len(),
                placed.last_entry,
                trace.count,
                trace.last
            );
            self.report.fault(place, what);
            return Ok(None);
        }
        let replayed = self.replay(&history);
        match replayed {
            Ok(replayed) if replayed.lacks_content() => {
                self.report.items_not_replayed += 1;
                self.compare_ends(&place, &placed, &history);
                Ok(replayed.span())
            }
            Ok(replayed) => {
                self.compare(&place, &placed, &replayed)?;
                Ok(replayed.span())
            }
            Err((index, stray)) => {
                self.report.fault(place_of(index), format!("of item {id}: {stray}"));
                Ok(None)
            }
        }
    }

    fn replay(&self, history: &[StoredEntry]) -> std::result::Result<Replayed, (u64, Stray)> {
        let mut replayed: Option<Replayed> = None;
        for stored in history {
            let at = |stray| (stored.index, stray);
            let entry: Entry =
                serde_json::from_slice(&stored.bytes).map_err(|error| at(Stray::wrong("entry", error.to_string())))?;
            let digest = entry.definition.as_deref().unwrap_or_default();
            let definition = self.definitions.get(digest);
            let definition = definition.ok_or_else(|| at(Stray::wrong("definition", "its definition is missing")))?;
            let before = replayed.take();
            let item = follow(definition, before.as_ref().map(|before| &before.item), &entry, stored.documents())
                .map_err(at)?
                .item;
            let has_content = matches!(entry.r#type, EntryType::ItemCreated | EntryType::ItemEdited);
            let ended = before.as_ref().and_then(|before| before.ended);
            replayed = Some(Replayed {
                content_entry: before
                    .as_ref()
                    .filter(|_| !has_content)
                    .map_or(stored.index, |before| before.content_entry),
                created: before.as_ref().map_or(stored.index, |before| before.created),
                ended: ended.or_else(|| item.is_terminal(definition).then_some(stored.index)),
                definition: Arc::clone(definition),
                item,
            });
        }
        replayed.ok_or((0, Stray::wrong("history", "there is no entry")))
    }

    fn compare(&mut self, place: &str, placed: &Placed, replayed: &Replayed) -> Result<()> {
        let (item, definition) = (&replayed.item, &replayed.definition);
        if placed.item != *item {
            self.report
                .fault(place, format!("its row does not match its entries ({})", difference(&placed.item, item)));
        }
        let expected = Columns {
            version: i64::try_from(item.version).unwrap_or(i64::MAX),
            state: item.state.to_string(),
            workflow: item.workflow.name.to_string(),
            created_by: item.created_by.actor_id.to_string(),
            title: item.title.to_string(),
            is_open: !item.is_terminal(definition),
            waits_for: role_bits(&item.waits_for(definition)),
            due_at: due_at(definition, item).map(|deadline| deadline.at.unix_micros()),
            content_entry: i64::try_from(replayed.content_entry).unwrap_or(i64::MAX),
        };
        if Columns::of(self.connection, item)? != expected {
            self.report.fault(place, "a column of its row does not match its entries");
        }
        Ok(())
    }

    /// Without its documents an item cannot be compared as a whole, but its entries still tell its state.
    fn compare_ends(&mut self, place: &str, placed: &Placed, history: &[StoredEntry]) {
        let entries: Vec<Entry> =
            history.iter().filter_map(|stored| serde_json::from_slice(&stored.bytes).ok()).collect();
        let version = entries.iter().rev().find_map(|entry| entry.version);
        let state = entries.iter().rev().find_map(|entry| entry.to.clone());
        if version != Some(placed.item.version) || state.as_ref() != Some(&placed.item.state) {
            self.report.fault(place, "its row does not point to the last of its entries");
        }
    }

    /// If a workflow allows each person one open item, no two may have been open at the same time.
    fn one_at_a_time(&mut self, mut spans: Vec<Span>) {
        spans.sort_by(|one, other| (&one.whose, one.created).cmp(&(&other.whose, other.created)));
        for pair in spans.windows(2) {
            let [earlier, later] = pair else { continue };
            let overlap = earlier.ended.is_none_or(|ended| later.created < ended);
            if earlier.whose == later.whose && overlap {
                let what = format!("item {} was created while another of its creator was open", later.id);
                self.report.fault(place_of(later.created), what);
            }
        }
    }
}

/// Names the member that differs, and not its value, which may be anything.
fn difference(stored: &Item, replayed: &Item) -> String {
    let (Ok(stored), Ok(replayed)) = (serde_json::to_value(stored), serde_json::to_value(replayed)) else {
        return "it cannot be compared".into();
    };
    let (Some(stored), Some(replayed)) = (stored.as_object(), replayed.as_object()) else { return String::new() };
    let names: Vec<_> = replayed
        .iter()
        .filter(|(name, value)| stored.get(*name) != Some(value))
        .map(|(name, _)| name.as_str())
        .collect();
    format!("differs in {}", names.join(", "))
}

struct Replayed {
    item: Item,
    definition: Arc<Definition>,
    content_entry: u64,
    created: u64,
    ended: Option<u64>,
}

/// How long an item was open that had to be its creator's only one.
struct Span {
    whose: (String, String),
    id: ItemId,
    created: u64,
    ended: Option<u64>,
}

impl Replayed {
    /// Erased. Its moves were still checked against the rules, as far as the rules need no content.
    fn lacks_content(&self) -> bool {
        self.item.payload.is_left_out() || self.item.window.as_ref().is_some_and(|window| window.is_left_out)
    }

    fn span(&self) -> Option<Span> {
        self.definition.rules().one_open_per_creator.then(|| Span {
            whose: (self.item.created_by.actor_id.to_string(), self.item.workflow.name.to_string()),
            id: self.item.id.clone(),
            created: self.created,
            ended: self.ended,
        })
    }
}

#[derive(PartialEq)]
struct Columns {
    version: i64,
    state: String,
    workflow: String,
    created_by: String,
    title: String,
    is_open: bool,
    waits_for: i64,
    due_at: Option<i64>,
    content_entry: i64,
}

impl Columns {
    fn of(connection: &Connection, item: &Item) -> Result<Columns> {
        let sql = "SELECT version, state, workflow, created_by, title, open, waits_for, due_at, content_entry \
                   FROM item WHERE id = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Columns {
                version: row.get(0)?,
                state: row.get(1)?,
                workflow: row.get(2)?,
                created_by: row.get(3)?,
                title: row.get(4)?,
                is_open: row.get(5)?,
                waits_for: row.get(6)?,
                due_at: row.get(7)?,
                content_entry: row.get(8)?,
            })
        };
        let mut statement = connection.prepare_cached(sql).map_err(|error| failure::failed(&error))?;
        statement.query_row([to_key(&item.id)], read).map_err(|error| failure::failed(&error))
    }
}
