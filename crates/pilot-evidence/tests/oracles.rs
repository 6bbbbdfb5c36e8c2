//! Our tree and notes against what other people have written from the same specifications.

use std::convert::Infallible;

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::merkle::{Edge, Hash};
use pilot_evidence::note::{NoteKey, open};
use pilot_evidence::proof::{Rows, check_consistency, check_inclusion, consistency, inclusion};
use pilot_evidence::tile::{TILE_HEIGHT, Tile, Wanted};
use sha2::Sha256;
use signed_note::{Signature, StandardVerifier, VerifierList};
use tlog_tiles::{HashReader, check_record, check_tree, prove_record, prove_tree, stored_hashes, tree_hash};

const LEAVES: u64 = 100_000;
/// Up to here every size is compared, and every root; above, some.
const EVERY: u64 = 1_000;

/// Every hash of a tree, in the order their library gives them.
#[derive(Default)]
struct Stored(Vec<tlog_tiles::Hash>);

impl HashReader for Stored {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog_tiles::Hash>, tlog_tiles::tlog::Error> {
        Ok(indexes.iter().map(|index| self.0[*index as usize]).collect())
    }
}

/// The same tree, grown by each of the three.
struct Trees {
    edge: Edge,
    full: Vec<Tile>,
    theirs: Stored,
    memory: MemoryBackedTree<Sha256, Vec<u8>>,
    leaves: Vec<Hash>,
}

impl Trees {
    fn new() -> Trees {
        let (edge, full) = (Edge::default(), Vec::new());
        Trees { edge, full, theirs: Stored::default(), memory: MemoryBackedTree::new(), leaves: Vec::new() }
    }

    fn push(&mut self) {
        let number = self.edge.size();
        let data = format!("leaf {number}").into_bytes();
        let leaf = Hash::of_leaf(&data);
        self.leaves.push(leaf);
        self.edge.push(leaf, &mut self.full);
        let hashes = stored_hashes(number, &data, &self.theirs).unwrap();
        self.theirs.0.extend(hashes);
        self.memory.push(data);
    }
}

/// Our proofs are made from tiles, as a store keeps them.
impl Rows for Trees {
    type Error = Infallible;

    fn row(&self, level: u8, start: u64, count: u64) -> Result<Vec<Hash>, Infallible> {
        let mut hashes = Vec::new();
        for at in start..start + count {
            let (tile, place) = (at / 256, (at % 256) as usize);
            let full = self.full.iter().find(|known| known.level == level && known.index == tile);
            hashes.push(full.map_or_else(|| self.edge.partial(level)[place], |tile| tile.hashes[place]));
        }
        Ok(hashes)
    }
}

fn ours(hashes: &[tlog_tiles::Hash]) -> Vec<Hash> {
    hashes.iter().map(|hash| Hash(hash.0)).collect()
}

fn chunks(bytes: &[u8]) -> Vec<Hash> {
    bytes.chunks(32).map(|hash| Hash(hash.try_into().unwrap())).collect()
}

#[test]
fn roots_and_proofs_are_those_of_two_other_implementations_at_every_size_to_a_thousand() {
    let mut trees = Trees::new();
    let mut roots = vec![trees.edge.root()];
    for size in 1..=EVERY {
        trees.push();
        let root = trees.edge.root();
        roots.push(root);
        let theirs = tree_hash(size, &trees.theirs).unwrap();
        assert_eq!(root, Hash(theirs.0), "root of {size}");
        assert_eq!(root.0, trees.memory.root().as_bytes()[..], "root of {size}");
        // A few places in each tree, other ones in each.
        for index in [0, size / 3, size * 7 / 11, size - 1] {
            let path = inclusion(&trees, index, size).unwrap();
            assert_eq!(path, ours(&prove_record(size, index, &trees.theirs).unwrap()), "{index} of {size}");
            assert_eq!(path, chunks(trees.memory.prove_inclusion(index as usize).as_bytes()), "{index} of {size}");
            let leaf = trees.leaves[index as usize];
            assert_eq!(check_inclusion(leaf, index, size, &path, root), Ok(()));
        }
        for old in [1, size / 2, size * 5 / 7, size - 1].into_iter().filter(|old| *old > 0) {
            let path = consistency(&trees, old, size).unwrap();
            let old_root = roots[old as usize];
            assert_eq!(path, ours(&prove_tree(size, old, &trees.theirs).unwrap()), "{old} to {size}");
            if old < size {
                let memory = trees.memory.prove_consistency((size - old) as usize);
                assert_eq!(path, chunks(memory.as_bytes()), "{old} to {size}");
            }
            assert_eq!(check_consistency(old, old_root, size, root, &path), Ok(()));
        }
    }
}

#[test]
fn a_tree_of_a_hundred_thousand_has_their_root_their_proofs_and_their_tiles() {
    let mut trees = Trees::new();
    for _ in 0..LEAVES {
        trees.push();
    }
    let root = trees.edge.root();
    let theirs = tree_hash(LEAVES, &trees.theirs).unwrap();
    assert_eq!(root, Hash(theirs.0));
    assert_eq!(root.0, trees.memory.root().as_bytes()[..]);
    for index in [0, 255, 256, 65_535, 65_536, 77_777, LEAVES - 1] {
        let path = inclusion(&trees, index, LEAVES).unwrap();
        assert_eq!(path, ours(&prove_record(LEAVES, index, &trees.theirs).unwrap()), "{index}");
        let as_theirs: Vec<_> = path.iter().map(|hash| tlog_tiles::Hash(hash.0)).collect();
        let leaf = tlog_tiles::Hash(trees.leaves[index as usize].0);
        check_record(&as_theirs, LEAVES, theirs, index, leaf).unwrap();
    }
    for old in [1, 255, 256, 257, 65_536, 99_999] {
        let path = consistency(&trees, old, LEAVES).unwrap();
        assert_eq!(path, ours(&prove_tree(LEAVES, old, &trees.theirs).unwrap()), "{old}");
        let as_theirs: Vec<_> = path.iter().map(|hash| tlog_tiles::Hash(hash.0)).collect();
        let old_root = tree_hash(old, &trees.theirs).unwrap();
        check_tree(&as_theirs, LEAVES, theirs, old, old_root).unwrap();
    }
    for tile in &trees.full {
        let theirs = tlog_tiles::Tile::new(TILE_HEIGHT, tile.level, tile.index, 256, false);
        assert_eq!(tile.to_bytes(), theirs.read_data(&trees.theirs).unwrap(), "{}", theirs.path());
        let path = theirs.path();
        let wanted = Wanted::Hashes { level: tile.level, index: tile.index, width: 256 };
        assert_eq!(Wanted::parse(path.strip_prefix("tile/8/").unwrap()), Some(wanted), "{path}");
    }
    assert_eq!(trees.full.len() as u64, LEAVES / 256 + LEAVES / 65_536);
    let last = trees.theirs.read_hashes(&[0]).unwrap();
    assert_eq!(ours(&last), trees.leaves[..1]);
}

#[test]
fn notes_and_keys_are_read_the_same_by_another_implementation() {
    let key = NoteKey::generate("log.example.org", &[7; 32]).unwrap();
    let checkpoint = Checkpoint { origin: "log.example.org".into(), size: 12, root: Hash::of_nothing() };
    let note = checkpoint.sign(&key);
    let verifier = StandardVerifier::new(&key.verifier().to_string()).unwrap();
    let known = VerifierList::new(vec![Box::new(verifier)]);
    let theirs = signed_note::Note::from_bytes(note.as_bytes()).unwrap();
    assert_eq!(theirs.text(), checkpoint.text().as_bytes());
    let (good, unknown) = theirs.verify(&known).unwrap();
    assert_eq!((good.len(), unknown.len()), (1, 0));
    assert_eq!(good.iter().map(Signature::name).collect::<Vec<_>>(), ["log.example.org"]);
    // And a note that they have signed with our key is one that we open.
    let signer = signed_note::StandardSigner::new(key.to_line().trim_end()).unwrap();
    let mut written = signed_note::Note::new(checkpoint.text().as_bytes(), &[]).unwrap();
    written.add_sigs(&[&signer]).unwrap();
    let written = String::from_utf8(written.to_bytes()).unwrap();
    assert_eq!(written, note);
    assert_eq!(open(&written, &key.verifier()), Ok(checkpoint.text().as_str()));
    for changed in [note.replace("12", "13"), note.replace("log.example.org\n", "log.example.com\n")] {
        let theirs = signed_note::Note::from_bytes(changed.as_bytes()).unwrap();
        assert!(theirs.verify(&known).is_err() && open(&changed, &key.verifier()).is_err(), "{changed}");
    }
}
