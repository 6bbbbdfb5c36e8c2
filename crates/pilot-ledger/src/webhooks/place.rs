//! Cursors in the store: read, taken over, saved and moved. Whoever comes second is decided inside the write.

use pilot_setup::config::WebhookFrom;
use pilot_store::{Result, Store, StoreError};

use super::cursor::Cursor;
use crate::fenced::{self, Fenced};
use crate::persisted;

const PREFIX: &str = "webhook/";

impl Fenced for Cursor {
    fn generation(&self) -> u64 {
        self.generation
    }
}

fn name(endpoint: &str) -> String {
    format!("{PREFIX}{endpoint}")
}

/// All of them, by the name of their endpoint; also of endpoints that are no longer configured.
pub(super) async fn read_all(store: &dyn Store) -> Result<Vec<(String, Cursor)>> {
    let facts = store.facts(PREFIX).await?;
    let one = |(name, bytes): (String, Vec<u8>)| {
        let cursor = persisted::from_bytes(&format!("the fact `{name}`"), &bytes)?;
        Ok((name.trim_start_matches(PREFIX).to_owned(), cursor))
    };
    facts.into_iter().map(one).collect()
}

pub(super) async fn read(store: &dyn Store, endpoint: &str) -> Result<Option<Cursor>> {
    fenced::read(store, &name(endpoint)).await
}

/// For a sender that begins: from then on no earlier one can save.
pub(super) async fn take_over(store: &dyn Store, endpoint: &str, from: WebhookFrom) -> Result<Cursor> {
    fenced::replace(store, name(endpoint), move |found: Option<Cursor>, size| {
        let begun = || match from {
            WebhookFrom::Now => Cursor::at(size),
            WebhookFrom::Index(index) => Cursor::at(index.min(size)),
        };
        found.map_or_else(begun, |cursor| cursor.taken_over(size))
    })
    .await
}

/// Whether it was saved: not if another sender has taken over, or someone has moved the cursor.
pub(super) async fn save(store: &dyn Store, endpoint: &str, cursor: Cursor) -> Result<bool> {
    fenced::save(store, name(endpoint), cursor).await
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("the ledger ends at {0}")]
    BeyondTheEnd(u64),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Delivers from this entry on, again or for the first time, even if the endpoint was paused. Nothing that a sender saves
/// afterwards undoes it.
pub async fn replay(store: &dyn Store, endpoint: &str, from: u64) -> std::result::Result<Cursor, ReplayError> {
    let size = store.head().borrow().size();
    if from > size {
        return Err(ReplayError::BeyondTheEnd(size));
    }
    let decide = move |found: Option<Cursor>, _| found.unwrap_or_else(|| Cursor::at(0)).moved(from);
    Ok(fenced::replace(store, name(endpoint), decide).await?)
}
