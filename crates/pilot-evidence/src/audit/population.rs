//! The population: every item of a bundle, every entry about it, and samples that anyone can draw again.

use std::collections::{BTreeMap, BTreeSet};

use pilot_core::actor::ActorId;
use pilot_core::document::ContentDigest;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::{Definition, Name};
use sha2::{Digest as _, Sha256};

use crate::verify::{ItemVerdict, Outcome, Verdict};

/// One entry about an item.
pub(crate) struct Move {
    pub entry: u64,
    pub at: Time,
    pub item: ItemId,
    pub r#type: EntryType,
    pub action: Option<Name>,
    pub from: Option<Name>,
    pub to: Option<Name>,
    pub actor: Option<ActorId>,
    pub role: Option<Role>,
    pub comment: Option<ContentDigest>,
}

pub(crate) struct ItemRow {
    pub id: ItemId,
    /// Absent if it was left out.
    pub title: Option<String>,
    pub workflow: String,
    pub workflow_version: Option<u32>,
    pub definition: String,
    pub state: String,
    pub created_at: Time,
    pub created_by: String,
    pub ended_at: Option<Time>,
    pub first: u64,
    pub last: u64,
    pub entries: usize,
    pub people: Vec<(ActorId, Role)>,
    pub outcome: Outcome,
}

/// What the entries say about one item.
struct Tally {
    definition: Option<Name>,
    state: Option<Name>,
    created_at: Time,
    created_by: Option<ActorId>,
    ended_at: Option<Time>,
    first: u64,
    last: u64,
    entries: usize,
    people: BTreeSet<(ActorId, Role)>,
    is_inside: bool,
}

/// Collects items from entries in the order of the ledger.
#[derive(Default)]
pub(crate) struct Population {
    items: BTreeMap<ItemId, Tally>,
    /// Only if someone wants them: there are as many as entries.
    moves: Option<Vec<Move>>,
}

impl Population {
    pub(super) fn with_moves() -> Population {
        Population { moves: Some(Vec::new()), ..Population::default() }
    }

    pub(super) fn take(&mut self, entry: &Entry, definition: Option<&Definition>, is_inside: bool) {
        let Some(id) = &entry.item else { return };
        let tally = self.items.entry(id.clone()).or_insert_with(|| Tally::begun(entry));
        tally.take(entry, definition);
        tally.is_inside |= is_inside;
        let Some(moves) = &mut self.moves else { return };
        moves.push(Move {
            entry: entry.index,
            at: entry.at,
            item: id.clone(),
            r#type: entry.r#type,
            action: entry.action.clone(),
            from: entry.from.clone(),
            to: entry.to.clone(),
            actor: entry.actor_id.clone(),
            role: entry.role,
            comment: entry.comment.clone(),
        });
    }

    /// The items the bundle is about, ordered by their first entry, and the entries about them.
    pub(super) fn listed(self, verdict: &Verdict) -> (Vec<ItemRow>, Vec<Move>) {
        let Population { items, moves } = self;
        let mut moves = moves.unwrap_or_default();
        let verdicts: BTreeMap<_, _> = verdict.items.iter().map(|item| (&item.id, item)).collect();
        let touched: BTreeMap<_, _> = items.into_iter().filter(|(_, tally)| tally.is_inside).collect();
        moves.retain(|one| touched.contains_key(&one.item));
        let row = |(id, tally): (ItemId, Tally)| {
            let found = verdicts.get(&id).copied();
            tally.into_row(id, found)
        };
        let mut rows: Vec<_> = touched.into_iter().map(row).collect();
        rows.sort_by_key(|row| row.first);
        (rows, moves)
    }
}

impl Tally {
    fn begun(entry: &Entry) -> Tally {
        Tally {
            definition: entry.definition.clone(),
            state: None,
            created_at: entry.at,
            created_by: entry.actor_id.clone(),
            ended_at: None,
            first: entry.index,
            last: entry.index,
            entries: 0,
            people: BTreeSet::new(),
            is_inside: false,
        }
    }

    fn take(&mut self, entry: &Entry, definition: Option<&Definition>) {
        self.last = entry.index;
        self.entries += 1;
        if entry.r#type != EntryType::ItemComment {
            self.people.extend(entry.actor().map(|actor| (actor.actor_id, actor.role)));
        }
        if let Some(to) = &entry.to {
            let is_over = definition.is_some_and(|definition| definition.rules().is_terminal(to));
            self.ended_at = if is_over { self.ended_at.or(Some(entry.at)) } else { None };
            self.state = Some(to.clone());
        }
    }

    /// An item without a verdict of its own has a fault that names it.
    fn into_row(self, id: ItemId, verdict: Option<&ItemVerdict>) -> ItemRow {
        let text = |name: Option<&Name>| name.map(ToString::to_string).unwrap_or_default();
        ItemRow {
            title: verdict.and_then(|verdict| verdict.title.clone()),
            workflow: text(verdict.map(|verdict| &verdict.workflow)),
            workflow_version: verdict.map(|verdict| verdict.workflow_version),
            definition: text(self.definition.as_ref()),
            state: text(self.state.as_ref()),
            created_at: self.created_at,
            created_by: self.created_by.as_ref().map(ToString::to_string).unwrap_or_default(),
            ended_at: self.ended_at,
            first: self.first,
            last: self.last,
            entries: self.entries,
            people: self.people.into_iter().collect(),
            outcome: verdict.map_or(Outcome::Fails, |verdict| verdict.outcome),
            id,
        }
    }
}

/// The items with the smallest SHA-256 of the seed, a line feed and their id.
pub(super) fn drawn<'i>(items: &'i [ItemRow], count: usize, seed: &str) -> Vec<&'i ItemRow> {
    let mut ranked: Vec<_> = items.iter().map(|row| (Sha256::digest(format!("{seed}\n{}", row.id)), row)).collect();
    ranked.sort_by(|(one, _), (other, _)| one.as_slice().cmp(other.as_slice()));
    ranked.into_iter().take(count).map(|(_, row)| row).collect()
}
