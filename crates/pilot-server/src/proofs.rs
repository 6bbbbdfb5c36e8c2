//! Proofs over the stored tree. The rules say which hashes a proof needs; the store is asked for those, and the rules
//! build it.

use std::cell::RefCell;
use std::convert::Infallible;

use pilot_evidence::merkle::Hash;
use pilot_evidence::proof::{self, Rows};
use pilot_store::{Result, Store};

pub async fn inclusion(store: &dyn Store, index: u64, size: u64) -> Result<Vec<Hash>> {
    let asked = Asked::default();
    let Ok(_) = proof::inclusion(&asked, index, size);
    let fetched = fetch(store, asked).await?;
    let Ok(path) = proof::inclusion(&fetched, index, size);
    Ok(path)
}

pub async fn consistency(store: &dyn Store, old: u64, new: u64) -> Result<Vec<Hash>> {
    let asked = Asked::default();
    let Ok(_) = proof::consistency(&asked, old, new);
    let fetched = fetch(store, asked).await?;
    let Ok(path) = proof::consistency(&fetched, old, new);
    Ok(path)
}

type Place = (u8, u64, u64);

async fn fetch(store: &dyn Store, asked: Asked) -> Result<Fetched> {
    let mut fetched = Vec::new();
    for (level, start, count) in asked.0.into_inner() {
        fetched.push(((level, start, count), store.row(level, start, count).await?));
    }
    Ok(Fetched(fetched))
}

/// Writes down what is asked for.
#[derive(Default)]
struct Asked(RefCell<Vec<Place>>);

impl Rows for Asked {
    type Error = Infallible;

    fn row(&self, level: u8, start: u64, count: u64) -> std::result::Result<Vec<Hash>, Infallible> {
        self.0.borrow_mut().push((level, start, count));
        Ok(vec![Hash([0; 32]); usize::try_from(count).unwrap_or(0)])
    }
}

struct Fetched(Vec<(Place, Vec<Hash>)>);

impl Rows for Fetched {
    type Error = Infallible;

    fn row(&self, level: u8, start: u64, count: u64) -> std::result::Result<Vec<Hash>, Infallible> {
        let found = self.0.iter().find(|(place, _)| *place == (level, start, count));
        Ok(found.map(|(_, hashes)| hashes.clone()).unwrap_or_default())
    }
}
