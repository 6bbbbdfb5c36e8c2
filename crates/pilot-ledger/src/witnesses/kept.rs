//! Cosigned checkpoints that are kept with the ledger: in evidence they date the entries before and after them.

use pilot_store::{Fact, NoRecord, RangeEnd, Result, Situation, Store, StoreError, Subject, Write};
use serde::{Deserialize, Serialize};

use crate::persisted;

const KEPT: &str = "kept-checkpoint/";

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    note: String,
}

/// Names sort as sizes do.
fn name(size: u64) -> String {
    format!("{KEPT}{size:020}")
}

/// Above every name.
fn end() -> String {
    format!("{KEPT}:")
}

/// Keeps a checkpoint, in place of one of the same size with fewer cosignatures.
pub(super) async fn keep(store: &dyn Store, size: u64, note: String) -> Result<()> {
    let decide = move |_: &Situation<'_>| {
        let value = Some(persisted::to_bytes(&Kept { note: note.clone() }));
        Err(NoRecord::Note(vec![Fact { name: name(size), value }]))
    };
    store.settle(Write::new(Subject::Ledger, None, decide)).await.map(|_| ())
}

/// The oldest that has this entry.
pub async fn oldest_with(store: &dyn Store, index: u64) -> Result<Option<(u64, String)>> {
    let names = name(index.saturating_add(1))..end();
    Ok(read(store.facts_in(names, RangeEnd::Lowest, 1).await?)?.pop())
}

/// The newest that does not have this entry.
pub async fn newest_without(store: &dyn Store, index: u64) -> Result<Option<(u64, String)>> {
    let names = name(1)..name(index.saturating_add(1));
    Ok(read(store.facts_in(names, RangeEnd::Highest, 1).await?)?.pop())
}

/// At most `limit` of those that have more than `size` entries, the smallest first.
pub async fn after(store: &dyn Store, size: u64, limit: usize) -> Result<Vec<(u64, String)>> {
    let names = name(size.saturating_add(1))..end();
    read(store.facts_in(names, RangeEnd::Lowest, limit).await?)
}

fn read(facts: Vec<(String, Vec<u8>)>) -> Result<Vec<(u64, String)>> {
    let one = |(name, value): (String, Vec<u8>)| {
        let what = format!("the fact `{name}`");
        let size = name.strip_prefix(KEPT).and_then(|size| size.parse().ok());
        let size = size.ok_or_else(|| StoreError::Damaged(format!("{what} is not named by a size")))?;
        Ok((size, persisted::from_bytes::<Kept>(&what, &value)?.note))
    };
    facts.into_iter().map(one).collect()
}
