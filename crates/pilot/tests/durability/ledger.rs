//! The ledger as an auditor reads it from outside, and everything that must hold of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pilot_evidence::merkle::{Edge, Hash};
use serde_json::Value;

use crate::durability::client::{Acknowledged, Client};
use crate::support::harness::{Installation, Server};

/// Size and root of a checkpoint, as it was served.
pub fn read_checkpoint(note: &str) -> (u64, String) {
    let mut lines = note.lines().skip(1);
    (lines.next().unwrap().parse().unwrap(), lines.next().unwrap().to_owned())
}

/// What was read so far. It only grows; whatever is read later must continue it.
#[derive(Default)]
pub struct Seen {
    edge: Edge,
    /// The index of every version of every item.
    moves: HashMap<(String, u64), u64>,
    creations: usize,
    /// Checkpoints that were served, and not compared yet.
    pub checkpoints: BTreeMap<u64, BTreeSet<String>>,
}

impl Seen {
    pub fn remember(&mut self, note: &str) {
        let (size, root) = read_checkpoint(note);
        self.checkpoints.entry(size).or_default().insert(root);
    }

    /// Reads what is new, and holds it against every checkpoint served so far.
    pub fn read(&mut self, server: &Server) {
        let mut client = Client::connect(server.address);
        let note = String::from_utf8(client.read("/v1/log/checkpoint").body).unwrap();
        self.remember(&note);
        let (size, _) = read_checkpoint(&note);
        assert!(size >= self.edge.size(), "the log has become shorter: {size} after {}", self.edge.size());
        while self.edge.size() < size {
            let (bundle, offset) = (self.edge.size() / 256, self.edge.size() % 256);
            let width = (size - bundle * 256).min(256);
            let partial = if width < 256 { format!(".p/{width}") } else { String::new() };
            let path = format!("/v1/log/tile/entries/{bundle:03}{partial}");
            let response = client.read(&path);
            assert_eq!(response.status, 200, "{path}");
            for bytes in split(&response.body).into_iter().skip(usize::try_from(offset).unwrap()) {
                self.push(bytes);
            }
        }
        self.compare_checkpoints();
        assert!(
            self.checkpoints.is_empty(),
            "a checkpoint was served for entries that are not there: {:?}",
            self.checkpoints
        );
    }

    fn push(&mut self, bytes: &[u8]) {
        self.compare_checkpoints();
        let entry: Value = serde_json::from_slice(bytes).unwrap();
        let index = self.edge.size();
        assert_eq!(entry["index"].as_u64(), Some(index), "indices have a gap");
        let is_move = entry["type"] != "item.comment";
        if let (Some(item), Some(version), true) = (entry["item"].as_str(), entry["version"].as_u64(), is_move) {
            let earlier = self.moves.insert((item.to_owned(), version), index);
            assert_eq!(earlier, None, "{item} has version {version} twice");
            assert!(version == 1 || self.moves.contains_key(&(item.to_owned(), version - 1)));
            self.creations += usize::from(version == 1);
        }
        self.edge.push(Hash::of_leaf(bytes), &mut Vec::new());
    }

    fn compare_checkpoints(&mut self) {
        if let Some(roots) = self.checkpoints.remove(&self.edge.size()) {
            let root = self.edge.root().to_base64();
            assert!(roots.iter().all(|served| *served == root), "a fork at size {}", self.edge.size());
        }
    }

    pub fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Every acknowledged write is there, at the place it was told; and no creation is there that nobody asked for.
    pub fn holds(&self, acknowledged: &[Acknowledged]) {
        for Acknowledged { item, version, index } in acknowledged {
            let found = self.moves.get(&(item.clone(), *version));
            let found = found.unwrap_or_else(|| panic!("version {version} of {item} was acknowledged, and is lost"));
            assert!(index.is_none_or(|index| index == *found), "{item} {version} moved from {index:?} to {found}");
        }
    }

    pub fn creations(&self) -> usize {
        self.creations
    }
}

fn split(mut bundle: &[u8]) -> Vec<&[u8]> {
    let mut entries = Vec::new();
    while let [high, low, rest @ ..] = bundle {
        let (entry, rest) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        entries.push(entry);
        bundle = rest;
    }
    entries
}

/// `pilot log fsck` finds nothing.
#[track_caller]
pub fn is_whole(installation: &Installation) {
    let finished = installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
    assert!(finished.stdout.contains("everything is consistent"), "{finished:#?}");
}
