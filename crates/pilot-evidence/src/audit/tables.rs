//! The tables as CSV: which columns each has.

use std::collections::BTreeMap;
use std::io;

use pilot_core::document::ContentDigest;
use pilot_core::item::ItemId;
use pilot_core::time::Time;

use super::access::Access;
use super::checks::CheckRow;
use super::csv::line;
use super::exceptions::Exception;
use super::population::{ItemRow, Move};
use crate::verify::Outcome;
use crate::verify::contents::Contents;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    /// How many there are below the header.
    pub rows: usize,
    pub text: String,
}

const LEFT_OUT: &str = "(left out)";

const ITEM: [&str; 15] = [
    "item",
    "title",
    "workflow",
    "workflow_version",
    "definition",
    "state",
    "created_at",
    "created_by",
    "ended_at",
    "first_entry",
    "last_entry",
    "entries",
    "people",
    "outcome",
    "exceptions",
];
const MOVE: [&str; 10] = ["entry", "at", "item", "type", "action", "from", "to", "actor", "role", "comment"];
const EXCEPTION: [&str; 6] = ["entry", "at", "kind", "actor", "item", "what"];
const ACCESS: [&str; 17] = [
    "source",
    "actor",
    "role",
    "kind",
    "credential_id",
    "fingerprint",
    "from",
    "from_entry",
    "until",
    "until_entry",
    "ended",
    "moves",
    "last_move",
    "last_move_entry",
    "role_map",
    "approved_by",
    "remark",
];
const CHECK: [&str; 4] = ["kind", "name", "outcome", "detail"];

fn table(name: &'static str, header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    let (mut count, mut text) = (0, line(header));
    for row in rows {
        count += 1;
        text += &line(row);
    }
    Table { name, rows: count, text }
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::Fails => "fails",
        Outcome::NotChecked => "not checked",
    }
}

/// How many exceptions each item has.
pub(super) struct Counts<'e>(BTreeMap<&'e ItemId, usize>);

impl<'e> Counts<'e> {
    pub(super) fn of(exceptions: &'e [Exception]) -> Counts<'e> {
        let mut counts = BTreeMap::new();
        for id in exceptions.iter().filter_map(|found| found.item.as_ref()) {
            *counts.entry(id).or_insert(0) += 1;
        }
        Counts(counts)
    }

    fn row(&self, item: &ItemRow) -> Vec<String> {
        let people = item.people.iter().map(|(actor, role)| format!("{actor} ({role})"));
        vec![
            item.id.to_string(),
            item.title.clone().unwrap_or_else(|| LEFT_OUT.to_owned()),
            item.workflow.clone(),
            text(item.workflow_version),
            item.definition.clone(),
            item.state.clone(),
            item.created_at.to_string(),
            item.created_by.clone(),
            text(item.ended_at),
            item.first.to_string(),
            item.last.to_string(),
            item.entries.to_string(),
            people.collect::<Vec<_>>().join("; "),
            outcome(item.outcome).to_owned(),
            self.0.get(&item.id).copied().unwrap_or(0).to_string(),
        ]
    }
}

pub(super) fn items(rows: &[ItemRow], counts: &Counts<'_>) -> Table {
    table("items.csv", &ITEM, rows.iter().map(|row| counts.row(row)))
}

pub(super) fn samples(drawn: &[&ItemRow], counts: &Counts<'_>, seed: &str) -> Table {
    let header = [&["rank"][..], &ITEM, &["seed"]].concat();
    let rows = (1_usize..).zip(drawn).map(|(rank, row)| {
        let mut cells = vec![rank.to_string()];
        cells.extend(counts.row(row));
        cells.push(seed.to_owned());
        cells
    });
    table("samples.csv", &header, rows)
}

pub(super) fn moves(rows: &[Move], contents: &Contents<'_>) -> io::Result<Table> {
    let comment = |digest: &ContentDigest| {
        let bytes = contents.document(digest)?;
        let document = bytes.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
        let words = document.and_then(|document| Some(document.get("comment")?.as_str()?.to_owned()));
        io::Result::Ok(words.unwrap_or_else(|| LEFT_OUT.to_owned()))
    };
    let row = |one: &Move| {
        let words = one.comment.as_ref().map(comment).transpose()?;
        Ok(vec![
            one.entry.to_string(),
            one.at.to_string(),
            one.item.to_string(),
            one.r#type.to_string(),
            text(one.action.as_ref()),
            text(one.from.as_ref()),
            text(one.to.as_ref()),
            text(one.actor.as_ref()),
            text(one.role),
            words.unwrap_or_default(),
        ])
    };
    let rows: Vec<_> = rows.iter().map(row).collect::<io::Result<_>>()?;
    Ok(table("moves.csv", &MOVE, rows.into_iter()))
}

pub(super) fn exceptions(rows: &[Exception]) -> Table {
    let row = |found: &Exception| {
        vec![
            text(found.entry),
            text(found.at),
            found.kind.as_str().to_owned(),
            found.actor.clone(),
            text(found.item.as_ref()),
            found.what.clone(),
        ]
    };
    table("exceptions.csv", &EXCEPTION, rows.iter().map(row))
}

/// What is not known comes first, each in a row of its own.
pub(super) fn access(access: &Access) -> Table {
    let notice = |what: &String| {
        let mut cells = vec!["not_known".to_owned()];
        cells.resize(ACCESS.len() - 1, String::new());
        cells.push(what.clone());
        cells
    };
    let rows = access.rows.iter().map(|row| {
        let (until, until_entry) = row.until.map_or((None, None), |(at, entry): (Time, _)| (Some(at), entry));
        vec![
            row.source.as_str().to_owned(),
            text(row.actor.as_ref()),
            text(row.role),
            row.kind.to_owned(),
            row.credential_id.clone(),
            row.fingerprint.clone(),
            text(row.from.map(|from| from.at)),
            text(row.from.map(|from| from.entry)),
            text(until),
            text(until_entry),
            row.ended.to_owned(),
            row.moves.to_string(),
            text(row.last_move.map(|last| last.at)),
            text(row.last_move.map(|last| last.entry)),
            row.role_map.clone(),
            row.approved_by.clone(),
            String::new(),
        ]
    });
    table("access.csv", &ACCESS, access.notices.iter().map(notice).chain(rows))
}

pub(super) fn checks(rows: &[CheckRow]) -> Table {
    let row = |row: &CheckRow| {
        vec![row.kind.to_owned(), row.name.clone(), outcome(row.outcome).to_owned(), row.detail.clone()]
    };
    table("checks.csv", &CHECK, rows.iter().map(row))
}
