//! Several nodes as one store: every call goes to the next node, and what one has recorded is waited for on all.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pilot_core::item::{Item, ItemId};
use pilot_core::time::Time;
use pilot_evidence::merkle::{Edge, Hash};
use pilot_store::{
    Filter, ItemPage, Listed, Outcome, Pending, Pulse, RangeEnd, RankPage, Result, ShownItem, Sort, Store,
    StoredDefinition, StoredEntry, Write,
};
use tokio::sync::watch;

/// Far more than a node ever needs, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Several {
    nodes: Vec<Arc<dyn Store>>,
    next: AtomicUsize,
}

impl Several {
    pub fn new(nodes: Vec<Arc<dyn Store>>) -> Several {
        Several { nodes, next: AtomicUsize::new(0) }
    }

    fn next(&self) -> &Arc<dyn Store> {
        &self.nodes[self.next.fetch_add(1, Ordering::Relaxed) % self.nodes.len()]
    }
}

impl Store for Several {
    fn settle(&self, write: Write) -> Pending<'_, Outcome> {
        let pending = self.next().settle(write);
        Box::pin(async move {
            let outcome = pending.await?;
            if let Outcome::Recorded { entry, .. } = &outcome {
                for node in &self.nodes {
                    let mut head = node.head();
                    let knows = head.wait_for(|edge| edge.size() > entry.index);
                    tokio::time::timeout(PATIENCE, knows).await.expect("every node follows").unwrap();
                }
            }
            Ok(outcome)
        })
    }

    fn item(&self, id: ItemId) -> Pending<'_, Option<Arc<Item>>> {
        self.next().item(id)
    }

    fn items_page(&self, filter: Filter, limit: usize) -> Pending<'_, ItemPage> {
        self.next().items_page(filter, limit)
    }

    fn ranks_page(&self, filter: Filter, sort: Sort) -> Pending<'_, RankPage> {
        self.next().ranks_page(filter, sort)
    }

    fn items_of(&self, ids: Vec<ItemId>) -> Pending<'_, Vec<Listed>> {
        self.next().items_of(ids)
    }

    fn items_count(&self, filter: Filter) -> Pending<'_, Option<u64>> {
        self.next().items_count(filter)
    }

    fn history(&self, id: ItemId) -> Pending<'_, Vec<StoredEntry>> {
        self.next().history(id)
    }

    fn shown_item(&self, id: ItemId, fact: String) -> Pending<'_, Option<ShownItem>> {
        self.next().shown_item(id, fact)
    }

    fn newest_entries(&self, id: ItemId, before: Option<u64>, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.next().newest_entries(id, before, limit)
    }

    fn history_page(&self, id: ItemId, after: Option<u64>, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.next().history_page(id, after, limit)
    }

    fn entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.next().entries(from, limit)
    }

    fn whole_entries(&self, from: u64, limit: usize) -> Pending<'_, Vec<StoredEntry>> {
        self.next().whole_entries(from, limit)
    }

    fn whole_entries_at(&self, indices: Vec<u64>) -> Pending<'_, Vec<StoredEntry>> {
        self.next().whole_entries_at(indices)
    }

    fn places(&self, id: ItemId) -> Pending<'_, Vec<u64>> {
        self.next().places(id)
    }

    fn earlier_places(&self, first: u64, entries: Range<u64>) -> Pending<'_, Vec<u64>> {
        self.next().earlier_places(first, entries)
    }

    fn leaves(&self, from: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        self.next().leaves(from, count)
    }

    fn due(&self, now: Time, limit: usize) -> Pending<'_, Vec<ItemId>> {
        self.next().due(now, limit)
    }

    fn due_within(&self, after: Time, until: Time, limit: usize) -> Pending<'_, Vec<ItemId>> {
        self.next().due_within(after, until, limit)
    }

    fn row(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        self.next().row(level, start, count)
    }

    fn tile(&self, level: u8, start: u64, count: u64) -> Pending<'_, Vec<Hash>> {
        self.next().tile(level, start, count)
    }

    fn inclusions(&self, indices: Vec<u64>, size: u64) -> Pending<'_, Vec<Vec<Hash>>> {
        self.next().inclusions(indices, size)
    }

    fn keep_definitions(&self, definitions: Vec<StoredDefinition>) -> Pending<'_, Vec<StoredDefinition>> {
        self.next().keep_definitions(definitions)
    }

    fn fact(&self, name: &'static str) -> Pending<'_, Option<Vec<u8>>> {
        self.next().fact(name)
    }

    fn facts(&self, beginning: &'static str) -> Pending<'_, Vec<(String, Vec<u8>)>> {
        self.next().facts(beginning)
    }

    fn facts_in(&self, names: Range<String>, from: RangeEnd, limit: usize) -> Pending<'_, Vec<(String, Vec<u8>)>> {
        self.next().facts_in(names, from, limit)
    }

    fn head(&self) -> watch::Receiver<Arc<Edge>> {
        self.nodes[0].head()
    }

    fn check(&self) -> Result<()> {
        self.nodes.iter().try_for_each(|node| node.check())
    }

    fn pulse(&self) -> Pulse {
        self.nodes[0].pulse()
    }

    fn distrust(&self, cause: &str) {
        self.nodes.iter().for_each(|node| node.distrust(cause));
    }

    fn stop(&self) -> Result<()> {
        self.nodes.iter().try_for_each(|node| node.stop())
    }
}
