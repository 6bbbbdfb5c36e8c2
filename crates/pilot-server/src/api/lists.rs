//! Lists of items: filtered, searched, sorted, page by page.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::LINK;
use pilot_api::items::{ItemSummaryView, ItemView};
use pilot_core::actor::Actor;
use pilot_core::decide::actions_for;
use pilot_core::fault::Fault;
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::{
    ACTOR_BYTES_HELD_MAX, COUNTED_ITEMS_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX, SEARCH_ROWS_MAX, SEARCH_VISIT_ROWS_MAX,
    SMALL_BODY_BYTES_MAX, SUMMARIES_MAX,
};
use pilot_core::time::Time;
use pilot_store::{Filter, Listed, Rank, RankPage, Sort, Store};

use crate::api::answers::{link, page};
use crate::api::cursor;
use crate::api::request::{Query, read_item_id};
use crate::app::App;
use crate::budget::Share;
use crate::call::{Answer, Call};
use crate::problem::Problem;

const PAGE_ITEMS: u64 = 50;
/// How many times one request returns to the store to search; other requests get their turn in between.
const VISITS_MAX: usize = SEARCH_ROWS_MAX / SEARCH_VISIT_ROWS_MAX;
/// How many items are read in one visit: each may be as large as a payload.
const ITEMS_AT_ONCE: usize = 50;
const PARAMETERS: [&str; 10] =
    ["state", "workflow", "created_by", "waiting_for", "risk", "q", "view", "sort", "limit", "cursor"];

pub async fn list_items(call: &mut Call) -> Answer {
    let asked = Asked::read(call)?;
    // A search keeps a reader of the store busy for long: each actor gets one at a time, and the others are left for
    // everyone else. Otherwise there is room for the page, and for the items that are being added to it.
    let bytes = if asked.is_search() { ACTOR_BYTES_HELD_MAX } else { 2 * PAGE_BYTES_MAX };
    let share = Box::pin(call.app.budget.take(&call.caller.actor.actor_id, bytes)).await?;
    let mut reading = Reading { view: Arc::new(View::new(call, &asked)), share: Some(share), page: Page::default() };
    let (next, total) = match asked.sort {
        None => Box::pin(reading.by_creation(&asked)).await?,
        Some(sort) => Box::pin(reading.sorted(&asked, sort)).await?,
    };
    let Reading { share, page: shown, .. } = reading;
    call.share = share;
    Ok(shown.answer(call.head.uri.query().unwrap_or(""), next, asked.is_summary.then_some(total)))
}

/// What the query asks for.
struct Asked {
    filter: Filter,
    is_inbox: bool,
    is_summary: bool,
    sort: Option<Sort>,
    /// Where a sorted list continues.
    after: Option<Rank>,
    limit: usize,
}

impl Asked {
    fn read(call: &Call) -> Result<Asked, Problem> {
        let query = Query::read(call, &PARAMETERS)?;
        let is_inbox = one_of(&query, "waiting_for", &[("me", true)])?.unwrap_or(false);
        let is_summary = one_of(&query, "view", &[("summary", true), ("full", false)])?.unwrap_or(false);
        let sorts = [
            ("created", None),
            ("updated", Some(Sort::Updated)),
            ("due", Some(Sort::Due)),
            ("title", Some(Sort::Title)),
        ];
        let sort = one_of(&query, "sort", &sorts)?.flatten();
        let most = if is_summary { SUMMARIES_MAX } else { PAGE_ITEMS_MAX };
        let limit = query.number("limit", 1, most as u64)?.unwrap_or(PAGE_ITEMS);
        let text = |name| query.get(name).map(str::to_owned);
        let (before, after) = match (query.get("cursor"), sort) {
            (None, _) => (None, None),
            (Some(cursor), None) => (Some(cursor::read(cursor)?), None),
            (Some(cursor), Some(sort)) => (None, Some(cursor::read_rank(cursor, sort)?)),
        };
        let filter = Filter {
            state: text("state"),
            workflow: text("workflow"),
            created_by: text("created_by"),
            waits_for: is_inbox.then_some(call.caller.actor.role),
            risk: text("risk"),
            text: query.get("q").filter(|text| !text.is_empty()).map(searched),
            before,
        };
        Ok(Asked { filter, is_inbox, is_summary, sort, after, limit: usize::try_from(limit).unwrap_or(most) })
    }

    fn is_search(&self) -> bool {
        self.is_inbox || self.sort.is_some() || self.looks_into_texts()
    }

    fn looks_into_texts(&self) -> bool {
        self.filter.text.is_some() || self.filter.risk.is_some()
    }

    fn is_first_page(&self) -> bool {
        self.filter.before.is_none() && self.after.is_none()
    }

    /// How many times the store is asked for items: as often as a full page needs, and then some for those that turn
    /// out not to be for the caller.
    fn visits_max(&self) -> usize {
        VISITS_MAX + self.limit.div_ceil(ITEMS_AT_ONCE)
    }
}

fn one_of<T: Copy>(query: &Query, name: &str, values: &[(&str, T)]) -> Result<Option<T>, Problem> {
    let Some(given) = query.get(name) else { return Ok(None) };
    let found = values.iter().find(|(value, _)| *value == given).map(|(_, meaning)| Some(*meaning));
    found.ok_or_else(|| {
        let known: Vec<_> = values.iter().map(|(value, _)| *value).collect();
        let detail = match known.as_slice() {
            [only] => format!("must be {only}"),
            _ => format!("must be one of {}", known.join(", ")),
        };
        Problem::invalid(vec![Fault::new(format!("/query/{name}"), detail)])
    })
}

/// Part of a text, or an id in the store's spelling.
fn searched(text: &str) -> String {
    read_item_id(text).map_or_else(|| text.to_owned(), |id| id.to_string())
}

/// A page while it is being filled. The share is handed to each visit and comes back with it.
struct Reading {
    view: Arc<View>,
    share: Option<Share>,
    page: Page,
}

type Next = Option<String>;
type Total = Option<u64>;

impl Reading {
    async fn by_creation(&mut self, asked: &Asked) -> Result<(Next, Total), Problem> {
        let (mut filter, mut next) = (asked.filter.clone(), None);
        let mut visits = 0;
        while visits < asked.visits_max() {
            visits += 1;
            // As many as there is room for; if only some will be for the caller, as many as can be.
            let wanted = if asked.is_inbox { asked.limit } else { asked.limit - self.page.shown }.min(ITEMS_AT_ONCE);
            let visited = filter.clone();
            let found = self.visit(|store| Box::pin(async move { store.items_page(visited, wanted).await })).await?;
            next = found.next;
            if let Some(left_out_from) = self.add(found.items).await? {
                next = Some(left_out_from);
            }
            if next.is_none() || self.page.is_full() {
                break;
            }
            filter.before = next;
        }
        let total = match asked {
            _ if !asked.is_summary => None,
            _ if asked.is_first_page() && next.is_none() => Some(self.page.shown as u64),
            _ if asked.is_inbox || asked.looks_into_texts() => None,
            _ => {
                let counted = Filter { before: None, ..asked.filter.clone() };
                self.visit(|store| Box::pin(async move { store.items_count(counted).await })).await?
            }
        };
        Ok((next.map(cursor::write), total))
    }

    /// A sorted list is made of the ranks of all items that match; only the items of the page are read.
    async fn sorted(&mut self, asked: &Asked, sort: Sort) -> Result<(Next, Total), Problem> {
        let mut ranks = self.ranks(asked, sort).await?;
        let total = (ranks.len() <= COUNTED_ITEMS_MAX).then_some(ranks.len() as u64);
        if let Some(after) = &asked.after {
            ranks.retain(|(rank, _)| rank > after);
        }
        let mut next = None;
        for some in ranks.chunks(ITEMS_AT_ONCE).take(asked.visits_max()) {
            if self.page.is_full() {
                break;
            }
            let ids: Vec<_> = some.iter().map(|(_, id)| id.clone()).collect();
            let found = self.visit(|store| Box::pin(async move { store.items_of(ids).await })).await?;
            let items = self.in_order(asked, some, found)?;
            next = match self.add(items).await? {
                Some(left_out_from) => some.iter().find(|(rank, _)| rank.created_entry.0 == left_out_from),
                None => some.last(),
            };
        }
        let is_end = match (next, ranks.last()) {
            (Some((last_seen, _)), Some((last, _))) => last_seen == last,
            _ => true,
        };
        let next = next.filter(|_| !is_end).map(|(rank, _)| cursor::write_rank(rank, sort));
        let total = match total {
            // Who an item waits for is known only of those that were read.
            _ if asked.is_inbox => (asked.is_first_page() && is_end).then_some(self.page.shown as u64),
            total => total,
        };
        Ok((next, total.filter(|_| asked.is_summary)))
    }

    async fn ranks(&mut self, asked: &Asked, sort: Sort) -> Result<Vec<(Rank, ItemId)>, Problem> {
        let mut gathered = Gathered::default();
        loop {
            let filter = Filter { before: gathered.before, ..asked.filter.clone() };
            let found = self.visit(|store| Box::pin(async move { store.ranks_page(filter, sort).await })).await?;
            if gathered.take(found)? {
                gathered.ranks.sort_unstable();
                return Ok(gathered.ranks);
            }
        }
    }

    /// Read a moment after they were ranked, so one or the other may have moved on and no longer belong here.
    fn in_order(&self, asked: &Asked, ranked: &[(Rank, ItemId)], found: Vec<Listed>) -> Result<Vec<Listed>, Problem> {
        let mut found: HashMap<_, _> = found.into_iter().map(|listed| (listed.created_entry, listed)).collect();
        let mut items = Vec::with_capacity(found.len());
        for (rank, _) in ranked {
            let Some(listed) = found.remove(&rank.created_entry.0) else { continue };
            let Filter { state, waits_for, .. } = &asked.filter;
            let is_in_state = state.as_deref().is_none_or(|state| *listed.item.state == *state);
            let definition = self.view.app.workflows.kept_by(&listed.item)?;
            let is_waiting = waits_for.is_none_or(|role| listed.item.waits_for(&definition).contains(&role));
            if is_in_state && is_waiting {
                items.push(listed);
            }
        }
        Ok(items)
    }

    /// One visit to the store. It holds the share until it is done, even if its caller hangs up: a caller who keeps
    /// asking and hanging up keeps one reader busy, not all of them.
    async fn visit<T: Send + 'static>(
        &mut self,
        ask: impl FnOnce(Arc<dyn Store>) -> pilot_store::Pending<'static, T>,
    ) -> Result<T, Problem> {
        let (answer, share) = (ask(Arc::clone(&self.view.app.ledger.store)), self.share.take());
        let visiting = tokio::spawn(async move { answer.await.map(|found| (found, share)) });
        let (found, share) = visiting.await.map_err(|error| Problem::internal(&error))??;
        self.share = share;
        Ok(found)
    }

    /// Adds items to the page, as far as there is room. If some are left out, returns the entry after which they come:
    /// that of the last one shown.
    async fn add(&mut self, items: Vec<Listed>) -> Result<Option<u64>, Problem> {
        let bytes: usize = items.iter().map(|listed| listed.item.payload.as_str().len()).sum();
        let (view, mut page) = (Arc::clone(&self.view), std::mem::take(&mut self.page));
        let adding = move || {
            let left_out_from = page.add(&view, items)?;
            Ok::<_, Problem>((left_out_from, page))
        };
        // What the caller may do with a draft depends on its whole payload.
        let (left_out_from, page) = if bytes <= 4 * SMALL_BODY_BYTES_MAX {
            adding()?
        } else {
            let View { app, caller, .. } = &*self.view;
            Box::pin(app.workshop.long(&caller.actor_id, adding)).await??
        };
        self.page = page;
        Ok(left_out_from)
    }
}

/// The ranks of everything that matches, if few enough visits find it all: a part of it in order would be a list that
/// hides items.
#[derive(Default)]
struct Gathered {
    visits: usize,
    before: Option<u64>,
    ranks: Vec<(Rank, ItemId)>,
}

impl Gathered {
    /// Whether that was everything.
    fn take(&mut self, found: RankPage) -> Result<bool, Problem> {
        self.ranks.extend(found.ranks);
        self.before = found.next;
        self.visits += 1;
        if self.before.is_some() && self.visits == VISITS_MAX {
            let detail = format!(
                "needs a list for which at most {SEARCH_ROWS_MAX} items are searched; narrow it down, or sort by created"
            );
            return Err(Problem::invalid(vec![Fault::new("/query/sort", detail)]));
        }
        Ok(self.before.is_none())
    }
}

/// For whom a page is made, and of what.
struct View {
    app: Arc<App>,
    caller: Actor,
    now: Time,
    is_inbox: bool,
    is_summary: bool,
    limit: usize,
}

impl View {
    fn new(call: &Call, asked: &Asked) -> View {
        let Asked { is_inbox, is_summary, limit, .. } = *asked;
        let now = call.app.ledger.clock.now();
        View { app: Arc::clone(&call.app), caller: call.caller.actor.clone(), now, is_inbox, is_summary, limit }
    }

    /// Whether it is the caller's turn: there is something they could do that would move the item forward.
    fn is_waited_for(&self, item: &Item) -> Result<bool, Problem> {
        let definition = self.app.workflows.kept_by(item)?;
        let actions = actions_for(&definition, item, &self.caller, self.now);
        // If a vote is in progress, the item waits only for those who have not voted.
        let votes = definition.rules().transitions.iter().filter(|rule| {
            rule.quorum.is_some() && rule.leads_from(&item.state) && rule.roles.contains(self.caller.role)
        });
        let mut votes = votes.peekable();
        Ok(if item.held || votes.peek().is_none() {
            actions.iter().any(|action| **action != *"hold")
        } else {
            votes.any(|rule| actions.contains(&rule.action))
        })
    }

    fn write(&self, item: &Item, text: &mut Vec<u8>) -> Result<(), Problem> {
        let definition = self.app.workflows.kept_by(item)?;
        let view = ItemView::new(&definition, item, &self.caller, self.now);
        let written = if self.is_summary {
            serde_json::to_writer(text, &ItemSummaryView::of(view))
        } else {
            serde_json::to_writer(text, &view)
        };
        written.map_err(|error| Problem::internal(&error))
    }
}

/// What a list shows, written item by item, so that each is freed once it is in the answer.
#[derive(Default)]
struct Page {
    text: Vec<u8>,
    shown: usize,
    /// The entry that created the last one shown.
    last: Option<u64>,
    has_limit_reached: bool,
}

impl Page {
    fn is_full(&self) -> bool {
        self.has_limit_reached || self.text.len() >= PAGE_BYTES_MAX
    }

    fn add(&mut self, view: &View, items: Vec<Listed>) -> Result<Option<u64>, Problem> {
        for Listed { item, created_entry } in items {
            if view.is_inbox && !view.is_waited_for(&item)? {
                continue;
            }
            if self.is_full() {
                return Ok(self.last);
            }
            if self.shown > 0 {
                self.text.push(b',');
            }
            view.write(&item, &mut self.text)?;
            self.shown += 1;
            self.last = Some(created_entry);
            self.has_limit_reached = self.shown == view.limit;
        }
        Ok(None)
    }

    /// `total` only for a view that has one.
    fn answer(self, query: &str, next: Next, total: Option<Total>) -> http::Response<pilot_wire::body::Body> {
        let mut text = Vec::with_capacity(self.text.len() + 128);
        text.extend_from_slice(b"{\"items\":[");
        text.extend_from_slice(&self.text);
        drop(self.text);
        let number = |number: Total| number.map_or_else(|| "null".to_owned(), |number| number.to_string());
        // A cursor is base64, and needs no escape.
        let cursor = next.as_ref().map_or_else(|| "null".to_owned(), |next| format!("\"{next}\""));
        let total = total.map_or_else(String::new, |total| format!(",\"total\":{}", number(total)));
        text.extend_from_slice(format!("],\"next\":{cursor}{total}}}").as_bytes());
        let mut response = page("application/json", text);
        if let Some(link) = next.and_then(|next| link("/v1/items", query, &next)) {
            response.headers_mut().insert(LINK, link);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_list_of_more_than_can_be_searched_is_refused() {
        let (mut gathered, page) = (Gathered::default(), |next| RankPage { ranks: Vec::new(), next });
        for visit in 1..VISITS_MAX {
            assert!(!gathered.take(page(Some(visit as u64))).unwrap_or(true));
        }
        assert!(gathered.take(page(Some(7))).is_err(), "as many rows as one request may look at, and there are more");
        let mut gathered = Gathered { visits: VISITS_MAX - 1, ..Gathered::default() };
        assert!(gathered.take(page(None)).unwrap_or(false), "as many rows, and there are no more");
    }
}
