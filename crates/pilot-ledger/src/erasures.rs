//! Where the erasure of an item's documents is recorded, so that evidence about the item can contain it.

use std::ops::Range;

use pilot_core::item::ItemId;
use pilot_store::{Fact, RangeEnd, Result, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::persisted;

const ERASED: &str = "erased/";

/// How many erasures are read at a time.
const READ_AT_A_TIME: usize = 256;

#[derive(Serialize, Deserialize)]
struct Erased {
    entry: u64,
}

/// What the command that erases leaves with its entry. A second erasure of the same item replaces it: what was written
/// in between is erased by the second.
pub fn fact(item: &ItemId, entry: u64) -> Fact {
    Fact { name: format!("{ERASED}{item}"), value: Some(persisted::to_bytes(&Erased { entry })) }
}

/// The entry that records the erasure, if there was one.
pub(crate) async fn of_item(store: &dyn Store, item: &ItemId) -> Result<Option<u64>> {
    let name = format!("{ERASED}{item}");
    let found = store.facts_in(name.clone()..format!("{name}!"), RangeEnd::Lowest, 1).await?;
    found.first().map(|(name, value)| Ok(read(name, value)?.1)).transpose()
}

/// The entries that record erasures of items with an entry in this range.
pub(crate) async fn of_items_in(store: &dyn Store, entries: Range<u64>) -> Result<Vec<u64>> {
    let (mut found, mut next) = (Vec::new(), ERASED.to_owned());
    loop {
        let page = store.facts_in(next..format!("{ERASED}~"), RangeEnd::Lowest, READ_AT_A_TIME).await?;
        let Some((last, _)) = page.last() else { return Ok(found) };
        next = format!("{last}!");
        for (name, value) in &page {
            let (item, entry) = read(name, value)?;
            if store.places(item).await?.iter().any(|index| entries.contains(index)) {
                found.push(entry);
            }
        }
    }
}

fn read(name: &str, value: &[u8]) -> Result<(ItemId, u64)> {
    let what = format!("the fact `{name}`");
    let item = name.strip_prefix(ERASED).and_then(|item| item.parse().ok());
    let item = item.ok_or_else(|| StoreError::Damaged(format!("{what} is not named by an item")))?;
    Ok((item, persisted::from_bytes::<Erased>(&what, value)?.entry))
}
