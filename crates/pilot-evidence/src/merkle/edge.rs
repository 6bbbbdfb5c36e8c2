//! The right edge of a growing tree, and the peaks its root is computed from.

use pilot_core::certain::Certain as _;

use super::{Hash, root_of};
use crate::tile::{TILE_HEIGHT, TILE_WIDTH, Tile};

/// The right edge of a growing tree: for each level of tiles, the hashes of the tile that is not yet full.
#[derive(Clone, Debug, Default)]
pub struct Edge {
    size: u64,
    levels: Vec<Vec<Hash>>,
    /// Computing a root takes a few hashes from here; from the unfinished tiles it would take hundreds, and every
    /// commit needs one.
    peaks: Peaks,
}

/// The complete subtrees of a tree, largest first, each with its height: all that is needed to let it grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peaks(Vec<(u8, Hash)>);

impl Peaks {
    /// The peaks of a tree of `size` leaves, largest first; `None` if there are more or fewer than such a tree has.
    pub fn new(size: u64, hashes: &[Hash]) -> Option<Peaks> {
        let heights: Vec<_> = (0..64_u8).rev().filter(|height| size >> height & 1 == 1).collect();
        let peaks = (heights.len() == hashes.len()).then(|| heights.into_iter().zip(hashes.iter().copied()).collect());
        peaks.map(Peaks)
    }

    pub fn hashes(&self) -> Vec<Hash> {
        self.0.iter().map(|(_, hash)| *hash).collect()
    }

    pub fn push(&mut self, leaf: Hash) {
        self.raise(leaf);
    }

    /// Two subtrees of one height become one of the next, like carrying in addition. Returns the roots of the tiles
    /// that became full, lowest level first.
    fn raise(&mut self, leaf: Hash) -> Vec<Hash> {
        let mut roots = Vec::new();
        let mut peak = (0_u8, leaf);
        while let Some((height, left)) = self.0.pop_if(|(height, _)| *height == peak.0) {
            peak = (height + 1, Hash::of_children(left, peak.1));
            if peak.0.is_multiple_of(TILE_HEIGHT) {
                roots.push(peak.1);
            }
        }
        self.0.push(peak);
        roots
    }

    pub fn root(&self) -> Hash {
        let smallest_first = self.0.iter().rev().map(|(_, hash)| *hash);
        smallest_first.reduce(|right, left| Hash::of_children(left, right)).unwrap_or_else(Hash::of_nothing)
    }
}

impl Edge {
    /// The edge of a stored tree: the hashes of its unfinished tiles, lowest level first.
    pub fn new(size: u64, levels: Vec<Vec<Hash>>) -> Edge {
        let mut peaks = Peaks::default();
        for (above, row) in (1_u8..).zip(levels.iter().rev()) {
            let level = u8::try_from(levels.len()).certain("a tree of 64 bits has eight levels of tiles") - above;
            let mut rest = row.as_slice();
            for height in (0..TILE_HEIGHT).rev().filter(|height| row.len() >> height & 1 == 1) {
                let (subtree, after) =
                    rest.split_at_checked(1 << height).certain("a row has as many hashes as its length has bits");
                peaks.0.push((level * TILE_HEIGHT + height, root_of(subtree)));
                rest = after;
            }
        }
        Edge { size, levels, peaks }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf. The tiles it completes, usually none, are appended to `full`.
    pub fn push(&mut self, leaf: Hash, full: &mut Vec<Tile>) {
        let roots = self.peaks.raise(leaf);
        let mut carry = leaf;
        let mut position = self.size;
        self.size += 1;
        for level in 0_u8.. {
            if self.levels.len() <= usize::from(level) {
                self.levels.push(Vec::with_capacity(TILE_WIDTH));
            }
            let Some(row) = self.levels.get_mut(usize::from(level)) else { return };
            row.push(carry);
            if row.len() < TILE_WIDTH {
                return;
            }
            let Some(root) = roots.get(usize::from(level)) else { return };
            carry = *root;
            full.push(Tile { level, index: position / TILE_WIDTH as u64, hashes: std::mem::take(row) });
            position /= TILE_WIDTH as u64;
        }
    }

    pub fn root(&self) -> Hash {
        self.peaks.root()
    }

    pub fn peaks(&self) -> &Peaks {
        &self.peaks
    }

    /// The unfinished tile of a level; empty if there is none.
    pub fn partial(&self, level: u8) -> &[Hash] {
        self.levels.get(usize::from(level)).map_or(&[], Vec::as_slice)
    }
}
