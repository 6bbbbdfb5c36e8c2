//! The Merkle tree of RFC 6962 over SHA-256, grown one leaf at a time.

use std::fmt;

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest, Sha256};

use crate::tile::{TILE_HEIGHT, TILE_WIDTH, Tile};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The root of a tree without leaves.
    pub fn of_nothing() -> Hash {
        Hash(Sha256::digest([]).into())
    }

    /// The prefixes keep a leaf from being mistaken for an inner node.
    pub fn of_leaf(data: &[u8]) -> Hash {
        let mut hash = Sha256::new();
        hash.update([0]);
        hash.update(data);
        Hash(hash.finalize().into())
    }

    pub fn of_children(left: Hash, right: Hash) -> Hash {
        let mut hash = Sha256::new();
        hash.update([1]);
        hash.update(left.0);
        hash.update(right.0);
        Hash(hash.finalize().into())
    }

    pub fn from_base64(text: &str) -> Option<Hash> {
        Some(Hash(BASE64.decode(text.as_bytes()).ok()?.try_into().ok()?))
    }

    pub fn to_base64(self) -> String {
        BASE64.encode(&self.0)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// The root over a row of subtrees of equal size, of which the last may be smaller.
pub fn root_of(hashes: &[Hash]) -> Hash {
    match hashes {
        [] => Hash::of_nothing(),
        [one] => *one,
        several => {
            let (left, right) = several.split_at(several.len().next_power_of_two() / 2);
            Hash::of_children(root_of(left), root_of(right))
        }
    }
}

/// The largest power of two below `size`: where RFC 6962 divides a tree of that many leaves.
pub fn split(size: u64) -> u64 {
    match size {
        0..=2 => 1,
        _ => 1 << (size - 1).ilog2(),
    }
}

/// The right edge of a growing tree: for each level of tiles, the hashes of the tile that is not yet full.
#[derive(Clone, Debug, Default)]
pub struct Edge {
    size: u64,
    levels: Vec<Vec<Hash>>,
    /// A root takes a few hashes from here, where the unfinished tiles would take hundreds, and one is made with every
    /// commit.
    peaks: Peaks,
}

/// The complete subtrees a tree consists of, largest first, each with its height: all that is needed to let it grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peaks(Vec<(u8, Hash)>);

impl Peaks {
    /// The peaks of a tree of `size` leaves, largest first; nothing when there are more or fewer than such a tree has.
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

    /// Two subtrees of one height become one of the next, as in counting. Gives the roots of the tiles that became full,
    /// lowest level first.
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
            let level = u8::try_from(levels.len()).unwrap_or(u8::MAX).saturating_sub(above);
            let mut rest = row.as_slice();
            for height in (0..TILE_HEIGHT).rev().filter(|height| row.len() >> height & 1 == 1) {
                let (subtree, after) = rest.split_at_checked(1 << height).unwrap_or((rest, &[]));
                peaks.0.push((level * TILE_HEIGHT + height, root_of(subtree)));
                rest = after;
            }
        }
        Edge { size, levels, peaks }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf. Tiles that it completes, most often none, are appended to `full`.
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

    /// The unfinished tile of a level, when it holds anything.
    pub fn partial(&self, level: u8) -> &[Hash] {
        self.levels.get(usize::from(level)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The leaves and roots of the Certificate Transparency reference tests.
    const LEAVES: [&str; 8] =
        ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    #[test]
    fn roots_equal_those_of_the_certificate_transparency_reference() {
        let mut edge = Edge::default();
        assert_eq!(format!("{:?}", edge.root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        for (leaf, root) in LEAVES.iter().zip(ROOTS) {
            edge.push(Hash::of_leaf(&HEXLOWER.decode(leaf.as_bytes()).unwrap()), &mut Vec::new());
            assert_eq!(format!("{:?}", edge.root()), root);
        }
    }

    #[test]
    fn the_edge_agrees_with_the_definition_at_every_size_and_emits_each_tile_once() {
        let leaves: Vec<_> = (0..70_000_u32).map(|number| Hash::of_leaf(&number.to_be_bytes())).collect();
        let (mut edge, mut full) = (Edge::default(), Vec::new());
        for (count, leaf) in leaves.iter().enumerate() {
            edge.push(*leaf, &mut full);
            let size = count + 1;
            if size < 1_030 || size % 9_973 == 0 || (65_530..65_540).contains(&size) {
                assert_eq!(edge.root(), root_of(&leaves[..size]), "size {size}");
                let levels: Vec<_> = (0..3).map(|level| edge.partial(level).to_vec()).collect();
                let mut again = Edge::new(edge.size(), levels);
                assert_eq!(again.root(), edge.root(), "size {size}, read again");
                let mut grown = edge.clone();
                grown.push(*leaf, &mut Vec::new());
                again.push(*leaf, &mut Vec::new());
                assert_eq!(again.root(), grown.root(), "size {size}, read again and grown");
            }
        }
        let places: Vec<_> = full.iter().filter(|tile| tile.level == 1).map(|tile| tile.index).collect();
        assert_eq!(places, [0]);
        assert_eq!(full.iter().filter(|tile| tile.level == 0).count(), 70_000 / 256);
        assert!(full.iter().filter(|tile| tile.level == 0).enumerate().all(|(at, tile)| tile.index == at as u64));
    }
}
