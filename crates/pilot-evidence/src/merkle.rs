//! The Merkle tree of RFC 6962 over SHA-256, grown one leaf at a time.

use std::fmt;

use data_encoding::{BASE64, HEXLOWER};
use pilot_core::sha256::sha256;

mod edge;

pub use edge::{Edge, Peaks};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The root of a tree without leaves.
    pub fn of_nothing() -> Hash {
        Hash(sha256([]))
    }

    /// The prefixes keep a leaf from being mistaken for an inner node.
    pub fn of_leaf(data: &[u8]) -> Hash {
        Hash(sha256([&[0], data]))
    }

    pub fn of_children(left: Hash, right: Hash) -> Hash {
        Hash(sha256([&[1], &left.0, &right.0]))
    }

    pub fn from_base64(text: &str) -> Option<Hash> {
        let hash = Hash(BASE64.decode(text.as_bytes()).ok()?.try_into().ok()?);
        // The library decodes several padded pieces as one text; a hash has only one valid spelling.
        (hash.to_base64() == text).then_some(hash)
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

/// The root over a row of subtrees of equal size, the last of which may be smaller.
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

/// The largest power of two below `size`: where RFC 6962 splits a tree of that many leaves.
pub fn split(size: u64) -> u64 {
    match size {
        0..=2 => 1,
        _ => 1 << (size - 1).ilog2(),
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
