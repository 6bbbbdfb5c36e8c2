//! Facts that one loop keeps for as long as nobody else takes them over: each has a generation, and one that was read with
//! an older generation is not saved. That is decided inside the write, so a node that lost its duty without knowing it
//! undoes nothing.

use std::sync::{Arc, Mutex, PoisonError};

use pilot_store::{Fact, NoRecord, Outcome, RangeEnd, Result, Situation, Store, StoreError, Subject, Write};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::persisted;

pub trait Fenced: Serialize + DeserializeOwned + Clone + Send + 'static {
    /// Grows whenever someone takes the fact over.
    fn generation(&self) -> u64;
}

/// The fact of this name alone, if there is one.
pub async fn read<T: Fenced>(store: &dyn Store, name: &str) -> Result<Option<T>> {
    let found = store.facts_in(name.to_owned()..format!("{name}\0"), RangeEnd::Lowest, 1).await?;
    found.first().map(|(name, bytes)| persisted::from_bytes(&format!("the fact `{name}`"), bytes)).transpose()
}

/// Writes what the closure makes of the fact as it is, and of the number of entries.
pub async fn replace<T: Fenced>(
    store: &dyn Store,
    name: String,
    decide: impl Fn(Option<T>, u64) -> T + Send + 'static,
) -> Result<T> {
    let written = change(store, name, move |found, size| Some(decide(found, size))).await?;
    written.ok_or_else(|| StoreError::Unavailable("the fact was not written".into()))
}

/// Like [`replace`], but the closure can refuse; then nothing is written.
pub async fn replace_unless<T: Fenced, E: Send + 'static>(
    store: &dyn Store,
    name: String,
    decide: impl Fn(Option<T>, u64) -> std::result::Result<T, E> + Send + 'static,
) -> Result<std::result::Result<T, E>> {
    let refused = Arc::new(Mutex::new(None));
    let told = Arc::clone(&refused);
    let written = change(store, name, move |found, size| {
        let (written, why) = match decide(found, size) {
            Ok(written) => (Some(written), None),
            Err(why) => (None, Some(why)),
        };
        *told.lock().unwrap_or_else(PoisonError::into_inner) = why;
        written
    });
    let written = written.await?;
    let why = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (written, why) {
        (Some(written), _) => Ok(Ok(written)),
        (None, Some(why)) => Ok(Err(why)),
        (None, None) => Err(StoreError::Unavailable("the fact was not written".into())),
    }
}

/// Writes the fact unless it exists already.
pub async fn create<T: Fenced>(
    store: &dyn Store,
    name: String,
    make: impl Fn(u64) -> T + Send + 'static,
) -> Result<()> {
    change(store, name, move |found: Option<T>, size| found.is_none().then(|| make(size))).await?;
    Ok(())
}

/// Whether it was saved: not if someone else has taken it over.
pub async fn save<T: Fenced + Sync>(store: &dyn Store, name: String, fact: T) -> Result<bool> {
    let saved = change(store, name, move |found: Option<T>, _| {
        let is_ours = found.is_some_and(|found| found.generation() == fact.generation());
        is_ours.then(|| fact.clone())
    });
    Ok(saved.await?.is_some())
}

/// Changes the fact as it is when the write is decided. Returns what was written, if anything was.
async fn change<T: Fenced>(
    store: &dyn Store,
    name: String,
    decide: impl Fn(Option<T>, u64) -> Option<T> + Send + 'static,
) -> Result<Option<T>> {
    let decided = Arc::new(Mutex::new(Ok(None)));
    let (shared, written_name) = (Arc::clone(&decided), name.clone());
    let closure = move |situation: &Situation<'_>| {
        let found = situation.facts.iter().flatten().next();
        let found = found.map(|bytes| persisted::from_bytes::<T>(&written_name, bytes)).transpose();
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
