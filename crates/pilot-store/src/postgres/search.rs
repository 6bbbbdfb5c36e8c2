//! Searches for items, newest first. Each visit looks at a limited number of rows, like the embedded store's.

use pilot_core::item::ItemId;
use pilot_core::limits::SEARCH_VISIT_ROWS_MAX;
use tokio_postgres::types::ToSql;

use super::failure;
use super::read::{self, bound};
use super::session::Session;
use crate::row::{role_bit, to_key};
use crate::{Filter, ItemPage, Listed, Result, StoreError};

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

/// What one source returned.
struct Found {
    keys: Vec<(u64, Vec<u8>)>,
    /// The last row it looked at, if there are more.
    stopped_at: Option<u64>,
}

pub(super) async fn items(session: &Session, filter: &Filter, limit: usize) -> Result<ItemPage> {
    page(session, filter, limit, SEARCH_VISIT_ROWS_MAX).await
}

async fn page(session: &Session, filter: &Filter, limit: usize, rows_max: usize) -> Result<ItemPage> {
    let failed = |error| failure::of_query(&error);
    // One snapshot for the search and for the items shown.
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(failed)?;
    let page = page_of_snapshot(session, filter, limit, rows_max).await;
    session.run("ROLLBACK").await.map_err(failed)?;
    page
}

async fn page_of_snapshot(session: &Session, filter: &Filter, limit: usize, rows_max: usize) -> Result<ItemPage> {
    let mut found = Vec::new();
    for source in sources(filter) {
        found.push(look(session, filter, source, limit, rows_max).await?);
    }
    let (keys, next) = merge(found, limit);
    let wanted: Vec<_> = keys.iter().map(|(_, key)| key.as_slice()).collect();
    let mut items = read::items(session, &wanted).await?;
    if items.len() != wanted.len() {
        return Err(StoreError::Damaged("an item exists only in an index".into()));
    }
    items.sort_unstable_by_key(|placed| std::cmp::Reverse(placed.created_entry));
    let listed =
        |placed: super::group::Placed| Listed { created_entry: placed.created_entry, item: placed.standing.item };
    Ok(ItemPage { items: items.into_iter().map(listed).collect(), next })
}

/// The newest of all sources. Where one source stopped, the others must stop too: what it would have found beyond is
/// missing.
fn merge(found: Vec<Found>, limit: usize) -> (Vec<(u64, Vec<u8>)>, Option<u64>) {
    let stopped_at = found.iter().filter_map(|found| found.stopped_at).max();
    let mut keys: Vec<_> = found.into_iter().flat_map(|found| found.keys).collect();
    keys.retain(|(place, _)| stopped_at.is_none_or(|stopped_at| *place >= stopped_at));
    keys.sort_unstable_by(|left, right| right.cmp(left));
    let is_cut = keys.len() > limit;
    keys.truncate(limit);
    let next = if is_cut { keys.last().map(|(place, _)| *place) } else { stopped_at };
    (keys, next)
}

fn searched_id(filter: &Filter) -> Option<ItemId> {
    filter.text.as_ref().and_then(|text| text.parse().ok())
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

/// Everything that was asked for, even if the source already guarantees part of it.
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
    if let (Some(text), None) = (&filter.text, searched_id(filter)) {
        // In the C collation `lower` knows ASCII only, as in the embedded store.
        let part = "position(lower(?::text COLLATE \"C\") IN lower(i.title)) > 0";
        wanted.and(part, Some(Box::new(text.clone())));
    }
    let text = wanted.text();
    condition.values = wanted.values;
    text
}

fn values(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
}

async fn look(session: &Session, filter: &Filter, mut rows: Condition, limit: usize, rows_max: usize) -> Result<Found> {
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
    let mut keys = Vec::with_capacity(found.len());
    for row in &found {
        let place: i64 = row.try_get(0).map_err(failed)?;
        let place = u64::try_from(place).map_err(|_| StoreError::Damaged(format!("a stored index is {place}")))?;
        keys.push((place, row.try_get(1).map_err(failed)?));
    }
    if keys.len() > limit {
        keys.truncate(limit);
        let stopped_at = keys.last().map(|(place, _): &(u64, Vec<u8>)| *place);
        return Ok(Found { keys, stopped_at });
    }
    // Fewer than wanted: either there are no more, or the visit ended at the last row it may look at.
    let sql = format!("SELECT i.created_entry {visited} OFFSET {} LIMIT 2", rows_max.saturating_sub(1));
    let rows =
        session.query(&sql, &values(rows.values.get(..wanted_from).unwrap_or_default())).await.map_err(failed)?;
    let stopped_at = match rows.as_slice() {
        [last, _more] => {
            let place: i64 = last.try_get(0).map_err(failed)?;
            Some(u64::try_from(place).map_err(|_| StoreError::Damaged(format!("a stored index is {place}")))?)
        }
        _ => None,
    };
    Ok(Found { keys, stopped_at })
}
