//! Searches for items, newest first. Each visit reads a limited number of rows: a search for something rare takes
//! several visits, and other queries get their turn in between.

use pilot_core::item::ItemId;
use pilot_core::limits::SEARCH_VISIT_ROWS_MAX;
use rusqlite::{Connection, ToSql};

use super::failure::failed;
use super::read::{bound, index, item};
use crate::row::{ItemKey, from_key, role_bit, to_key};
use crate::{Filter, ItemPage, Listed, Result, StoreError};

type Values = Vec<Box<dyn ToSql>>;

/// A condition with its values.
#[derive(Default)]
struct Condition {
    sql: Vec<&'static str>,
    values: Values,
}

impl Condition {
    fn and(mut self, sql: &'static str, value: Option<Box<dyn ToSql>>) -> Condition {
        self.sql.push(sql);
        self.values.extend(value);
        self
    }

    fn text(&self) -> String {
        if self.sql.is_empty() { "1".to_owned() } else { self.sql.join(" AND ") }
    }
}

/// Where to look: rows that an index has in order of creation.
struct Source {
    from: &'static str,
    rows: Condition,
}

/// What one source returned.
struct Found {
    hits: Vec<Hit>,
    /// The last row it looked at, if there are more.
    stopped_at: Option<u64>,
}

/// In order of creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    created_entry: u64,
    key: ItemKey,
}

pub(super) fn items(connection: &Connection, filter: &Filter, limit: usize) -> Result<ItemPage> {
    page(connection, filter, limit, SEARCH_VISIT_ROWS_MAX)
}

fn page(connection: &Connection, filter: &Filter, limit: usize, rows_max: usize) -> Result<ItemPage> {
    // One snapshot for the search and for the items shown. It ends when it goes out of scope.
    let _moment = connection.unchecked_transaction().map_err(|error| failed(&error))?;
    let mut found = Vec::new();
    for source in sources(filter) {
        found.push(look(connection, filter, source, limit, rows_max)?);
    }
    let (hits, next) = merge(&found, limit);
    let read = |Hit { created_entry, key }: Hit| {
        let id = from_key(&key)?;
        let item = item(connection, &id)?;
        let item = item.ok_or_else(|| StoreError::Damaged(format!("item {id} exists only in an index")))?;
        Ok(Listed { item, created_entry })
    };
    Ok(ItemPage { items: hits.into_iter().map(read).collect::<Result<_>>()?, next })
}

/// The newest of all sources. Where one source stopped, the others must stop too: what it would have found beyond is
/// missing.
fn merge(found: &[Found], limit: usize) -> (Vec<Hit>, Option<u64>) {
    let stopped_at = found.iter().filter_map(|found| found.stopped_at).max();
    let mut hits: Vec<_> = found.iter().flat_map(|found| found.hits.iter().copied()).collect();
    hits.retain(|hit| stopped_at.is_none_or(|stopped_at| hit.created_entry >= stopped_at));
    hits.sort_unstable_by(|left, right| right.cmp(left));
    let is_cut = hits.len() > limit;
    hits.truncate(limit);
    let next = if is_cut { hits.last().map(|hit| hit.created_entry) } else { stopped_at };
    (hits, next)
}

fn sources(filter: &Filter) -> Vec<Source> {
    let open = || Source { from: "item i INDEXED BY item_open", rows: Condition::default().and("i.open = 1", None) };
    let rows = |sql, value| Condition::default().and(sql, Some(value));
    if let Some(id) = searched_id(filter) {
        return vec![Source { from: "item i", rows: rows("i.id = ?", Box::new(to_key(&id))) }];
    }
    if filter.waits_for.is_some() {
        return vec![open()];
    }
    if let Some(created_by) = &filter.created_by {
        let from = "item i INDEXED BY item_creator";
        return vec![Source { from, rows: rows("i.created_by = ?", Box::new(created_by.clone())) }];
    }
    if let Some(state) = &filter.state {
        // Ended items are indexed by state. Whether a state is terminal is not known here, so both sources are
        // searched.
        let from = "item i INDEXED BY item_ended";
        let ended = rows("i.open = 0 AND i.state = ?", Box::new(state.clone()));
        return vec![Source { from, rows: ended }, open()];
    }
    vec![Source { from: "item i INDEXED BY item_created", rows: Condition::default() }]
}

fn searched_id(filter: &Filter) -> Option<ItemId> {
    filter.text.as_ref().and_then(|text| text.parse().ok())
}

/// Everything that was asked for, even if the source already guarantees part of it.
fn wanted(filter: &Filter) -> Condition {
    let mut wanted = Condition::default();
    if let Some(state) = &filter.state {
        wanted = wanted.and("i.state = ?", Some(Box::new(state.clone())));
    }
    if let Some(workflow) = &filter.workflow {
        wanted = wanted.and("i.workflow = ?", Some(Box::new(workflow.clone())));
    }
    if let Some(created_by) = &filter.created_by {
        wanted = wanted.and("i.created_by = ?", Some(Box::new(created_by.clone())));
    }
    if let Some(role) = filter.waits_for {
        wanted = wanted.and("i.open = 1 AND i.waits_for & ? != 0", Some(Box::new(role_bit(role))));
    }
    match (&filter.text, searched_id(filter)) {
        // Not LIKE, which stops at the first NUL: a title could hide text behind one.
        (Some(text), None) => wanted.and("instr(lower(i.title), lower(?)) > 0", Some(Box::new(text.clone()))),
        _ => wanted,
    }
}

fn look(
    connection: &Connection,
    filter: &Filter,
    Source { from, mut rows }: Source,
    limit: usize,
    rows_max: usize,
) -> Result<Found> {
    if let Some(before) = filter.before {
        rows = rows.and("i.created_entry < ?", Some(Box::new(bound(before))));
    }
    let wanted = wanted(filter);
    let sql = query(from, &wanted, &rows);
    let mut statement = connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
    let values = wanted.values.iter().chain(&rows.values);
    let mut rows = statement.query(rusqlite::params_from_iter(values)).map_err(|error| failed(&error))?;
    let (mut found, mut last) = (Found { hits: Vec::new(), stopped_at: None }, None);
    for looked_at in 0.. {
        let Some(row) = rows.next().map_err(|error| failed(&error))? else { break };
        if looked_at == rows_max {
            found.stopped_at = last;
            break;
        }
        let created_entry = index(row, 0).map_err(|error| failed(&error))?;
        if row.get(2).map_err(|error| failed(&error))? {
            if found.hits.len() == limit {
                // There are more, and the next page begins after the last one shown.
                found.stopped_at = found.hits.last().map(|hit| hit.created_entry);
                break;
            }
            found.hits.push(Hit { created_entry, key: row.get(1).map_err(|error| failed(&error))? });
        }
        last = Some(created_entry);
    }
    Ok(found)
}

fn query(from: &str, wanted: &Condition, rows: &Condition) -> String {
    let (wanted, rows) = (wanted.text(), rows.text());
    format!("SELECT i.created_entry, i.id, {wanted} FROM {from} WHERE {rows} ORDER BY i.created_entry DESC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema::SCHEMA;

    /// Every third item has ended; titles and creators repeat. Items created later have smaller ids.
    fn database(items: u64) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        for number in 0..items {
            let id = to_key(&id(number));
            let (state, open) = if number % 3 == 0 { ("closed", 0) } else { ("draft", 1) };
            let title = if number % 50 == 7 { "A Needle" } else { "hay" };
            let digest = format!("sha256:{}", "0".repeat(64));
            let data = format!(r#"[1,"{digest}","{digest}","initiator",0,0,0,false,null,null,[],0,{{}},[]]"#);
            let sql = "INSERT INTO item VALUES (?1, ?2, 1, ?3, 'w', ?4, ?5, ?6, 1, NULL, 0, 0, ?7)";
            let creator = format!("ini{}", number % 4);
            connection.execute(sql, (id, bound(number), state, creator, title, open, data)).unwrap();
        }
        connection
    }

    fn id(number: u64) -> ItemId {
        format!("01a1de8a-ca3b-7000-8000-{:012x}", 0xffff - number).parse().unwrap()
    }

    /// Everything a search finds, page by page, and how many pages that took.
    fn all(connection: &Connection, filter: &Filter, limit: usize, rows_max: usize) -> (Vec<ItemId>, usize) {
        let (mut filter, mut found, mut pages) = (filter.clone(), Vec::new(), 0);
        loop {
            let page = page(connection, &filter, limit, rows_max).unwrap();
            assert!(page.items.len() <= limit);
            found.extend(page.items.into_iter().map(|listed| listed.item.id));
            pages += 1;
            match page.next {
                Some(next) => assert_ne!(filter.before.replace(next), Some(next), "it goes on"),
                None => return (found, pages),
            }
        }
    }

    #[test]
    fn whatever_is_searched_for_every_item_is_found_once_in_its_order_however_little_a_visit_looks_at() {
        let connection = database(300);
        let filters = [
            Filter::default(),
            Filter { state: Some("closed".into()), ..Filter::default() },
            Filter { state: Some("draft".into()), ..Filter::default() },
            Filter { created_by: Some("ini2".into()), ..Filter::default() },
            Filter { created_by: Some("ini2".into()), state: Some("closed".into()), ..Filter::default() },
            Filter { text: Some("needle".into()), ..Filter::default() },
            Filter { text: Some("needle".into()), state: Some("draft".into()), ..Filter::default() },
            Filter { workflow: Some("other".into()), ..Filter::default() },
            Filter { waits_for: Some(pilot_core::role::Role::ALL[0]), ..Filter::default() },
            Filter { text: Some(id(7).to_string()), ..Filter::default() },
            Filter { text: Some(id(7).to_string()), state: Some("closed".into()), ..Filter::default() },
        ];
        for filter in filters {
            let wanted = |number: &u64| {
                let (ended, needle) = (number.is_multiple_of(3), number % 50 == 7);
                filter.state.as_deref().is_none_or(|state| (state == "closed") == ended)
                    && (filter.created_by.is_none() || number % 4 == 2)
                    && filter.text.as_deref().is_none_or(|text| if text == "needle" { needle } else { *number == 7 })
                    && filter.workflow.is_none()
                    && (filter.waits_for.is_none() || !ended)
            };
            let expected: Vec<_> = (0..300).rev().filter(wanted).map(id).collect();
            for (limit, rows_max) in [(1, 1), (7, 10), (50, 3), (200, 5_000)] {
                let (found, pages) = all(&connection, &filter, limit, rows_max);
                assert_eq!(found, expected, "{filter:?}, {limit} of {rows_max}");
                let needed = expected.len().div_ceil(limit).max(1) + 2 * 300 / rows_max;
                assert!(pages <= needed, "{filter:?}: {pages} pages of {limit} in visits of {rows_max}");
            }
        }
    }

    #[test]
    fn a_page_that_ends_with_the_last_item_says_so() {
        let connection = database(10);
        let page = page(&connection, &Filter::default(), 10, 10).unwrap();
        assert_eq!((page.items.len(), page.next), (10, None));
    }

    #[test]
    fn no_search_sorts_or_looks_through_more_than_it_has_to() {
        let connection = database(1);
        let plan = |filter: &Filter, source: Source| {
            let rows = source.rows.and("i.created_entry < 0", None);
            let sql = format!("EXPLAIN QUERY PLAN {}", query(source.from, &wanted(filter), &rows));
            let mut statement = connection.prepare(&sql).unwrap();
            let values = rusqlite::params_from_iter(vec![1; statement.parameter_count()]);
            let lines = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
            lines.map(|line| line.unwrap()).collect::<Vec<_>>().join("; ")
        };
        let with = |state: bool, created_by: bool, waits_for: bool| Filter {
            state: state.then(|| "x".into()),
            created_by: created_by.then(|| "x".into()),
            waits_for: waits_for.then_some(pilot_core::role::Role::ALL[0]),
            text: Some("x".into()),
            ..Filter::default()
        };
        let filters = [(false, false, false), (true, false, false), (true, true, false), (true, true, true)];
        for filter in filters.map(|(state, by, waits)| with(state, by, waits)) {
            for source in sources(&filter) {
                let plan = plan(&filter, source);
                assert!(plan.starts_with("SEARCH i USING") && !plan.contains("TEMP B-TREE"), "{plan}");
            }
        }
    }
}
