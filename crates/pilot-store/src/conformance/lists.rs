//! Lists: which items are in them, and in which order.

use std::sync::Arc;

use pilot_core::item::ItemId;
use pilot_core::role::Role;

use super::{ANA, Cast, Engine, recorded, remark};
use crate::{Filter, Sort, Store};

pub async fn items_are_found_by_what_is_known_of_them(engine: &dyn Engine) {
    let (store, cast) = (engine.open(), Arc::new(Cast::default()));
    let mut ids = Vec::new();
    for (number, title) in ["100% sure", "100 sure", "a_b", "axb", "back\\slash", "ÄRGER", "plain"].iter().enumerate()
    {
        let by = if number % 2 == 0 { "ana" } else { "ada" };
        ids.push(cast.create(&*store, title, by, "low").await);
    }
    cast.act(&*store, &ids[0], ANA, "submit").await;
    cast.act(&*store, &ids[2], ANA, "withdraw").await;
    let found = async |filter: Filter| -> Vec<usize> {
        let items = store.items(filter, 100).await.unwrap();
        items.iter().map(|listed| ids.iter().position(|id| *id == listed.item.id).unwrap()).collect()
    };
    let text = |text: &str| Filter { text: Some(text.to_owned()), ..Filter::default() };
    assert_eq!(found(Filter::default()).await, [6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(found(text("100%")).await, [0]);
    assert_eq!(found(text("a_b")).await, [2]);
    assert_eq!(found(text("\\")).await, [4]);
    assert_eq!(found(text("PLAIN")).await, [6]);
    assert_eq!(found(text(ids[3].as_str())).await, [3]);
    assert_eq!(found(text("nothing like it")).await, [0; 0]);
    assert_eq!(found(text("ärger")).await, [5]);
    assert_eq!(found(text("ADA")).await, [5, 3, 1]);
    // These ids differ only in their ends.
    assert_eq!(found(text(&ids[3].as_str()[..8])).await, [6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(found(text(&ids[3].as_str()[..7])).await, [0; 0], "too short to be the beginning of an id");
    assert_eq!(found(text(&ids[3].as_str()[1..])).await, [0; 0]);
    assert_eq!(found(text("LOW")).await, [6, 5, 4, 3, 2, 1, 0], "the payload is searched");
    assert_eq!(found(text("rollback_plan")).await, [0; 0], "but not the names of its members");
    let risk = |risk: &str| Filter { risk: Some(risk.to_owned()), ..Filter::default() };
    assert_eq!(found(Filter { created_by: Some("ada".into()), ..risk("low") }).await, [5, 3, 1]);
    assert_eq!(found(risk("high")).await, [0; 0]);
    assert_eq!(found(Filter { state: Some("submitted".into()), ..Filter::default() }).await, [0]);
    assert_eq!(found(Filter { created_by: Some("ada".into()), ..Filter::default() }).await, [5, 3, 1]);
    assert_eq!(found(Filter { workflow: Some("emergency-operation".into()), ..Filter::default() }).await, [0; 0]);
    assert_eq!(found(Filter { waits_for: Some(Role::Approver), ..Filter::default() }).await, [0]);
    let initiators = Filter { waits_for: Some(Role::Initiator), created_by: Some("ana".into()), ..Filter::default() };
    assert_eq!(found(initiators).await, [6, 4], "an item that has ended waits for nobody");
    let (mut seen, mut filter) = (Vec::new(), Filter::default());
    loop {
        let page = store.items(filter.clone(), 3).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.created_entry);
        seen.extend(page.into_iter().map(|listed| listed.item.id));
    }
    ids.reverse();
    assert_eq!(seen, ids);
}

/// An item that is created later has a smaller id here: lists go by the ledger, and an id says nothing.
pub async fn lists_go_by_order_of_creation_whatever_the_ids_are(engine: &dyn Engine) {
    let (mut store, cast) = (engine.open(), Arc::new(Cast::default()));
    let mut made = Vec::new();
    for number in 0..12_u64 {
        let id: ItemId = format!("01890a5d-ac96-774b-bcce-{:012x}", 99 - number).parse().unwrap();
        let (by, title) = (if number % 2 == 0 { "ana" } else { "ada" }, format!("title {}", number % 3));
        let created_entry = recorded(&*store, cast.creation(&id, &title, by, "low")).await;
        made.push(Made { id: id.clone(), title, by, state: "draft", created_entry });
        recorded(&*store, remark(number)).await;
    }
    // Not in order of creation, and the first comes last.
    for (place, action, state) in [
        (6, "submit", "submitted"),
        (2, "submit", "submitted"),
        (8, "withdraw", "withdrawn"),
        (4, "withdraw", "withdrawn"),
        (0, "submit", "submitted"),
    ] {
        cast.act(&*store, &made[place].id, ANA, action).await;
        made[place].state = state;
    }
    for _ in 0..2 {
        for filter in filters(&made) {
            let expected: Vec<_> = made.iter().rev().filter(|made| made.matches(&filter)).collect();
            for limit in [1, 2, 5, 100] {
                check_pages(&*store, &filter, limit, &expected).await;
            }
            check_earlier(&*store, &filter, &expected).await;
        }
        // No time passes here, so all drafts are due together, and so are all that were submitted.
        let later = engine.clock().now().plus(std::time::Duration::from_hours(24 * 31));
        let in_state = |state: &'static str| made.iter().filter(move |made| made.state == state);
        let expected: Vec<_> = in_state("submitted").chain(in_state("draft")).map(|made| made.id.clone()).collect();
        assert_eq!(store.due(later, 100).await.unwrap(), expected);
        drop(store);
        store = engine.open();
    }
}

pub async fn a_sorted_list_has_every_item_once_and_a_count_is_exact(engine: &dyn Engine) {
    let (store, clock, cast) = (engine.open(), engine.clock(), Arc::new(Cast::default()));
    let mut ids = Vec::new();
    for title in ["delta", "Bravo", "alpha", "Charlie", "bravo", "echo"] {
        ids.push(cast.create(&*store, title, "ana", "low").await);
        clock.step(10);
    }
    // A draft is due after thirty days, what is submitted after three, and what has ended never.
    for (place, action) in [(4, "submit"), (1, "submit"), (0, "withdraw"), (2, "withdraw")] {
        cast.act(&*store, &ids[place], ANA, action).await;
        clock.step(10);
    }
    let sorted = async |filter: Filter, sort: Sort| -> Vec<usize> {
        let page = store.ranks_page(filter, sort).await.unwrap();
        assert_eq!(page.next, None);
        let mut ranks = page.ranks;
        ranks.sort();
        ranks.iter().map(|(_, found)| ids.iter().position(|id| id == found).unwrap()).collect()
    };
    assert_eq!(sorted(Filter::default(), Sort::Updated).await, [2, 0, 1, 4, 5, 3]);
    assert_eq!(sorted(Filter::default(), Sort::Due).await, [4, 1, 3, 5, 2, 0]);
    assert_eq!(sorted(Filter::default(), Sort::Title).await, [2, 4, 1, 3, 0, 5]);
    let bravo = Filter { text: Some("BRAVO".into()), ..Filter::default() };
    assert_eq!(sorted(bravo.clone(), Sort::Updated).await, [1, 4]);
    let drafts = Filter { state: Some("draft".into()), ..Filter::default() };
    assert_eq!(sorted(drafts.clone(), Sort::Title).await, [3, 5]);
    let mut items = store.items_of(vec![ids[3].clone(), ids[0].clone(), cast.id()]).await.unwrap();
    items.sort_by_key(|listed| listed.created_entry);
    assert_eq!(items.iter().map(|listed| &listed.item.id).collect::<Vec<_>>(), [&ids[0], &ids[3]]);
    let count = async |filter: Filter| store.items_count(filter).await.unwrap();
    assert_eq!(count(Filter::default()).await, Some(6));
    assert_eq!(count(drafts).await, Some(2));
    assert_eq!(count(Filter { waits_for: Some(Role::Approver), ..Filter::default() }).await, Some(2));
    assert_eq!(count(Filter { created_by: Some("ada".into()), ..Filter::default() }).await, Some(0));
    assert_eq!(count(bravo).await, None, "texts are not counted");
}

struct Made {
    id: ItemId,
    title: String,
    by: &'static str,
    state: &'static str,
    created_entry: u64,
}

impl Made {
    fn matches(&self, filter: &Filter) -> bool {
        let waits = match filter.waits_for {
            None => true,
            Some(Role::Initiator) => self.state == "draft",
            Some(role) => role == Role::Approver && self.state == "submitted",
        };
        waits
            && filter.state.as_deref().is_none_or(|state| state == self.state)
            && filter.created_by.as_deref().is_none_or(|by| by == self.by)
            && filter.text.as_deref().is_none_or(|text| self.title.contains(text) || self.id.as_str() == text)
    }
}

/// Every combination of what can be asked for.
fn filters(made: &[Made]) -> Vec<Filter> {
    let mut filters = Vec::new();
    for state in [None, Some("draft"), Some("submitted"), Some("withdrawn")] {
        for created_by in [None, Some("ana")] {
            for waits_for in [None, Some(Role::Initiator), Some(Role::Approver)] {
                for text in [None, Some("e 1"), Some(made[6].id.as_str())] {
                    for workflow in [None, Some("controlled-operation")] {
                        filters.push(Filter {
                            state: state.map(str::to_owned),
                            workflow: workflow.map(str::to_owned),
                            created_by: created_by.map(str::to_owned),
                            waits_for,
                            risk: None,
                            text: text.map(str::to_owned),
                            before: None,
                        });
                    }
                }
            }
        }
    }
    filters
}

async fn check_pages(store: &dyn Store, filter: &Filter, limit: usize, expected: &[&Made]) {
    let (mut filter, mut found) = (filter.clone(), Vec::new());
    loop {
        let page = store.items_page(filter.clone(), limit).await.unwrap();
        assert!(page.items.len() <= limit, "{filter:?}");
        found.extend(page.items.into_iter().map(|listed| (listed.item.id, listed.created_entry)));
        filter.before = page.next;
        if page.next.is_none() {
            break;
        }
    }
    let expected: Vec<_> = expected.iter().map(|made| (made.id.clone(), made.created_entry)).collect();
    assert_eq!(found, expected, "{filter:?} in pages of {limit}");
}

/// Whatever entry a list is to begin before: one that created an item, or another.
async fn check_earlier(store: &dyn Store, filter: &Filter, expected: &[&Made]) {
    let size = store.head().borrow().size();
    for before in (0..=size).chain([u64::MAX]) {
        let filter = Filter { before: Some(before), ..filter.clone() };
        let found: Vec<_> =
            store.items(filter.clone(), 100).await.unwrap().into_iter().map(|listed| listed.item.id).collect();
        let earlier = expected.iter().filter(|made| made.created_entry < before);
        assert_eq!(found, earlier.map(|made| made.id.clone()).collect::<Vec<_>>(), "{filter:?}");
    }
}

pub async fn what_is_due_comes_earliest_first(engine: &dyn Engine) {
    let (store, clock, cast) = (engine.open(), engine.clock(), Arc::new(Cast::default()));
    let mut ids = Vec::new();
    for title in ["first", "second", "third"] {
        ids.push(cast.create(&*store, title, "ana", "low").await);
        clock.step(10);
    }
    assert!(store.due(clock.now(), 10).await.unwrap().is_empty());
    // Submitting moves a deadline from thirty days to three: the last becomes the first.
    cast.act(&*store, &ids[2], ANA, "submit").await;
    let later = clock.now().plus(std::time::Duration::from_hours(24 * 31));
    let expected = [&ids[2], &ids[0], &ids[1]].map(Clone::clone);
    assert_eq!(store.due(later, 10).await.unwrap(), expected);
    assert_eq!(store.due(later, 2).await.unwrap(), expected[..2]);
    let days = |days: u64| clock.now().plus(std::time::Duration::from_hours(24 * days));
    assert_eq!(store.due_within(days(2), days(3), 10).await.unwrap(), expected[..1]);
    assert_eq!(store.due_within(days(3), later, 10).await.unwrap(), expected[1..]);
    assert_eq!(store.due_within(days(2), later, 2).await.unwrap(), expected[..2]);
    assert!(store.due_within(later, days(60), 10).await.unwrap().is_empty());
    cast.act(&*store, &ids[0], ANA, "withdraw").await;
    assert_eq!(store.due(later, 10).await.unwrap(), [ids[2].clone(), ids[1].clone()]);
}
