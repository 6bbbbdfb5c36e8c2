//! Inclusion and consistency proofs (RFC 6962), built from stored tiles and checked without them.

use std::ops::Range;

use pilot_core::certain::Certain as _;

use crate::merkle::{Hash, root_of, split};
use crate::tile::TILE_HEIGHT;

/// Where proofs get their hashes from: row `level` of tiles, `count` hashes beginning at `start`.
pub trait Rows {
    type Error;

    /// Hashes of consecutive complete subtrees of 256^level leaves each.
    fn row(&self, level: u8, start: u64, count: u64) -> Result<Vec<Hash>, Self::Error>;
}

/// The path from leaf `index` to the root of the tree of `size` leaves.
pub fn inclusion<R: Rows>(rows: &R, index: u64, size: u64) -> Result<Vec<Hash>, R::Error> {
    siblings(index, size).into_iter().map(|leaves| range(rows, leaves.start, leaves.end)).collect()
}

/// The leaves under each hash of that path.
pub fn siblings(index: u64, size: u64) -> Vec<Range<u64>> {
    let mut path = Vec::new();
    let (mut low, mut high) = (0, size);
    while high - low > 1 {
        let middle = low + split(high - low);
        if index < middle {
            path.push(middle..high);
            high = middle;
        } else {
            path.push(low..middle);
            low = middle;
        }
    }
    path.reverse();
    path
}

/// What proves that the tree of `new` leaves begins with the tree of `old` leaves.
pub fn consistency<R: Rows>(rows: &R, old: u64, new: u64) -> Result<Vec<Hash>, R::Error> {
    let mut path = Vec::new();
    if old == 0 || old >= new {
        return Ok(path);
    }
    let (mut low, mut high) = (0, new);
    // Descends to the complete subtree in which the old tree ends. If that is the whole old tree, the verifier already
    // knows its root.
    while old != high {
        let middle = low + split(high - low);
        if old <= middle {
            path.push(range(rows, middle, high)?);
            high = middle;
        } else {
            path.push(range(rows, low, middle)?);
            low = middle;
        }
    }
    if low != 0 {
        path.push(range(rows, low, high)?);
    }
    path.reverse();
    Ok(path)
}

/// The peaks of the tree of `size` leaves, largest first.
pub fn peaks<R: Rows>(rows: &R, size: u64) -> Result<Vec<Hash>, R::Error> {
    let (mut peaks, mut low) = (Vec::new(), 0);
    for height in (0..64).rev().filter(|height| size >> height & 1 == 1) {
        peaks.push(range(rows, low, low + (1 << height))?);
        low += 1 << height;
    }
    Ok(peaks)
}

/// The root over leaves `low..high`, where `low` is a point at which RFC 6962 would split.
pub fn range<R: Rows>(rows: &R, low: u64, high: u64) -> Result<Hash, R::Error> {
    let count = high - low;
    if count == 0 {
        return Ok(Hash::of_nothing());
    }
    if !count.is_power_of_two() {
        let middle = low + split(count);
        return Ok(Hash::of_children(range(rows, low, middle)?, range(rows, middle, high)?));
    }
    let level = u8::try_from(count.ilog2()).certain("a number has 64 bits") / TILE_HEIGHT;
    let width = level * TILE_HEIGHT;
    Ok(root_of(&rows.row(level, low >> width, count >> width)?))
}

#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum ProofError {
    #[error("the entry's index is not below the size of the tree")]
    Index,
    #[error("the proof has too many or too few hashes")]
    Length,
    #[error("the proof leads to another root")]
    Root,
}

/// Checks that `leaf` is at `index` in the tree of `size` leaves with this `root` (RFC 9162, 2.1.3.2).
pub fn check_inclusion(leaf: Hash, index: u64, size: u64, path: &[Hash], root: Hash) -> Result<(), ProofError> {
    if index >= size {
        return Err(ProofError::Index);
    }
    let (mut node, mut last, mut hash) = (index, size - 1, leaf);
    for sibling in path {
        if last == 0 {
            return Err(ProofError::Length);
        }
        if node & 1 == 1 || node == last {
            hash = Hash::of_children(*sibling, hash);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            hash = Hash::of_children(hash, *sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    match (last, hash == root) {
        (0, true) => Ok(()),
        (0, false) => Err(ProofError::Root),
        _ => Err(ProofError::Length),
    }
}

/// Checks that the tree (`new`, `new_root`) begins with the tree (`old`, `old_root`) (RFC 9162, 2.1.4.2).
pub fn check_consistency(old: u64, old_root: Hash, new: u64, new_root: Hash, path: &[Hash]) -> Result<(), ProofError> {
    if old > new {
        return Err(ProofError::Index);
    }
    if old == new || old == 0 {
        let same = old == 0 || old_root == new_root;
        return match (path.is_empty(), same) {
            (false, _) => Err(ProofError::Length),
            (true, false) => Err(ProofError::Root),
            (true, true) => Ok(()),
        };
    }
    let (first, path) = if old.is_power_of_two() {
        (old_root, path)
    } else {
        let (first, rest) = path.split_first().ok_or(ProofError::Length)?;
        (*first, rest)
    };
    let (mut node, mut last) = (old - 1, new - 1);
    while node & 1 == 1 {
        node >>= 1;
        last >>= 1;
    }
    let (mut old_hash, mut new_hash) = (first, first);
    for sibling in path {
        if last == 0 {
            return Err(ProofError::Length);
        }
        if node & 1 == 1 || node == last {
            old_hash = Hash::of_children(*sibling, old_hash);
            new_hash = Hash::of_children(*sibling, new_hash);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            new_hash = Hash::of_children(new_hash, *sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    match (last, old_hash == old_root && new_hash == new_root) {
        (0, true) => Ok(()),
        (0, false) => Err(ProofError::Root),
        _ => Err(ProofError::Length),
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "the trees of these tests are small")]
mod tests {
    use super::*;
    use std::convert::Infallible;

    struct Leaves(Vec<Hash>);

    impl Rows for Leaves {
        type Error = Infallible;

        fn row(&self, level: u8, start: u64, count: u64) -> Result<Vec<Hash>, Infallible> {
            let span = 1_usize << (level * TILE_HEIGHT);
            let subtree = |at: u64| root_of(&self.0[at as usize * span..(at as usize + 1) * span]);
            Ok((start..start + count).map(subtree).collect())
        }
    }

    fn leaves(count: u32) -> Leaves {
        Leaves((0..count).map(|number| Hash::of_leaf(&number.to_be_bytes())).collect())
    }

    #[test]
    fn every_inclusion_proof_of_small_trees_checks_and_no_altered_one_does() {
        let rows = leaves(70);
        for size in 1..=70_u64 {
            let root = root_of(&rows.0[..size as usize]);
            for index in 0..size {
                let path = inclusion(&rows, index, size).unwrap();
                let leaf = rows.0[index as usize];
                assert_eq!(check_inclusion(leaf, index, size, &path, root), Ok(()), "{index} of {size}");
                assert!(check_inclusion(Hash::of_leaf(b"other"), index, size, &path, root).is_err());
                assert!(check_inclusion(leaf, index, size, &path, Hash::of_nothing()).is_err());
                let longer = [path.clone(), vec![root]].concat();
                assert!(check_inclusion(leaf, index, size, &longer, root).is_err());
                if let Some(shorter) = path.len().checked_sub(1) {
                    assert!(check_inclusion(leaf, index, size, &path[..shorter], root).is_err());
                }
                assert!(size == 1 || check_inclusion(leaf, (index + 1) % size, size, &path, root).is_err());
            }
            assert_eq!(check_inclusion(root, size, size, &[], root), Err(ProofError::Index));
        }
    }

    #[test]
    fn every_consistency_proof_of_small_trees_checks_and_no_altered_one_does() {
        let rows = leaves(70);
        let root = |size: u64| root_of(&rows.0[..size as usize]);
        for new in 1..=70_u64 {
            for old in 0..=new {
                let path = consistency(&rows, old, new).unwrap();
                assert_eq!(check_consistency(old, root(old), new, root(new), &path), Ok(()), "{old} to {new}");
                if old > 0 {
                    assert!(
                        check_consistency(old, Hash::of_nothing(), new, root(new), &path).is_err(),
                        "{old} to {new}"
                    );
                }
                let longer = [path.clone(), vec![root(new)]].concat();
                assert!(check_consistency(old, root(old), new, root(new), &longer).is_err());
            }
        }
    }

    #[test]
    fn the_peaks_of_a_tree_give_its_root_and_let_it_grow() {
        let rows = leaves(70);
        for size in 0..70_u64 {
            let hashes = peaks(&rows, size).unwrap();
            let mut grown = crate::merkle::Peaks::new(size, &hashes).unwrap();
            assert_eq!(grown.root(), root_of(&rows.0[..size as usize]), "{size}");
            grown.push(rows.0[size as usize]);
            assert_eq!(grown.root(), root_of(&rows.0[..=size as usize]), "{size}");
            assert_eq!(grown.hashes(), peaks(&rows, size + 1).unwrap(), "{size}");
            assert_eq!(
                crate::merkle::Peaks::new(size + 1, &hashes).is_some(),
                (size + 1).count_ones() == size.count_ones()
            );
        }
    }

    #[test]
    fn proofs_that_cross_tiles_check_too() {
        let rows = leaves(70_000);
        let root = root_of(&rows.0);
        for index in [0, 255, 256, 65_535, 65_536, 69_999] {
            let path = inclusion(&rows, index, 70_000).unwrap();
            assert_eq!(check_inclusion(rows.0[index as usize], index, 70_000, &path, root), Ok(()), "{index}");
        }
        let old = 65_537;
        let path = consistency(&rows, old, 70_000).unwrap();
        assert_eq!(check_consistency(old, root_of(&rows.0[..old as usize]), 70_000, root, &path), Ok(()));
    }
}
