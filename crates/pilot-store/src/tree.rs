//! The tree as stored: full tiles from the database, unfinished ones from the right edge, which is in memory.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use crate::{Result, StoreError};
use pilot_core::certain::Certain as _;
use pilot_evidence::merkle::{Edge, Hash, root_of, split};
use pilot_evidence::tile::{TILE_HEIGHT, TILE_WIDTH};

const WIDTH: u64 = TILE_WIDTH as u64;

/// At most two megabytes; a ledger of four million entries has as many.
const UPPER_ROOTS_MAX: usize = 1 << 14;

/// Where full tiles are.
pub(crate) trait Tiles {
    fn full_tile(&mut self, level: u8, index: u64) -> Result<Option<Vec<Hash>>>;
}

/// Roots of complete subtrees over several tiles. They never change, so all requests share them: without that, a proof
/// from a large ledger would cost a fifth more than one from a small one.
#[derive(Default)]
pub(crate) struct UpperRoots(Mutex<HashMap<(u64, u64), Hash>>);

impl UpperRoots {
    fn get(&self, low: u64, high: u64) -> Option<Hash> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(low, high)).copied()
    }

    fn keep(&self, low: u64, high: u64, root: Hash) {
        let mut roots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if roots.len() >= UPPER_ROOTS_MAX {
            roots.clear();
        }
        roots.insert((low, high), root);
    }
}

/// Lives for one request: what was read and hashed once is reused for the rest of it.
pub(crate) struct Tree<'t, T> {
    stored: T,
    /// Taken before reading began, so everything below it is stored.
    head: &'t Edge,
    tiles: HashMap<(u8, u64), Rc<[Hash]>>,
    /// Roots of subtrees, which the paths of many entries share.
    roots: HashMap<(u64, u64), Hash>,
    upper: Option<&'t UpperRoots>,
    hashed: u64,
}

impl<'t, T: Tiles> Tree<'t, T> {
    pub(crate) fn new(stored: T, head: &'t Edge) -> Tree<'t, T> {
        Tree { stored, head, tiles: HashMap::new(), roots: HashMap::new(), upper: None, hashed: 0 }
    }

    pub(crate) fn sharing(self, upper: &'t UpperRoots) -> Tree<'t, T> {
        Tree { upper: Some(upper), ..self }
    }

    /// Hashes of consecutive complete subtrees of 256^level leaves.
    pub(crate) fn row(&mut self, level: u8, start: u64, count: u64) -> Result<Vec<Hash>> {
        let mut hashes = Vec::new();
        let (mut at, end) = (start, start.saturating_add(count));
        while at < end {
            let wanted = (end - at).min(WIDTH - at % WIDTH);
            hashes.extend_from_slice(part(&self.tile(level, at / WIDTH)?, level, at, wanted)?);
            at += wanted;
        }
        Ok(hashes)
    }

    /// The right edge of the tree at a given size.
    pub(crate) fn edge_at(&mut self, size: u64) -> Result<Edge> {
        let mut levels = Vec::new();
        let (mut level, mut row_size) = (0_u8, size);
        while row_size > 0 {
            let full = row_size / WIDTH;
            levels.push(self.row(level, full * WIDTH, row_size % WIDTH)?);
            (level, row_size) = (level + 1, full);
        }
        Ok(Edge::new(size, levels))
    }

    /// The path from an entry to the root of the tree of `size` entries (RFC 6962).
    pub(crate) fn inclusion(&mut self, index: u64, size: u64) -> Result<Vec<Hash>> {
        if index >= size || size > self.head.size() {
            return Err(StoreError::Unavailable(format!("the log has no entry {index} among {size}")));
        }
        let mut path = Vec::new();
        let (mut low, mut high) = (0, size);
        while high - low > 1 {
            let middle = low + split(high - low);
            if index < middle {
                path.push(self.root(middle, high)?);
                high = middle;
            } else {
                path.push(self.root(low, middle)?);
                low = middle;
            }
        }
        path.reverse();
        Ok(path)
    }

    /// The root over leaves `low..high`, where `low` is a point at which RFC 6962 would split.
    fn root(&mut self, low: u64, high: u64) -> Result<Hash> {
        let count = high - low;
        let upper = self.upper.filter(|_| count > WIDTH && count.is_power_of_two());
        let known = self.roots.get(&(low, high)).copied();
        if let Some(root) = known.or_else(|| upper?.get(low, high)) {
            return Ok(root);
        }
        let root = if count.is_power_of_two() {
            let level = u8::try_from(count.ilog2()).certain("a number has 64 bits") / TILE_HEIGHT;
            let (at, wanted) = (low >> (level * TILE_HEIGHT), count >> (level * TILE_HEIGHT));
            self.hashed += wanted - 1;
            root_of(part(&self.tile(level, at / WIDTH)?, level, at, wanted)?)
        } else {
            let middle = low + split(count);
            self.hashed += 1;
            Hash::of_children(self.root(low, middle)?, self.root(middle, high)?)
        };
        self.roots.insert((low, high), root);
        if let Some(upper) = upper {
            upper.keep(low, high, root);
        }
        Ok(root)
    }

    fn tile(&mut self, level: u8, index: u64) -> Result<Rc<[Hash]>> {
        if let Some(tile) = self.tiles.get(&(level, index)) {
            return Ok(Rc::clone(tile));
        }
        let row_size = self.head.size().checked_shr(u32::from(level) * u32::from(TILE_HEIGHT)).unwrap_or(0);
        let tile: Rc<[Hash]> = match index.cmp(&(row_size / WIDTH)) {
            Ordering::Less => self.stored.full_tile(level, index)?.ok_or_else(|| missing(level, index))?.into(),
            Ordering::Equal => self.head.partial(level).into(),
            Ordering::Greater => return Err(missing(level, index)),
        };
        self.tiles.insert((level, index), Rc::clone(&tile));
        Ok(tile)
    }
}

/// A full tile's hashes, from its stored bytes.
pub(crate) fn hashes_of(level: u8, index: u64, bytes: &[u8]) -> Result<Vec<Hash>> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    if hashes.len() != TILE_WIDTH || !rest.is_empty() {
        return Err(StoreError::Damaged(format!("tile {level}/{index} is cut")));
    }
    Ok(hashes.iter().copied().map(Hash).collect())
}

fn part(tile: &[Hash], level: u8, at: u64, wanted: u64) -> Result<&[Hash]> {
    let within = |number: u64| usize::try_from(number).certain("a tile has 256 hashes");
    let from = within(at % WIDTH);
    tile.get(from..from + within(wanted)).ok_or_else(|| missing(level, at / WIDTH))
}

fn missing(level: u8, index: u64) -> StoreError {
    StoreError::Damaged(format!("tile {level}/{index} is missing"))
}

#[cfg(test)]
mod tests {
    use pilot_evidence::proof::check_inclusion;

    use super::*;

    type Stored = HashMap<(u8, u64), Vec<Hash>>;

    impl Tiles for &Stored {
        fn full_tile(&mut self, level: u8, index: u64) -> Result<Option<Vec<Hash>>> {
            Ok(self.get(&(level, index)).cloned())
        }
    }

    fn leaf(number: u64) -> Hash {
        Hash::of_leaf(&number.to_be_bytes())
    }

    /// A stored tree of this many leaves.
    fn grown(size: u64) -> (Stored, Edge) {
        let (mut stored, mut edge, mut full) = (Stored::new(), Edge::default(), Vec::new());
        for number in 0..size {
            edge.push(leaf(number), &mut full);
            stored.extend(full.drain(..).map(|tile| ((tile.level, tile.index), tile.hashes)));
        }
        (stored, edge)
    }

    #[test]
    fn an_inclusion_leads_to_the_root_at_every_size_the_tree_has_had() {
        let (stored, edge) = grown(66_000);
        for size in [1, 2, 255, 256, 257, 300, 511, 512, 1_000, 65_535, 65_536, 65_537, 65_900, 66_000] {
            let mut earlier = Edge::default();
            (0..size).for_each(|number| earlier.push(leaf(number), &mut Vec::new()));
            let mut tree = Tree::new(&stored, &edge);
            for index in [0, 1, size / 3, size / 2, size - 1].into_iter().filter(|index| *index < size) {
                let path = tree.inclusion(index, size).unwrap();
                check_inclusion(leaf(index), index, size, &path, earlier.root())
                    .unwrap_or_else(|error| panic!("{index} of {size}: {error}"));
            }
            assert!(tree.inclusion(size, size).is_err());
        }
        assert!(Tree::new(&stored, &edge).inclusion(0, 66_001).is_err(), "nothing is proved that is not there");
    }

    #[test]
    fn rows_are_those_of_the_tree_also_at_its_right_edge() {
        let (stored, edge) = grown(1_000);
        let mut tree = Tree::new(&stored, &edge);
        let leaves: Vec<_> = (700..1_000).map(leaf).collect();
        assert_eq!(tree.row(0, 700, 300).unwrap(), leaves);
        let above: Vec<_> = (0..3).map(|tile| root_of(&tree.row(0, tile * 256, 256).unwrap())).collect();
        assert_eq!(tree.row(1, 0, 3).unwrap(), above);
        assert!(tree.row(1, 0, 4).is_err() && tree.row(0, 999, 2).is_err() && tree.row(9, 0, 1).is_err());
    }

    #[test]
    fn what_is_above_full_tiles_is_hashed_once_for_all_requests() {
        let (stored, edge) = grown(200_000);
        let upper = UpperRoots::default();
        let prove = |index| {
            let mut tree = Tree::new(&stored, &edge).sharing(&upper);
            let path = tree.inclusion(index, 200_000).unwrap();
            check_inclusion(leaf(index), index, 200_000, &path, edge.root()).unwrap();
            tree.hashed
        };
        for index in (0..200_000).step_by(256) {
            prove(index);
        }
        for index in [0, 77_777, 130_000] {
            let hashed = prove(index);
            // All of its tile but for the eight on the way up, and the unfinished tile at the edge.
            assert!(hashed <= 247 + 64 + 2 * 8, "{hashed} hashes for entry {index}");
        }
    }

    #[test]
    fn what_is_shared_is_bounded_and_forgotten_roots_are_hashed_again() {
        let upper = UpperRoots::default();
        for number in 0..2 * UPPER_ROOTS_MAX as u64 {
            upper.keep(number, number + 512, leaf(number));
            assert_eq!(upper.get(number, number + 512), Some(leaf(number)));
            assert!(upper.0.lock().unwrap().len() <= UPPER_ROOTS_MAX);
        }
        assert_eq!(upper.get(0, 512), None);
    }

    #[test]
    fn what_the_proofs_of_one_item_share_is_read_and_hashed_once() {
        let (stored, edge) = grown(100_000);
        let mut tree = Tree::new(&stored, &edge);
        for index in (0..100_u64).map(|number| number * 997) {
            tree.inclusion(index, 100_000).unwrap();
        }
        // One tile for each entry, those above them, and the edge.
        assert!(tree.tiles.len() <= 100 + 2 + 2, "{} tiles", tree.tiles.len());
        // Within its tile an entry costs at most 255 hashes; the levels above cost little for all entries together.
        assert!(tree.hashed <= 100 * 255 + 2 * 1_024, "{} hashes", tree.hashed);
        let mut tree = Tree::new(&stored, &edge);
        for index in 5_000..6_000 {
            tree.inclusion(index, 100_000).unwrap();
        }
        assert!(tree.tiles.len() <= 5 + 2 + 2, "{} tiles for a thousand neighbours", tree.tiles.len());
    }
}
