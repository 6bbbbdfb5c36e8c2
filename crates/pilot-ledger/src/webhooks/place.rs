//! Cursors in the store: read, taken over, saved and moved. Whoever comes second is decided inside the write.

use std::sync::{Arc, Mutex, PoisonError};

use pilot_setup::config::WebhookFrom;
use pilot_store::{Fact, NoRecord, Outcome, Result, Situation, Store, StoreError, Subject, Write};

use super::cursor::Cursor;
use crate::persisted;

const PREFIX: &str = "webhook/";

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
    let mut all = read_all(store).await?;
    Ok(all.iter().position(|(name, _)| name == endpoint).map(|at| all.swap_remove(at).1))
}

/// For a sender that begins: from then on no earlier one can save.
pub(super) async fn take_over(store: &dyn Store, endpoint: &str, from: WebhookFrom) -> Result<Cursor> {
    let taken = change(store, endpoint, move |found, size| {
        let begun = || match from {
            WebhookFrom::Now => Cursor::at(size),
            WebhookFrom::Index(index) => Cursor::at(index.min(size)),
        };
        Some(found.map_or_else(begun, |cursor| cursor.taken_over(size)))
    });
    taken.await?.ok_or_else(|| StoreError::Unavailable("the cursor was not written".into()))
}

/// Whether it was saved: not if another sender has taken over, or someone has moved the cursor.
pub(super) async fn save(store: &dyn Store, endpoint: &str, cursor: Cursor) -> Result<bool> {
    let saved = change(store, endpoint, move |found, _| {
        let is_ours = found.is_some_and(|found| found.generation == cursor.generation);
        is_ours.then(|| cursor.clone())
    });
    Ok(saved.await?.is_some())
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
    let moved = change(store, endpoint, move |found, _| Some(found.unwrap_or_else(|| Cursor::at(0)).moved(from)));
    let moved = moved.await?;
    Ok(moved.ok_or_else(|| StoreError::Unavailable("the cursor was not written".into()))?)
}

/// Changes the cursor as it is when the write is decided; the closure also gets the end of the ledger. Returns what was
/// written, if anything was.
async fn change(
    store: &dyn Store,
    endpoint: &str,
    decide: impl Fn(Option<Cursor>, u64) -> Option<Cursor> + Send + 'static,
) -> Result<Option<Cursor>> {
    let name = name(endpoint);
    let decided = Arc::new(Mutex::new(Ok(None)));
    let (shared, written_name) = (Arc::clone(&decided), name.clone());
    let closure = move |situation: &Situation<'_>| {
        let found = situation.facts.iter().flatten().next();
        let found = found.map(|bytes| persisted::from_bytes::<Cursor>(&written_name, bytes)).transpose();
        // What cannot be read is not overwritten.
        let decision = found.map(|found| decide(found, situation.index));
        let written = decision.as_ref().ok().and_then(Option::as_ref).map(persisted::to_bytes);
        *shared.lock().unwrap_or_else(PoisonError::into_inner) = decision;
        let fact = |value| NoRecord::Note(vec![Fact { name: written_name.clone(), value: Some(value) }]);
        Err(written.map_or(NoRecord::Nothing, fact))
    };
    let outcome = store.settle(Write::new(Subject::Ledger, None, closure).reading([name])).await?;
    let decided = std::mem::replace(&mut *decided.lock().unwrap_or_else(PoisonError::into_inner), Ok(None))?;
    Ok(decided.filter(|_| outcome == Outcome::Noted))
}
