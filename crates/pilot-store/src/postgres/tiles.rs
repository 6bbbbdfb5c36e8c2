//! Tiles from the database. The tree's own code is synchronous, so it runs on what is there, notes what it misses, and
//! runs again once that was read: a few rounds, however many proofs are wanted.

use std::collections::{BTreeSet, HashMap};

use pilot_core::certain::Certain as _;
use pilot_evidence::merkle::{Edge, Hash};

use super::failure;
use super::read::bound;
use super::session::Session;
use crate::tree::{Tiles, Tree, UpperRoots, hashes_of};
use crate::{Result, StoreError};

type Place = (u8, u64);

/// The tiles that were read, and those that turned out to be needed.
#[derive(Default)]
pub(super) struct Shelf {
    tiles: HashMap<Place, Option<Vec<Hash>>>,
    missed: BTreeSet<Place>,
}

impl Tiles for &mut Shelf {
    fn full_tile(&mut self, level: u8, index: u64) -> Result<Option<Vec<Hash>>> {
        if let Some(tile) = self.tiles.get(&(level, index)) {
            return Ok(tile.clone());
        }
        self.missed.insert((level, index));
        Err(StoreError::Unavailable("a tile has to be read first".into()))
    }
}

/// Runs `work` until it has every tile it needs.
pub(super) async fn with_tree<'h, T>(
    session: &Session,
    head: &'h Edge,
    mut work: impl FnMut(Tree<'h, &mut Shelf>) -> Result<T>,
) -> Result<T> {
    let mut shelf = Shelf::default();
    loop {
        let done = work(Tree::new(&mut shelf, head));
        if shelf.missed.is_empty() {
            return done;
        }
        read(session, &mut shelf).await?;
    }
}

async fn read(session: &Session, shelf: &mut Shelf) -> Result<()> {
    let sql = "SELECT w.level, w.idx, t.hashes FROM unnest($1::smallint[], $2::bigint[]) AS w (level, idx) \
               LEFT JOIN tile t ON t.level = w.level AND t.idx = w.idx";
    let missed = std::mem::take(&mut shelf.missed);
    let (levels, indices): (Vec<_>, Vec<_>) =
        missed.iter().map(|(level, index)| (i16::from(*level), bound(*index))).unzip();
    let failed = |error| failure::of_query(&error);
    for row in session.query(sql, &[&levels, &indices]).await.map_err(failed)? {
        let (level, index): (i16, i64) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        let level = u8::try_from(level).certain("it was asked for by this number");
        let index = u64::try_from(index).certain("it was asked for by this number");
        let bytes: Option<&[u8]> = row.try_get(2).map_err(failed)?;
        let tile = bytes.map(|bytes| hashes_of(level, index, bytes)).transpose()?;
        shelf.tiles.insert((level, index), tile);
    }
    Ok(())
}

/// For each entry, the path to the root of the tree of `size` entries.
pub(super) async fn inclusions<'h>(
    session: &Session,
    (head, upper): (&'h Edge, &'h UpperRoots),
    indices: &[u64],
    size: u64,
) -> Result<Vec<Vec<Hash>>> {
    with_tree(session, head, |tree| {
        let mut tree = tree.sharing(upper);
        // Every one of them, so that all tiles of a round are read together.
        let paths: Vec<_> = indices.iter().map(|index| tree.inclusion(*index, size)).collect();
        paths.into_iter().collect()
    })
    .await
}
