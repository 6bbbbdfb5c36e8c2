//! What an auditor takes away: which entries, documents, rules, role maps and proofs belong to an item or a period.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use pilot_core::entry::Entry;
use pilot_core::item::ItemId;
use pilot_core::limits::{EXPORT_CHECKPOINTS_MAX, EXPORT_ENTRIES_MAX};
use pilot_core::time::Time;
use pilot_evidence::bundle::Scope;
use pilot_store::Store;

use super::sources::{EvidenceError, Sources};
use crate::dated::{Dated, Shelf};
use crate::erasures;
use crate::signer::Signed;
use crate::starts;

/// For how many entries of a period the items are looked up at a time.
const ENTRIES_LOOKED_UP: u64 = 8_192;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Item(ItemId),
    /// The item as of the entry with which its present state began, at this time: what a permit contains.
    Permit(ItemId, Time),
    /// From the first time up to but not including the second, so that periods can follow one another.
    Period(Time, Time),
}

/// What a bundle will contain, decided before its first byte is sent.
pub struct Plan {
    pub(super) scope: Scope,
    pub(super) checkpoint: Arc<Signed>,
    /// The entries of the period, which prove each other; empty for an item.
    pub(super) first: u64,
    pub(super) end: u64,
    /// Entries with a proof of their own: below `first`, or at or above `end`.
    pub(super) single: BTreeSet<u64>,
    /// Those of them that only show where the period begins or ends: their items are not part of it.
    pub(super) neighbours: BTreeSet<u64>,
    /// Cosigned checkpoints that date the entries, by size.
    pub(super) kept: BTreeMap<u64, Dated>,
    pub(super) stamped: BTreeMap<u64, Dated>,
    /// A size from which the reader wants a proof, having kept a checkpoint of it.
    pub(super) proved_from: Option<u64>,
    pub(super) with_documents: bool,
    pub(super) with_report: bool,
    /// What the file is called, before the item's id or the range.
    name: &'static str,
}

/// How it is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    pub without_documents: bool,
    /// The size of a checkpoint that the reader has kept.
    pub kept: Option<u64>,
}

impl Plan {
    pub async fn make(sources: &Sources, wanted: Wanted, options: Options) -> Result<Plan, EvidenceError> {
        let plan = match wanted {
            Wanted::Item(id) => {
                let own = sources.store.places(id.clone()).await?;
                let erasures = erasures::of_item(&*sources.store, &id).await?;
                let mut plan = Plan::item(sources, id, own).await?;
                plan.single.extend(erasures);
                plan
            }
            Wanted::Permit(id, entered_at) => {
                let own = until_entered(&*sources.store, &id, entered_at).await?;
                Plan { with_report: false, name: "permit", ..Plan::item(sources, id, own).await? }
            }
            Wanted::Period(from, to) => Plan::period(sources, from, to).await?,
        };
        let size = plan.checkpoint.checkpoint.size;
        if let Some(kept) = options.kept.filter(|kept| *kept > size) {
            return Err(EvidenceError::NotThatLong { kept, size });
        }
        let kept = plan.dated(Shelf::Cosigned, &*sources.store).await?;
        let stamped = plan.dated(Shelf::Stamped, &*sources.store).await?;
        let with_documents = plan.with_documents && !options.without_documents;
        Plan { kept, stamped, proved_from: options.kept, with_documents, ..plan }.bounded()
    }

    /// For each entry, the oldest dated checkpoint that has it and the newest that does not.
    async fn dated(&self, of: Shelf, store: &dyn Store) -> Result<BTreeMap<u64, Dated>, EvidenceError> {
        let size = self.checkpoint.checkpoint.size;
        let mut found = Thinning::default();
        let mut known_until = 0;
        for index in self.single.iter().filter(|index| !self.neighbours.contains(*index)) {
            if *index < known_until {
                continue;
            }
            found.add(of.newest_without(store, *index).await?);
            let oldest = of.oldest_with(store, *index).await?;
            known_until = oldest.as_ref().map_or(u64::MAX, |(size, _)| *size);
            found.add(oldest);
        }
        if self.end > self.first {
            found.add(of.newest_without(store, self.first).await?);
            let mut last = self.first;
            while last < self.end {
                let page = of.after(store, last, CHECKPOINTS_READ).await?;
                let Some((size, _)) = page.last() else { break };
                last = *size;
                // The first that has the whole period is the last one needed.
                let needed = page.iter().take_while(|(size, _)| *size < self.end).count() + 1;
                found.add(page.into_iter().take(needed));
            }
        }
        let mut found = found.finish();
        // The bundle's own checkpoint has its cosignatures, but not its timestamp.
        found.retain(|kept, _| *kept < size || (*kept == size && of == Shelf::Stamped));
        Ok(thinned(found))
    }

    /// A bundle of these entries about an item.
    async fn item(sources: &Sources, id: ItemId, own: Vec<u64>) -> Result<Plan, EvidenceError> {
        if own.is_empty() {
            return Err(EvidenceError::NoSuchItem);
        }
        let checkpoint = sources.witnesses.best(&sources.signer).await?;
        let single = with_starts(&*sources.store, own.into_iter().collect()).await?;
        let scope = Scope::Item(id);
        let neighbours = BTreeSet::new();
        Plan {
            scope,
            checkpoint,
            first: 0,
            end: 0,
            single,
            neighbours,
            kept: BTreeMap::new(),
            stamped: BTreeMap::new(),
            proved_from: None,
            with_documents: true,
            with_report: true,
            name: "evidence",
        }
        .bounded()
    }

    async fn period(sources: &Sources, from: Time, to: Time) -> Result<Plan, EvidenceError> {
        let checkpoint = sources.witnesses.best_after(&sources.signer, to, sources.clock.now()).await?;
        let store = &*sources.store;
        let size = checkpoint.checkpoint.size;
        let first = lowest(store, size, |at| at >= from).await?;
        let end = lowest(store, size, |at| at >= to).await?.max(first);
        // Before anything is looked up for them.
        within_bound(end - first)?;
        let mut single = earlier_entries(store, first, end).await?;
        let mut neighbours = BTreeSet::new();
        for index in first.checked_sub(1).into_iter().chain(Some(end).filter(|end| *end < size)) {
            if !single.contains(&index) && is_of_another(store, index, &(first..end)).await? {
                neighbours.insert(index);
            }
            single.insert(index);
        }
        // These entries are judged by the rules in force at their time, so the starts that brought those rules belong
        // in the bundle.
        let mut single = with_starts(store, single).await?;
        single.extend(erasures::of_items_in(store, first..end).await?);
        let single: BTreeSet<_> = single.into_iter().filter(|index| !(first..end).contains(index)).collect();
        let scope = Scope::Period { from, to, first, end };
        Plan {
            scope,
            checkpoint,
            first,
            end,
            single,
            neighbours,
            kept: BTreeMap::new(),
            stamped: BTreeMap::new(),
            proved_from: None,
            with_documents: true,
            with_report: true,
            name: "evidence",
        }
        .bounded()
    }

    fn bounded(self) -> Result<Plan, EvidenceError> {
        within_bound(self.entries()).map(|()| self)
    }

    /// The entries with a proof of their own: those before the period, and those after it.
    pub(super) fn single_around(&self) -> (Vec<u64>, Vec<u64>) {
        self.single.iter().partition(|index| **index < self.first.max(self.end))
    }

    /// How many entries the bundle will contain.
    pub fn entries(&self) -> u64 {
        self.single.len() as u64 + (self.end - self.first)
    }

    /// A file name that says what it is.
    pub fn file_name(&self) -> String {
        match &self.scope {
            Scope::Item(id) => format!("{}-{id}.zip", self.name),
            Scope::Period { first, end, .. } => format!("{}-entries-{first}-to-{end}.zip", self.name),
        }
    }
}

/// How many kept checkpoints are read at a time.
const CHECKPOINTS_READ: usize = 256;

/// Checkpoints as they are found, in ascending order. A long period has more of them than should be in memory at once, so
/// whenever there are too many, every second one is dropped and fewer are taken from then on: evenly over all.
struct Thinning {
    taken: BTreeMap<u64, Dated>,
    seen: usize,
    stride: usize,
    /// Stays in any case.
    last: Option<(u64, Dated)>,
}

impl Default for Thinning {
    fn default() -> Thinning {
        Thinning { taken: BTreeMap::new(), seen: 0, stride: 1, last: None }
    }
}

impl Thinning {
    fn add(&mut self, found: impl IntoIterator<Item = (u64, Dated)>) {
        for (size, dated) in found {
            if self.taken.contains_key(&size) {
                continue;
            }
            self.last = Some((size, dated.clone()));
            if self.seen.is_multiple_of(self.stride) {
                self.taken.insert(size, dated);
            }
            self.seen += 1;
            if self.taken.len() > 2 * EXPORT_CHECKPOINTS_MAX {
                let mut number = 0_usize;
                self.taken.retain(|_, _| {
                    number += 1;
                    !number.is_multiple_of(2)
                });
                self.stride *= 2;
            }
        }
    }

    fn finish(mut self) -> BTreeMap<u64, Dated> {
        self.taken.extend(self.last);
        self.taken
    }
}

/// Evenly, if there are too many for one bundle; the first and the last stay.
fn thinned(found: BTreeMap<u64, Dated>) -> BTreeMap<u64, Dated> {
    let step = found.len().div_ceil(EXPORT_CHECKPOINTS_MAX).max(1);
    let last = found.len().saturating_sub(1);
    let stays = |number: usize| number.is_multiple_of(step) || number == last;
    found.into_iter().enumerate().filter(|(number, _)| stays(*number)).map(|(_, one)| one).collect()
}

fn within_bound(entries: u64) -> Result<(), EvidenceError> {
    if entries > EXPORT_ENTRIES_MAX { Err(EvidenceError::TooMany(entries)) } else { Ok(()) }
}

async fn entry_at(store: &dyn Store, index: u64) -> Result<Entry, EvidenceError> {
    let stored = store.entries(index, 1).await?.pop().filter(|stored| stored.index == index);
    let bytes = stored.ok_or(EvidenceError::Entry(index))?.bytes;
    serde_json::from_slice(&bytes).map_err(|_| EvidenceError::Entry(index))
}

/// The item's entries up to the one that moved it into its present state. What came later does not belong to it:
/// heartbeats, comments, permits.
async fn until_entered(store: &dyn Store, id: &ItemId, entered_at: Time) -> Result<Vec<u64>, EvidenceError> {
    let mut own = store.places(id.clone()).await?;
    let (mut low, mut high) = (0, own.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let index = own.get(middle).copied().ok_or(EvidenceError::NoSuchItem)?;
        if entry_at(store, index).await?.at >= entered_at { high = middle } else { low = middle + 1 }
    }
    // Several entries may have the same time.
    while let Some(index) = own.get(low).copied() {
        let entry = entry_at(store, index).await?;
        low += 1;
        if entry.at == entered_at && entry.to.is_some() && entry.from != entry.to {
            own.truncate(low);
            return Ok(own);
        }
    }
    Err(EvidenceError::NoSuchItem)
}

/// The lowest index below `size` whose time fits, or `size`. Along the ledger, time never goes back.
async fn lowest(store: &dyn Store, size: u64, fits: impl Fn(Time) -> bool) -> Result<u64, EvidenceError> {
    let (mut low, mut high) = (0, size);
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(entry_at(store, middle).await?.at) { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

/// The entries before `first` about items that have an entry between there and `end`: without them those items could
/// not be judged.
async fn earlier_entries(store: &dyn Store, first: u64, end: u64) -> Result<BTreeSet<u64>, EvidenceError> {
    let (mut earlier, mut next) = (BTreeSet::new(), first);
    while next < end && first > 0 {
        let until = end.min(next + ENTRIES_LOOKED_UP);
        earlier.extend(store.earlier_places(first, next..until).await?);
        next = until;
    }
    Ok(earlier)
}

/// Whether an entry is about an item that has no entry in the period.
async fn is_of_another(store: &dyn Store, index: u64, period: &Range<u64>) -> Result<bool, EvidenceError> {
    let Some(id) = entry_at(store, index).await?.item else { return Ok(false) };
    Ok(!store.places(id).await?.iter().any(|index| period.contains(index)))
}

/// These entries, and for each of them the start that was in force.
async fn with_starts(store: &dyn Store, mut indices: BTreeSet<u64>) -> Result<BTreeSet<u64>, EvidenceError> {
    let (Some(lowest), Some(highest)) = (indices.first(), indices.last()) else { return Ok(indices) };
    let starts: BTreeSet<u64> = starts::in_force(store, *lowest, *highest + 1).await?.into_iter().collect();
    let in_force: Vec<_> = indices.iter().filter_map(|index| starts.range(..=*index).next_back()).copied().collect();
    indices.extend(in_force);
    Ok(indices)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dated() -> Dated {
        Dated { note: String::new(), reply: None }
    }

    #[test]
    fn however_many_checkpoints_a_period_has_few_are_in_memory_and_they_are_spread_evenly() {
        let count = 20 * EXPORT_CHECKPOINTS_MAX as u64;
        let mut found = Thinning::default();
        for size in 1..=count {
            found.add([(size, dated())]);
            assert!(found.taken.len() <= 2 * EXPORT_CHECKPOINTS_MAX, "{size}");
        }
        let left = found.finish();
        assert_eq!((left.keys().next(), left.keys().next_back()), (Some(&1), Some(&count)));
        let gaps = left.keys().zip(left.keys().skip(1)).map(|(one, next)| next - one).max();
        assert!(gaps <= Some(32), "{gaps:?}");
    }

    #[test]
    fn too_many_checkpoints_are_thinned_out_evenly_and_the_first_and_the_last_stay() {
        let most = EXPORT_CHECKPOINTS_MAX as u64;
        for count in [0, 1, 2, most - 1, most, most + 1, 2 * most, 3 * most + 7] {
            let left = thinned((1..=count).map(|size| (size, dated())).collect());
            assert!(left.len() as u64 <= most + 1, "{count}: {}", left.len());
            assert!(count > most || left.len() as u64 == count, "{count}");
            assert_eq!(
                (left.keys().next(), left.keys().next_back()),
                if count == 0 { (None, None) } else { (Some(&1), Some(&count)) }
            );
            let gaps = left.keys().zip(left.keys().skip(1)).map(|(one, next)| next - one);
            assert!(gaps.max().unwrap_or(0) <= count.div_ceil(most).max(1), "{count}");
        }
    }
}
