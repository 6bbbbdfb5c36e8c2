//! The tree as stored: full tiles from the file, unfinished ones from the right edge, which is in memory.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use pilot_core::certain::Certain as _;
use pilot_evidence::merkle::{Edge, Hash, root_of, split};
use pilot_evidence::tile::{TILE_HEIGHT, TILE_WIDTH};
use rusqlite::Connection;

use super::read;
use crate::{Result, StoreError};

const WIDTH: u64 = TILE_WIDTH as u64;

/// Lives for one request: what was read and hashed once is reused for the rest of it.
pub(super) struct Tree<'t> {
    connection: &'t Connection,
    /// Taken before reading began, so everything below it is in the file.
    head: &'t Edge,
    tiles: HashMap<(u8, u64), Rc<[Hash]>>,
    /// Roots over whole tiles, which the paths of many entries share.
    roots: HashMap<(u64, u64), Hash>,
    hashed: u64,
}

impl<'t> Tree<'t> {
    pub(super) fn new(connection: &'t Connection, head: &'t Edge) -> Tree<'t> {
        Tree { connection, head, tiles: HashMap::new(), roots: HashMap::new(), hashed: 0 }
    }

    /// Hashes of consecutive complete subtrees of 256^level leaves.
    pub(super) fn row(&mut self, level: u8, start: u64, count: u64) -> Result<Vec<Hash>> {
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
    pub(super) fn edge_at(&mut self, size: u64) -> Result<Edge> {
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
    pub(super) fn inclusion(&mut self, index: u64, size: u64) -> Result<Vec<Hash>> {
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
        if let Some(root) = self.roots.get(&(low, high)) {
            return Ok(*root);
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
        // Smaller ones belong to a single tile, and are rarely asked for again.
        if count >= WIDTH || !count.is_power_of_two() {
            self.roots.insert((low, high), root);
        }
        Ok(root)
    }

    fn tile(&mut self, level: u8, index: u64) -> Result<Rc<[Hash]>> {
        if let Some(tile) = self.tiles.get(&(level, index)) {
            return Ok(Rc::clone(tile));
        }
        let row_size = self.head.size().checked_shr(u32::from(level) * u32::from(TILE_HEIGHT)).unwrap_or(0);
        let tile: Rc<[Hash]> = match index.cmp(&(row_size / WIDTH)) {
            Ordering::Less => read::tile(self.connection, level, index)?.ok_or_else(|| missing(level, index))?.into(),
            Ordering::Equal => self.head.partial(level).into(),
            Ordering::Greater => return Err(missing(level, index)),
        };
        self.tiles.insert((level, index), Rc::clone(&tile));
        Ok(tile)
    }
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
    use crate::sqlite::schema::SCHEMA;

    fn leaf(number: u64) -> Hash {
        Hash::of_leaf(&number.to_be_bytes())
    }

    /// A stored tree of this many leaves.
    fn grown(size: u64) -> (Connection, Edge) {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        let (mut edge, mut full) = (Edge::default(), Vec::new());
        for number in 0..size {
            edge.push(leaf(number), &mut full);
            for tile in full.drain(..) {
                let index = i64::try_from(tile.index).unwrap();
                connection
                    .execute("INSERT INTO tile VALUES (?1, ?2, ?3)", (tile.level, index, tile.to_bytes()))
                    .unwrap();
            }
        }
        (connection, edge)
    }

    #[test]
    fn an_inclusion_leads_to_the_root_at_every_size_the_tree_has_had() {
        let (connection, edge) = grown(66_000);
        for size in [1, 2, 255, 256, 257, 300, 511, 512, 1_000, 65_535, 65_536, 65_537, 65_900, 66_000] {
            let mut earlier = Edge::default();
            (0..size).for_each(|number| earlier.push(leaf(number), &mut Vec::new()));
            let mut tree = Tree::new(&connection, &edge);
            for index in [0, 1, size / 3, size / 2, size - 1].into_iter().filter(|index| *index < size) {
                let path = tree.inclusion(index, size).unwrap();
                check_inclusion(leaf(index), index, size, &path, earlier.root())
                    .unwrap_or_else(|error| panic!("{index} of {size}: {error}"));
            }
            assert!(tree.inclusion(size, size).is_err());
        }
        assert!(Tree::new(&connection, &edge).inclusion(0, 66_001).is_err(), "nothing is proved that is not there");
    }

    #[test]
    fn rows_are_those_of_the_tree_also_at_its_right_edge() {
        let (connection, edge) = grown(1_000);
        let mut tree = Tree::new(&connection, &edge);
        let leaves: Vec<_> = (700..1_000).map(leaf).collect();
        assert_eq!(tree.row(0, 700, 300).unwrap(), leaves);
        let above: Vec<_> = (0..3).map(|tile| root_of(&tree.row(0, tile * 256, 256).unwrap())).collect();
        assert_eq!(tree.row(1, 0, 3).unwrap(), above);
        assert!(tree.row(1, 0, 4).is_err() && tree.row(0, 999, 2).is_err() && tree.row(9, 0, 1).is_err());
    }

    #[test]
    fn what_the_proofs_of_one_item_share_is_read_and_hashed_once() {
        let (connection, edge) = grown(100_000);
        let mut tree = Tree::new(&connection, &edge);
        for index in (0..100_u64).map(|number| number * 997) {
            tree.inclusion(index, 100_000).unwrap();
        }
        // One tile for each entry, those above them, and the edge.
        assert!(tree.tiles.len() <= 100 + 2 + 2, "{} tiles", tree.tiles.len());
        // Within its tile an entry costs at most 255 hashes; the levels above cost little for all entries together.
        assert!(tree.hashed <= 100 * 255 + 2 * 1_024, "{} hashes", tree.hashed);
        let mut tree = Tree::new(&connection, &edge);
        for index in 5_000..6_000 {
            tree.inclusion(index, 100_000).unwrap();
        }
        assert!(tree.tiles.len() <= 5 + 2 + 2, "{} tiles for a thousand neighbours", tree.tiles.len());
    }
}
