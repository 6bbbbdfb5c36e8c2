//! Searches for items, newest first. Each visit reads a limited number of rows: a long search takes several visits, and
//! other queries get their turn in between. A search for a text passes over what the search index rules out.

use std::cmp::Reverse;
use std::sync::Arc;

use pilot_core::item::{Item, ItemId};
use pilot_core::limits::{
    COUNTED_ITEMS_MAX, SEARCH_IDS_MAX, SEARCH_UNINDEXED_MAX, SEARCH_UNINDEXED_TOLERATED, SEARCH_VISIT_BYTES_MAX,
    SEARCH_VISIT_ROWS_MAX, SEARCH_VISIT_SLABS_MAX,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, ToSql};

use super::failure::failed;
use super::read::{self, bound, counted, index};
use super::search_index::{Candidates, Place, SearchIndex};
use crate::row::{ItemKey, from_key, role_bit, to_key};
use crate::sought::{Sought, Texts, ids_beginning_with, searched_id};
use crate::{Filter, ItemPage, Listed, Rank, RankPage, Result, Sort, SortKey, StoreError};

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
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    created_entry: u64,
    key: ItemKey,
    /// Only if a list is sorted by it.
    sort_key: Option<SortKey>,
}

/// How far one visit goes.
#[derive(Clone, Copy)]
struct Visit {
    hits_max: usize,
    rows_max: usize,
    /// No further content is looked at once they add up to this.
    bytes_max: usize,
    /// Of the search index.
    slabs_max: usize,
    sort: Option<Sort>,
}

impl Visit {
    const fn of(hits_max: usize) -> Visit {
        Visit {
            hits_max,
            rows_max: SEARCH_VISIT_ROWS_MAX,
            bytes_max: SEARCH_VISIT_BYTES_MAX,
            slabs_max: SEARCH_VISIT_SLABS_MAX,
            sort: None,
        }
    }
}

pub(super) fn items(
    connection: &Connection,
    filter: &Filter,
    limit: usize,
    search_index: &Arc<SearchIndex>,
) -> Result<ItemPage> {
    page(connection, filter, Visit::of(limit), candidates(filter, search_index))
}

pub(super) fn ranks(
    connection: &Connection,
    filter: &Filter,
    sort: Sort,
    search_index: &Arc<SearchIndex>,
) -> Result<RankPage> {
    let visit = Visit { sort: Some(sort), ..Visit::of(usize::MAX) };
    let candidates = candidates(filter, search_index);
    let _moment = connection.unchecked_transaction().map_err(|error| failed(&error))?;
    let (hits, next) = visited(connection, filter, visit, candidates)?;
    let rank = |Hit { created_entry, key, sort_key }: Hit| {
        let key_missing = || StoreError::Damaged("a row has nothing to sort it by".into());
        let rank = Rank { key: sort_key.ok_or_else(key_missing)?, created_entry: Reverse(created_entry) };
        Ok((rank, from_key(&key)?))
    };
    Ok(RankPage { ranks: hits.into_iter().map(rank).collect::<Result<_>>()?, next })
}

pub(super) fn items_of(connection: &Connection, ids: &[ItemId]) -> Result<Vec<Listed>> {
    let _moment = connection.unchecked_transaction().map_err(|error| failed(&error))?;
    let sql = "SELECT created_entry FROM item WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(|error| failed(&error))?;
    let mut listed = Vec::with_capacity(ids.len());
    for id in ids {
        let created_entry = statement.query_row([to_key(id)], |row| index(row, 0)).optional();
        if let Some(created_entry) = created_entry.map_err(|error| failed(&error))? {
            listed.push(Listed { item: created(connection, created_entry)?, created_entry });
        }
    }
    Ok(listed)
}

pub(super) fn count(connection: &Connection, filter: &Filter) -> Result<Option<u64>> {
    count_within(connection, filter, COUNTED_ITEMS_MAX as u64)
}

fn count_within(connection: &Connection, filter: &Filter, mut rows_left: u64) -> Result<Option<u64>> {
    if !Sought::of(filter).is_nothing() {
        return Ok(None);
    }
    let _moment = connection.unchecked_transaction().map_err(|error| failed(&error))?;
    let mut total = 0;
    for Source { from, rows } in sources(filter) {
        let wanted = wanted(filter);
        let sql = format!(
            "SELECT count(*), coalesce(sum(wanted), 0) FROM (SELECT {} AS wanted FROM {from} WHERE {} LIMIT {})",
            wanted.text(),
            rows.text(),
            rows_left + 1
        );
        let mut statement = connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
        let values = rusqlite::params_from_iter(wanted.values.iter().chain(&rows.values));
        let counts = statement.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)));
        let (seen, found): (i64, i64) = counts.map_err(|error| failed(&error))?;
        match rows_left.checked_sub(counted(seen)?) {
            Some(left) => rows_left = left,
            None => return Ok(None),
        }
        total += counted(found)?;
    }
    Ok(Some(total))
}

/// What the search index says of the searched text. Taken before the snapshot of the search.
fn candidates(filter: &Filter, search_index: &Arc<SearchIndex>) -> Option<Candidates> {
    Sought::of(filter).text().and_then(|text| search_index.candidates(text))
}

/// Adds what the search index does not cover. `None` if that is too much, and every item has to be looked at.
fn completed(connection: &Connection, filter: &Filter, mut candidates: Candidates) -> Result<Option<Candidates>> {
    let (covered, size) = (candidates.size(), read::size(connection)?);
    let unindexed = size.saturating_sub(covered);
    if unindexed > SEARCH_UNINDEXED_TOLERATED {
        candidates.signal().bring_up_to_date();
    }
    if unindexed > SEARCH_UNINDEXED_MAX {
        return Ok(None);
    }
    for created_entry in read::edited(connection, covered, size)? {
        candidates.add(created_entry);
    }
    if let Some(ids) = Sought::of(filter).text().and_then(ids_beginning_with) {
        let created = read::created_with_ids(connection, &ids, SEARCH_IDS_MAX + 1)?;
        if created.len() > SEARCH_IDS_MAX {
            return Ok(None);
        }
        for created_entry in created {
            candidates.add(created_entry);
        }
    }
    Ok(Some(candidates))
}

fn visited(
    connection: &Connection,
    filter: &Filter,
    visit: Visit,
    candidates: Option<Candidates>,
) -> Result<(Vec<Hit>, Option<u64>)> {
    let completed = candidates.map(|candidates| completed(connection, filter, candidates));
    let mut candidates = completed.transpose()?.flatten();
    let mut found = Vec::new();
    // Where one source stopped, the others must stop too, so they need not look beyond.
    let mut after = None;
    for Source { from, mut rows } in sources(filter) {
        if let Some(after) = after {
            rows = rows.and("i.created_entry > ?", Some(Box::new(bound(after))));
        }
        let of_source = look(connection, filter, Source { from, rows }, visit, candidates.as_mut())?;
        after = after.max(of_source.stopped_at);
        found.push(of_source);
    }
    Ok(merge(&found, visit.hits_max))
}

fn page(connection: &Connection, filter: &Filter, visit: Visit, candidates: Option<Candidates>) -> Result<ItemPage> {
    // One snapshot for the search and for the items shown. It ends when it goes out of scope.
    let _moment = connection.unchecked_transaction().map_err(|error| failed(&error))?;
    let (hits, next) = visited(connection, filter, visit, candidates)?;
    let read = |Hit { created_entry, .. }: Hit| Ok(Listed { item: created(connection, created_entry)?, created_entry });
    Ok(ItemPage { items: hits.into_iter().map(read).collect::<Result<_>>()?, next })
}

fn created(connection: &Connection, entry: u64) -> Result<Item> {
    let found = read::item_created(connection, entry)?;
    found.ok_or_else(|| StoreError::Damaged(format!("the item of entry {entry} exists only in an index")))
}

/// The newest of all sources. Where one source stopped, the others must stop too: what it would have found beyond is
/// missing.
fn merge(found: &[Found], limit: usize) -> (Vec<Hit>, Option<u64>) {
    let stopped_at = found.iter().filter_map(|found| found.stopped_at).max();
    let mut hits: Vec<_> = found.iter().flat_map(|found| found.hits.iter().cloned()).collect();
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
    vec![Source { from: "item i", rows: Condition::default() }]
}

/// Everything that was asked for and is in a column, even if the source already guarantees part of it.
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
    wanted
}

fn look(
    connection: &Connection,
    filter: &Filter,
    Source { from, rows }: Source,
    visit: Visit,
    candidates: Option<&mut Candidates>,
) -> Result<Found> {
    let rows = rows.and("i.created_entry <= ?", None);
    let wanted = wanted(filter);
    let sql = query(from, &wanted, &rows);
    let mut statement = connection.prepare_cached(&sql).map_err(|error| failed(&error))?;
    let content = "SELECT data FROM document WHERE entry = ?1 AND kind = 0";
    let content = connection.prepare_cached(content).map_err(|error| failed(&error))?;
    let sift = Sift { content, sought: Sought::of(filter), bytes: 0 };
    let mut gaze = Gaze { visit, sift, candidates, looked_at: 0, last: None, hits: Vec::new() };
    if let Some(candidates) = &mut gaze.candidates {
        candidates.allow(visit.slabs_max);
    }
    let mut from = filter.before.map_or(Some(i64::MAX), |before| bound(before).checked_sub(1));
    let mut stopped_at = None;
    while let Some(at) = from.take() {
        let values = wanted.values.iter().chain(&rows.values).map(AsRef::as_ref).chain([&at as &dyn ToSql]);
        let mut rows = statement.query(rusqlite::params_from_iter(values)).map_err(|error| failed(&error))?;
        while let Some(row) = rows.next().map_err(|error| failed(&error))? {
            match gaze.at(row)? {
                Step::On => {}
                Step::To(entry) => {
                    from = Some(bound(entry));
                    break;
                }
                Step::Stop(at) => {
                    stopped_at = at;
                    break;
                }
            }
        }
    }
    Ok(Found { hits: gaze.hits, stopped_at })
}

/// What comes after a row.
enum Step {
    /// The next row.
    On,
    /// No row is wanted that was created after this entry.
    To(u64),
    /// Nothing. If there may be more, the entry before which it would be.
    Stop(Option<u64>),
}

/// Goes from row to row.
struct Gaze<'g> {
    visit: Visit,
    sift: Sift<'g>,
    /// If not every row may be wanted.
    candidates: Option<&'g mut Candidates>,
    looked_at: usize,
    /// Everything created by this entry or later was looked at.
    last: Option<u64>,
    hits: Vec<Hit>,
}

impl Gaze<'_> {
    fn at(&mut self, row: &rusqlite::Row<'_>) -> Result<Step> {
        if self.looked_at == self.visit.rows_max || self.sift.bytes >= self.visit.bytes_max {
            return Ok(Step::Stop(self.last));
        }
        self.looked_at += 1;
        let created_entry = index(row, 0).map_err(|error| failed(&error))?;
        let place = self.candidates.as_mut().map(|candidates| candidates.at_or_before(created_entry));
        match place {
            Some(Place::Nowhere) => return Ok(Step::Stop(None)),
            Some(Place::Unknown(before)) => return Ok(Step::Stop(Some(before))),
            Some(Place::At(entry)) if entry < created_entry => {
                self.last = Some(entry + 1);
                return Ok(Step::To(entry));
            }
            None | Some(Place::At(_)) => {}
        }
        if row.get(2).map_err(|error| failed(&error))? && self.sift.is_wanted(row)? {
            if self.hits.len() == self.visit.hits_max {
                // There are more, and the next page begins after the last one shown.
                return Ok(Step::Stop(self.hits.last().map(|hit| hit.created_entry)));
            }
            let sort_key = self.visit.sort.map(|sort| sort_key(sort, row)).transpose();
            let sort_key = sort_key.map_err(|error| failed(&error))?;
            let key = row.get(1).map_err(|error| failed(&error))?;
            self.hits.push(Hit { created_entry, key, sort_key });
        }
        self.last = Some(created_entry);
        Ok(Step::On)
    }
}

/// Looks at texts, and counts the bytes of the contents it had to read for that.
struct Sift<'c> {
    /// Reads the content of an item.
    content: CachedStatement<'c>,
    sought: Sought,
    bytes: usize,
}

impl Sift<'_> {
    fn is_wanted(&mut self, row: &rusqlite::Row<'_>) -> Result<bool> {
        if self.sought.is_nothing() {
            return Ok(true);
        }
        let text = |column| row.get_ref(column).and_then(|value| value.as_str().map_err(Into::into));
        let key = row.get(1).map_err(|error| failed(&error))?;
        let title = text(3).map_err(|error| failed(&error))?;
        let created_by = text(4).map_err(|error| failed(&error))?;
        let texts = Texts { key, title, created_by };
        if let Some(is_wanted) = self.sought.in_row(&texts) {
            return Ok(is_wanted);
        }
        let mut rows = row.get::<_, i64>(5).and_then(|entry| self.content.query([entry]));
        let rows = rows.as_mut().map_err(|error| failed(error))?;
        let found = rows.next().map_err(|error| failed(&error))?;
        let content = found.map(|row| row.get_ref(0).and_then(|data| data.as_blob_or_null().map_err(Into::into)));
        let content = content.transpose().map_err(|error| failed(&error))?.flatten();
        self.bytes += content.map_or(0, <[u8]>::len);
        self.sought.in_content(&texts, content)
    }
}

fn sort_key(sort: Sort, row: &rusqlite::Row<'_>) -> rusqlite::Result<SortKey> {
    let title = row.get_ref(3)?;
    Ok(SortKey::new(sort, index(row, 6)?, row.get(7)?, title.as_str()?))
}

fn query(from: &str, wanted: &Condition, rows: &Condition) -> String {
    let (wanted, rows) = (wanted.text(), rows.text());
    format!(
        "SELECT i.created_entry, i.id, {wanted}, i.title, i.created_by, i.content_entry, i.last_entry, i.due_at \
         FROM {from} WHERE {rows} ORDER BY i.created_entry DESC"
    )
}

#[cfg(test)]
mod indexed;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

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
            let page = page(connection, &filter, Visit { rows_max, ..Visit::of(limit) }, None).unwrap();
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

    /// Every item gets a content of a kibibyte, and the last one created has a word of its own.
    fn with_contents(connection: &Connection, items: u64) {
        for number in 0..items {
            let word = if number == 0 { "rare" } else { "usual" };
            let risk = if number % 2 == 0 { "low" } else { "high" };
            let filling = "x".repeat(1024);
            let content =
                format!(r#"{{"nonce":"0","payload":{{"a":["{filling}","{word}"],"risk":"{risk}"}},"title":"hay"}}"#);
            let sql = "INSERT INTO document VALUES (?1, 0, ?2)";
            connection.execute(sql, (bound(number), content.into_bytes())).unwrap();
            let sql = "UPDATE item SET content_entry = ?1 WHERE created_entry = ?1";
            connection.execute(sql, [bound(number)]).unwrap();
        }
    }

    #[test]
    fn a_search_of_contents_ends_its_visit_after_so_many_bytes_and_finds_everything_in_the_end() {
        let connection = database(300);
        with_contents(&connection, 300);
        let search = |filter: &Filter| {
            let (mut filter, mut found, mut visits) = (filter.clone(), Vec::new(), 0);
            loop {
                let visit = Visit { bytes_max: 20 * 1024, ..Visit::of(50) };
                let page = page(&connection, &filter, visit, None).unwrap();
                found.extend(page.items.into_iter().map(|listed| listed.item.id));
                visits += 1;
                match page.next {
                    Some(next) => filter.before = Some(next),
                    None => return (found, visits),
                }
            }
        };
        let text = |text: &str| Filter { text: Some(text.into()), ..Filter::default() };
        let (found, visits) = search(&text("RARE"));
        assert_eq!(found, [id(0)]);
        assert!((15..=20).contains(&visits), "300 contents of about a kibibyte, 20 KiB a visit: {visits} visits");
        let low = Filter { risk: Some("low".into()), ..text("usual") };
        let expected: Vec<_> = (0..300).rev().filter(|number| number % 2 == 0 && *number != 0).map(id).collect();
        assert_eq!(search(&low).0, expected);
        // What the title already shows costs no content.
        let (found, visits) = search(&text("needle"));
        assert_eq!(found.len(), 6);
        assert!(visits >= 14, "{visits}");
    }

    #[test]
    fn a_page_of_ended_items_does_not_look_through_the_open_ones() {
        let mut connection = database(3_000);
        let steps = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&steps);
        let count = move || counted.fetch_add(1, Ordering::Relaxed) == u32::MAX;
        connection.progress_handler(1, Some(count)).unwrap();
        let closed = Filter { state: Some("closed".into()), ..Filter::default() };
        let page = page(&connection, &closed, Visit::of(5), None).unwrap();
        let expected: Vec<_> = (0..3_000).rev().filter(|number| number % 3 == 0).take(5).map(id).collect();
        assert_eq!(page.items.into_iter().map(|listed| listed.item.id).collect::<Vec<_>>(), expected);
        let steps = steps.load(Ordering::Relaxed);
        assert!(steps < 3_000, "{steps} steps, and there are 2,000 open items");
    }

    #[test]
    fn a_list_of_more_than_can_be_counted_has_no_total() {
        let connection = database(10);
        let closed = Filter { state: Some("closed".into()), ..Filter::default() };
        assert_eq!(count_within(&connection, &Filter::default(), 10).unwrap(), Some(10));
        assert_eq!(count_within(&connection, &Filter::default(), 9).unwrap(), None);
        // Rows that had to be looked at count, not only those that matched.
        assert_eq!(count_within(&connection, &closed, 10).unwrap(), Some(4));
        assert_eq!(count_within(&connection, &closed, 9).unwrap(), None);
    }

    #[test]
    fn a_page_that_ends_with_the_last_item_says_so() {
        let connection = database(10);
        let page = page(&connection, &Filter::default(), Visit { rows_max: 10, ..Visit::of(10) }, None).unwrap();
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
