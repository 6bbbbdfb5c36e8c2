//! Compares remembered answers with the ledger: a caller who repeats a request must be told what is recorded, or
//! nothing.

use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::ItemId;
use rusqlite::OptionalExtension as _;
use serde::Deserialize;

use super::{Check, Traces, damaged};
use crate::row::remembered;
use crate::sqlite::failure;
use crate::sqlite::read;
use crate::{Remembered, Result, StoreError};

/// What an answer says about its place in the ledger, whatever its kind.
#[derive(Deserialize)]
struct Said {
    id: Option<ItemId>,
    item_id: Option<ItemId>,
    version: Option<u64>,
    entry: Option<u64>,
}

impl Check<'_> {
    pub(super) fn answers(&mut self, traces: &Traces) -> Result<()> {
        let failed = |error: rusqlite::Error| failure::failed(&error);
        let sql = "SELECT scope, body, answer, at FROM idempotency ORDER BY at";
        let mut statement = self.connection.prepare(sql).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            self.report.answers += 1;
            let blob = |column| row.get_ref(column).map_err(failed)?.as_blob().map_err(|error| damaged(&error));
            let (scope, body, answer) = (blob(0)?, blob(1)?, blob(2)?);
            let place = format!("answer {}", data_encoding::HEXLOWER.encode(scope.get(..4).unwrap_or(scope)));
            if scope.len() != 32 || body.len() != 32 {
                self.report.fault(&place, "its key is not a digest");
            }
            let fits = match remembered(answer.to_vec()) {
                Remembered::Entry(entry) => self.recorded(entry),
                Remembered::Answer(answer) => self.answer(&answer, traces),
            };
            if let Err(what) = fits {
                self.report.fault(place, what);
            }
        }
        Ok(())
    }

    /// Checks that the entry is of a kind that a request with a key can record.
    fn recorded(&self, index: u64) -> std::result::Result<(), String> {
        let sql = "SELECT data FROM entry WHERE idx = ?1";
        let found = i64::try_from(index)
            .ok()
            .map(|index| self.connection.query_row(sql, [index], |row| row.get::<_, Vec<u8>>(0)).optional());
        let Some(Ok(Some(bytes))) = found else {
            return Err(format!("it refers to entry {index}, which does not exist"));
        };
        let entry = Entry::parse(&bytes).map_err(|error| format!("it refers to entry {index}: {error}"))?;
        match entry.r#type {
            EntryType::ItemCreated
            | EntryType::ItemEdited
            | EntryType::ItemTransition
            | EntryType::ItemComment
            | EntryType::PermitIssued
            | EntryType::CredentialRevoked => Ok(()),
            other => Err(format!("it refers to entry {index}, which no request records: {other}")),
        }
    }

    /// As older programs stored it: a line with status, version and location, then the body.
    fn answer(&self, answer: &[u8], traces: &Traces) -> std::result::Result<(), String> {
        let end = answer.iter().position(|byte| *byte == b'\n').ok_or("it has no first line")?;
        let (line, shown) = answer.split_at_checked(end).unwrap_or_default();
        let line = std::str::from_utf8(line).map_err(|_| "its first line is not text")?;
        let mut words = line.splitn(3, ' ');
        let status =
            words.next().and_then(|word| word.parse::<u16>().ok()).filter(|status| (200..300).contains(status));
        let version = words.next().map(|word| if word == "-" { Ok(None) } else { word.parse::<u64>().map(Some) });
        let (Some(_), Some(Ok(version)), Some(_)) = (status, version, words.next()) else {
            return Err("its first line is not one this program writes".into());
        };
        let shown = shown.trim_ascii();
        if shown.is_empty() {
            return Ok(());
        }
        let said: Said =
            serde_json::from_slice(shown).map_err(|error| format!("its content cannot be read: {error}"))?;
        let Some(id) = said.item_id.or(said.id) else { return Ok(()) };
        let Some(trace) = traces.get(&id) else {
            return Err(format!("it refers to item {id}, which has no entry"));
        };
        if said.entry.is_some_and(|entry| entry > trace.last) {
            return Err(format!("it refers to an entry about item {id} that does not exist"));
        }
        let stands_at = read::placed(self.connection, &id).map_err(|error| match error {
            StoreError::Damaged(what) => what,
            other => other.to_string(),
        })?;
        let most = stands_at.map_or(0, |placed| placed.item.version);
        match said.version.max(version).filter(|said| *said > most) {
            Some(said) => Err(format!("it refers to version {said} of item {id}, which is at {most}")),
            None => Ok(()),
        }
    }
}
