//! Searches for items, newest first. Each visit looks at a limited number of rows, like the embedded store's.

use std::cmp::Reverse;
use std::collections::HashMap;

use pilot_core::item::ItemId;
use pilot_core::limits::{COUNTED_ITEMS_MAX, SEARCH_VISIT_BYTES_MAX, SEARCH_VISIT_ROWS_MAX};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure;
use super::read::{self, bound};
use super::session::Session;
use crate::row::{from_key, role_bit, to_key};
use crate::sought::{Sought, Texts, searched_id};
use crate::{Filter, ItemPage, Listed, Rank, RankPage, Result, Sort, SortKey, StoreError};

/// How many contents are fetched at a time: each may be as large as a payload.
const CONTENTS_AT_ONCE: usize = 32;

type Value = Box<dyn ToSql + Sync + Send>;

/// A text with numbered parameters, and their values.
#[derive(Default)]
struct Condition {
    parts: Vec<String>,
    values: Vec<Value>,
}

impl Condition {
    /// `?` stands for the value.
    fn and(&mut self, part: &str, value: Option<Value>) {
        let part = match value {
            Some(value) => {
                self.values.push(value);
                part.replace('?', &format!("${}", self.values.len()))
            }
            None => part.to_owned(),
        };
        self.parts.push(part);
    }

    fn text(&self) -> String {
        if self.parts.is_empty() { "true".to_owned() } else { self.parts.join(" AND ") }
    }
}

/// In order of creation.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    created_entry: u64,
    key: Vec<u8>,
    /// Only if a list is sorted by it.
    sort_key: Option<SortKey>,
}

/// What one source returned.
struct Found {
    hits: Vec<Hit>,
    /// The last row it looked at, if there are more.
    stopped_at: Option<u64>,
}

pub(super) async fn items(session: &Session, filter: &Filter, limit: usize) -> Result<ItemPage> {
    page(session, filter, limit, SEARCH_VISIT_ROWS_MAX).await
}

/// One snapshot for the search and for the items shown.
macro_rules! in_snapshot {
    ($session:expr, $question:expr) => {{
        let failed = |error| failure::of_query(&error);
        $session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(failed)?;
        let answer = $question.await;
        $session.run("ROLLBACK").await.map_err(failed)?;
        answer
    }};
}

async fn page(session: &Session, filter: &Filter, limit: usize, rows_max: usize) -> Result<ItemPage> {
    in_snapshot!(session, page_of_snapshot(session, filter, limit, rows_max))
}

pub(super) async fn ranks(session: &Session, filter: &Filter, sort: Sort) -> Result<RankPage> {
    in_snapshot!(session, ranks_of_snapshot(session, filter, sort))
}

async fn ranks_of_snapshot(session: &Session, filter: &Filter, sort: Sort) -> Result<RankPage> {
    let mut found = Vec::new();
    for source in sources(filter) {
        found.push(sift(session, filter, source, usize::MAX, SEARCH_VISIT_ROWS_MAX, Some(sort)).await?);
    }
    let (hits, next) = merge(found, usize::MAX);
    let mut ranks = Vec::with_capacity(hits.len());
    for Hit { created_entry, key, sort_key } in hits {
        let key_missing = || StoreError::Damaged("a row has nothing to sort it by".into());
        let rank = Rank { key: sort_key.ok_or_else(key_missing)?, created_entry: Reverse(created_entry) };
        ranks.push((rank, from_key(&key)?));
    }
    Ok(RankPage { ranks, next })
}

pub(super) async fn items_of(session: &Session, ids: &[ItemId]) -> Result<Vec<Listed>> {
    let keys: Vec<_> = ids.iter().map(to_key).collect();
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    Ok(read::items(session, &keys).await?.into_iter().map(listed).collect())
}

pub(super) async fn count(session: &Session, filter: &Filter) -> Result<Option<u64>> {
    if !Sought::of(filter).is_nothing() {
        return Ok(None);
    }
    in_snapshot!(session, count_in_snapshot(session, filter))
}

async fn count_in_snapshot(session: &Session, filter: &Filter) -> Result<Option<u64>> {
    let failed = |error| failure::of_query(&error);
    let counted =
        |number: i64| u64::try_from(number).map_err(|_| StoreError::Damaged(format!("a number of rows is {number}")));
    let (mut rows_left, mut total) = (COUNTED_ITEMS_MAX as u64, 0);
    for mut rows in sources(filter) {
        let source = rows.text();
        let wanted = add_wanted(&mut rows, filter);
        let sql = format!(
            "SELECT count(*), count(*) FILTER (WHERE v.wanted) \
             FROM (SELECT {wanted} AS wanted FROM item i WHERE {source} LIMIT {}) v",
            rows_left + 1
        );
        let row = session.query_opt(&sql, &values(&rows.values)).await.map_err(failed)?;
        let row = row.ok_or_else(|| StoreError::Unavailable("the database counted nothing".into()))?;
        let (seen, found) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        match rows_left.checked_sub(counted(seen)?) {
            Some(left) => rows_left = left,
            None => return Ok(None),
        }
        total += counted(found)?;
    }
    Ok(Some(total))
}

fn listed(placed: super::group::Placed) -> Listed {
    Listed { created_entry: placed.created_entry, item: placed.standing.item }
}

async fn page_of_snapshot(session: &Session, filter: &Filter, limit: usize, rows_max: usize) -> Result<ItemPage> {
    let mut found = Vec::new();
    for source in sources(filter) {
        found.push(look(session, filter, source, limit, rows_max).await?);
    }
    let (hits, next) = merge(found, limit);
    let wanted: Vec<_> = hits.iter().map(|hit| hit.key.as_slice()).collect();
    let mut items = read::items(session, &wanted).await?;
    if items.len() != wanted.len() {
        return Err(StoreError::Damaged("an item exists only in an index".into()));
    }
    items.sort_unstable_by_key(|placed| Reverse(placed.created_entry));
    Ok(ItemPage { items: items.into_iter().map(listed).collect(), next })
}

/// The newest of all sources. Where one source stopped, the others must stop too: what it would have found beyond is
/// missing.
fn merge(found: Vec<Found>, limit: usize) -> (Vec<Hit>, Option<u64>) {
    let stopped_at = found.iter().filter_map(|found| found.stopped_at).max();
    let mut hits: Vec<_> = found.into_iter().flat_map(|found| found.hits).collect();
    hits.retain(|hit| stopped_at.is_none_or(|stopped_at| hit.created_entry >= stopped_at));
    hits.sort_unstable_by(|left, right| right.cmp(left));
    let is_cut = hits.len() > limit;
    hits.truncate(limit);
    let next = if is_cut { hits.last().map(|hit| hit.created_entry) } else { stopped_at };
    (hits, next)
}

/// Rows that an index has in order of creation.
fn sources(filter: &Filter) -> Vec<Condition> {
    let of = |part: &str, value: Option<Value>| {
        let mut source = Condition::default();
        source.and(part, value);
        source
    };
    if let Some(id) = searched_id(filter) {
        return vec![of("i.id = ?", Some(Box::new(to_key(&id).to_vec())))];
    }
    if filter.waits_for.is_some() {
        return vec![of("i.open", None)];
    }
    if let Some(created_by) = &filter.created_by {
        return vec![of("i.created_by = ?", Some(Box::new(created_by.clone())))];
    }
    if let Some(state) = &filter.state {
        // Ended items are indexed by state. Whether a state is terminal is not known here, so both are searched.
        let ended = of("i.ended = ?", Some(Box::new(state.clone())));
        return vec![ended, of("i.open", None)];
    }
    vec![Condition::default()]
}

/// Everything that was asked for and is in a column, even if the source already guarantees part of it.
fn add_wanted(condition: &mut Condition, filter: &Filter) -> String {
    let mut wanted = Condition { parts: Vec::new(), values: std::mem::take(&mut condition.values) };
    if let Some(state) = &filter.state {
        wanted.and("i.state = ?", Some(Box::new(state.clone())));
    }
    if let Some(workflow) = &filter.workflow {
        wanted.and("i.workflow = ?", Some(Box::new(workflow.clone())));
    }
    if let Some(created_by) = &filter.created_by {
        wanted.and("i.created_by = ?", Some(Box::new(created_by.clone())));
    }
    if let Some(role) = filter.waits_for {
        let bit = i32::try_from(role_bit(role)).unwrap_or(0);
        wanted.and("i.open AND i.waits_for & ? != 0", Some(Box::new(bit)));
    }
    let text = wanted.text();
    condition.values = wanted.values;
    text
}

fn values(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
}

async fn look(session: &Session, filter: &Filter, mut rows: Condition, limit: usize, rows_max: usize) -> Result<Found> {
    if !Sought::of(filter).is_nothing() {
        return sift(session, filter, rows, limit, rows_max, None).await;
    }
    let failed = |error| failure::of_query(&error);
    if let Some(before) = filter.before {
        rows.and("i.created_entry < ?", Some(Box::new(bound(before))));
    }
    let visited = format!("FROM item i WHERE {} ORDER BY i.created_entry DESC", rows.text());
    let wanted_from = rows.values.len();
    let wanted = add_wanted(&mut rows, filter);
    // One more than is shown tells whether there are more.
    rows.values.push(Box::new(i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX)));
    let sql = format!(
        "SELECT v.created_entry, v.id FROM (SELECT i.created_entry, i.id, {wanted} AS wanted {visited} \
         LIMIT {rows_max}) v WHERE v.wanted ORDER BY v.created_entry DESC LIMIT ${}",
        rows.values.len()
    );
    let found = session.query(&sql, &values(&rows.values)).await.map_err(failed)?;
    let mut hits = Vec::with_capacity(found.len());
    for row in &found {
        hits.push(Hit { created_entry: place(row, 0)?, key: row.try_get(1).map_err(failed)?, sort_key: None });
    }
    if hits.len() > limit {
        hits.truncate(limit);
        let stopped_at = hits.last().map(|hit: &Hit| hit.created_entry);
        return Ok(Found { hits, stopped_at });
    }
    // Fewer than wanted: either there are no more, or the visit ended at the last row it may look at.
    let stopped_at = end_of_visit(session, &visited, rows.values.get(..wanted_from), rows_max).await?;
    Ok(Found { hits, stopped_at })
}

fn place(row: &Row, column: usize) -> Result<u64> {
    let place: i64 = row.try_get(column).map_err(|error| failure::of_query(&error))?;
    u64::try_from(place).map_err(|_| StoreError::Damaged(format!("a stored index is {place}")))
}

/// The last row that a visit may look at, if there are more.
async fn end_of_visit(
    session: &Session,
    visited: &str,
    source: Option<&[Value]>,
    rows_max: usize,
) -> Result<Option<u64>> {
    let sql = format!("SELECT i.created_entry {visited} OFFSET {} LIMIT 2", rows_max.saturating_sub(1));
    let rows = session.query(&sql, &values(source.unwrap_or_default())).await;
    match rows.map_err(|error| failure::of_query(&error))?.as_slice() {
        [last, _more] => place(last, 0).map(Some),
        _ => Ok(None),
    }
}

/// Like [`look`], for texts, which are compared here, and for lists that are sorted here. The rows of a visit come
/// without their contents; of those, no more are fetched than a visit may look through.
async fn sift(
    session: &Session,
    filter: &Filter,
    mut rows: Condition,
    limit: usize,
    rows_max: usize,
    sort: Option<Sort>,
) -> Result<Found> {
    let failed = |error| failure::of_query(&error);
    if let Some(before) = filter.before {
        rows.and("i.created_entry < ?", Some(Box::new(bound(before))));
    }
    let visited = format!("FROM item i WHERE {} ORDER BY i.created_entry DESC", rows.text());
    let wanted_from = rows.values.len();
    let wanted = add_wanted(&mut rows, filter);
    let sql = format!(
        "SELECT v.created_entry, v.id, v.title, v.created_by, v.content_entry, v.last_entry, v.due_at \
         FROM (SELECT i.*, {wanted} AS wanted {visited} LIMIT {rows_max}) v WHERE v.wanted ORDER BY v.created_entry DESC"
    );
    let found = session.query(&sql, &values(&rows.values)).await.map_err(failed)?;
    let sought = Sought::of(filter);
    let (mut hits, mut bytes, mut last): (Vec<Hit>, usize, Option<u64>) = (Vec::new(), 0, None);
    for some in found.chunks(CONTENTS_AT_ONCE) {
        if bytes >= SEARCH_VISIT_BYTES_MAX {
            return Ok(Found { hits, stopped_at: last });
        }
        let contents = contents(session, &sought, some).await?;
        bytes += contents.values().map(Vec::len).sum::<usize>();
        for row in some {
            if is_wanted(&sought, row, &contents)? {
                if hits.len() == limit {
                    let stopped_at = hits.last().map(|hit| hit.created_entry);
                    return Ok(Found { hits, stopped_at });
                }
                hits.push(hit(row, sort)?);
            }
            last = Some(place(row, 0)?);
        }
    }
    let stopped_at = end_of_visit(session, &visited, rows.values.get(..wanted_from), rows_max).await?;
    Ok(Found { hits, stopped_at })
}

fn hit(row: &Row, sort: Option<Sort>) -> Result<Hit> {
    let failed = |error| failure::of_query(&error);
    let sort_key = match sort {
        None => None,
        Some(sort) => {
            let (due_at, title) = (row.try_get(6).map_err(failed)?, row.try_get(2).map_err(failed)?);
            Some(SortKey::new(sort, place(row, 5)?, due_at, title))
        }
    };
    Ok(Hit { created_entry: place(row, 0)?, key: row.try_get(1).map_err(failed)?, sort_key })
}

fn is_wanted(sought: &Sought, row: &Row, contents: &HashMap<u64, Vec<u8>>) -> Result<bool> {
    if sought.is_nothing() {
        return Ok(true);
    }
    let texts = texts(row)?;
    match sought.in_row(&texts) {
        Some(is_wanted) => Ok(is_wanted),
        None => sought.in_content(&texts, contents.get(&place(row, 4)?).map(Vec::as_slice)),
    }
}

fn texts(row: &Row) -> Result<Texts<'_>> {
    let text = |column: usize| row.try_get::<_, &str>(column).map_err(|error| failure::of_query(&error));
    let id = from_key(row.try_get(1).map_err(|error| failure::of_query(&error))?)?;
    Ok(Texts { key: to_key(&id), title: text(2)?, created_by: text(3)? })
}

/// The contents that the rows do not make unnecessary, each under its entry.
async fn contents(session: &Session, sought: &Sought, rows: &[Row]) -> Result<HashMap<u64, Vec<u8>>> {
    let failed = |error| failure::of_query(&error);
    let mut needed = Vec::new();
    for row in rows.iter().filter(|_| !sought.is_nothing()) {
        if sought.in_row(&texts(row)?).is_none() {
            needed.push(bound(place(row, 4)?));
        }
    }
    if needed.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT entry, data FROM document WHERE kind = 0 AND data IS NOT NULL AND entry = ANY($1)";
    let found = session.query(sql, &[&needed]).await.map_err(failed)?;
    found.iter().map(|row| Ok((place(row, 0)?, row.try_get(1).map_err(failed)?))).collect()
}
