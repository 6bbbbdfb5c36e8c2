//! Cursors in the store: read, taken over, saved and moved. Which of two writers wins is decided inside the write.

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

/// All of them, by the name of their endpoint; also of endpoints that are no longer configured. One that cannot be read
/// hides no other.
pub(super) async fn read_all(store: &dyn Store) -> Result<Vec<(String, Result<Cursor>)>> {
    let facts = store.facts(PREFIX).await?;
    let one = |(name, bytes): (String, Vec<u8>)| {
        let cursor = persisted::from_bytes(&format!("the fact `{name}`"), &bytes);
        (name.trim_start_matches(PREFIX).to_owned(), cursor)
    };
    Ok(facts.into_iter().map(one).collect())
}

pub(super) async fn read(store: &dyn Store, endpoint: &str) -> Result<Option<Cursor>> {
    fenced::read(store, &name(endpoint)).await
}

/// Where an endpoint begins, in a ledger of this size.
fn begun(from: WebhookFrom, size: u64) -> Cursor {
    match from {
        WebhookFrom::Now => Cursor::at(size),
        WebhookFrom::Index(index) => Cursor::at(index.min(size)),
    }
}

/// For a node that starts, whether it sends or not: a new endpoint begins then, and not when it is first sent to.
pub(super) async fn begin(store: &dyn Store, endpoint: &str, from: WebhookFrom) -> Result<()> {
    fenced::create(store, name(endpoint), move |size| begun(from, size)).await
}

/// For a sender that begins: from then on no earlier one can save.
pub(super) async fn take_over(store: &dyn Store, endpoint: &str, from: WebhookFrom) -> Result<Cursor> {
    fenced::replace(store, name(endpoint), move |found: Option<Cursor>, size| {
        found.map_or_else(|| begun(from, size), |cursor| cursor.taken_over(size))
    })
    .await
}

/// Whether it was saved: not if another sender has taken over, or someone has moved the cursor.
pub(super) async fn save(store: &dyn Store, endpoint: &str, cursor: Cursor) -> Result<bool> {
    fenced::save(store, name(endpoint), cursor).await
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// What lies between would be left out, and nobody would see that.
    #[error("the endpoint is at entry {next}")]
    Ahead { next: u64 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Delivers again from this entry on, even if the endpoint was paused. It only goes back or stays, so nobody can hide an
/// entry from a receiver. Nothing that a sender saves afterwards undoes it. `begins` is where the endpoint begins if it has
/// not begun.
pub async fn replay(
    store: &dyn Store,
    endpoint: &str,
    begins: WebhookFrom,
    from: u64,
) -> std::result::Result<Cursor, ReplayError> {
    let decide = move |found: Option<Cursor>, size: u64| {
        let cursor = found.unwrap_or_else(|| begun(begins, size));
        let next = cursor.next.min(size);
        if from > next { Err(next) } else { Ok(cursor.moved(from)) }
    };
    let decided = fenced::replace_unless(store, name(endpoint), decide).await?;
    decided.map_err(|next| ReplayError::Ahead { next })
}
