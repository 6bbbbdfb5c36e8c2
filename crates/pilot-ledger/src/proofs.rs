//! Proofs from the stored tree: a first pass over a proof finds which rows of hashes it needs; they are fetched, and a
//! second pass builds it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use pilot_evidence::merkle::{Hash, root_of, split};
use pilot_evidence::proof::{self, Rows, siblings};
use pilot_evidence::tile::TILE_HEIGHT;
use pilot_store::{Result, Store, StoreError};

type Place = (u8, u64, u64);

/// Where a proof gets its rows while it is built.
enum Source {
    /// Nowhere: the requests are only written down.
    Asking(RefCell<Vec<Place>>),
    Fetched(Vec<(Place, Vec<Hash>)>),
}

impl Rows for Source {
    type Error = StoreError;

    fn row(&self, level: u8, start: u64, count: u64) -> Result<Vec<Hash>> {
        let place = (level, start, count);
        Ok(match self {
            Source::Asking(asked) => {
                asked.borrow_mut().push(place);
                vec![Hash([0; 32]); usize::try_from(count).unwrap_or(0)]
            }
            Source::Fetched(rows) => {
                let found = rows.iter().find(|(known, _)| *known == place).map(|(_, hashes)| hashes.clone());
                found.ok_or_else(|| StoreError::Damaged(format!("the rows of a proof lack {place:?}")))?
            }
        })
    }
}

async fn build(store: &dyn Store, proof: impl Fn(&Source) -> Result<Vec<Hash>>) -> Result<Vec<Hash>> {
    let asking = Source::Asking(RefCell::default());
    proof(&asking)?;
    let Source::Asking(asked) = asking else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for (level, start, count) in asked.into_inner() {
        rows.push(((level, start, count), store.row(level, start, count).await?));
    }
    proof(&Source::Fetched(rows))
}

/// Proves that entry `index` is in the tree of `size` entries.
pub async fn inclusion(store: &dyn Store, index: u64, size: u64) -> Result<Vec<Hash>> {
    let paths = store.inclusions(vec![index], size).await?.pop();
    paths.ok_or_else(|| StoreError::Damaged(format!("there is no path for entry {index}")))
}

/// Proves that the tree of `new` entries begins with the tree of `old` entries.
pub async fn consistency(store: &dyn Store, old: u64, new: u64) -> Result<Vec<Hash>> {
    build(store, |rows| proof::consistency(rows, old, new)).await
}

/// The complete subtrees that make up the tree of `size` entries.
pub async fn peaks(store: &dyn Store, size: u64) -> Result<Vec<Hash>> {
    build(store, |rows| proof::peaks(rows, size)).await
}

/// How many subtree roots are remembered; those of the upper levels are in almost every proof.
const REMEMBERED: usize = 1 << 14;

/// Proofs for many entries of one tree, one after another: what they share is computed once.
pub struct Inclusions<'s> {
    store: &'s dyn Store,
    size: u64,
    roots: HashMap<Range<u64>, Hash>,
}

impl<'s> Inclusions<'s> {
    pub fn new(store: &'s dyn Store, size: u64) -> Inclusions<'s> {
        Inclusions { store, size, roots: HashMap::new() }
    }

    /// Proves that entry `index` is in the tree.
    pub async fn of(&mut self, index: u64) -> Result<Vec<Hash>> {
        let mut path = Vec::new();
        for leaves in siblings(index, self.size) {
            path.push(self.root(leaves).await?);
        }
        Ok(path)
    }

    async fn root(&mut self, leaves: Range<u64>) -> Result<Hash> {
        if let Some(root) = self.roots.get(&leaves) {
            return Ok(*root);
        }
        // Complete subtrees from left to right, each smaller than the previous one.
        let (mut parts, mut start) = (Vec::new(), leaves.start);
        while start < leaves.end {
            let count = leaves.end - start;
            let whole = if count.is_power_of_two() { count } else { split(count) };
            let level = u8::try_from(whole.ilog2()).unwrap_or(0) / TILE_HEIGHT;
            let width = level * TILE_HEIGHT;
            parts.push(root_of(&self.store.row(level, start >> width, whole >> width).await?));
            start += whole;
        }
        let root = parts.into_iter().rev().reduce(|right, left| Hash::of_children(left, right));
        let root = root.unwrap_or_else(Hash::of_nothing);
        if self.roots.len() >= REMEMBERED {
            self.roots.clear();
        }
        self.roots.insert(leaves, root);
        Ok(root)
    }
}
