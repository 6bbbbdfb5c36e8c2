//! What was done to a disk, and what a power cut at any moment could have left of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pilot_testing::Dice;

use crate::durability::ledger::read_checkpoint;
use crate::durability::trace::{Deed, Step};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// Numbers without order that are the same for the same seed.
/// What becomes of a write that was not synced.
#[derive(Debug, Clone, Copy)]
pub enum Luck {
    Kept,
    Lost,
    /// Some writes are there and some are not.
    Scattered,
    /// Some sectors of each.
    Torn,
}

/// A change of a file's content.
struct Change {
    began: usize,
    /// From here on it is on the disk for certain.
    safe: usize,
    what: Content,
}

enum Content {
    Write(usize, Vec<u8>),
    Length(usize),
}

/// A change of the names there are.
struct Naming {
    began: usize,
    safe: usize,
    what: Name,
}

enum Name {
    Directory,
    /// The file with this number.
    File(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
}

/// Everything that was ever on the disk.
pub struct History {
    /// What was there, safely, when the trace began.
    names: BTreeMap<PathBuf, usize>,
    /// The number of entries there were then.
    entries: usize,
    files: Vec<(Vec<u8>, Vec<Change>)>,
    namings: Vec<Naming>,
    pub acknowledged: Vec<(usize, String, u64)>,
    pub end: usize,
}

/// For each path, when its syncs began, and when the first that began then or later had ended.
struct Syncs(BTreeMap<PathBuf, Vec<(usize, usize)>>);

impl Syncs {
    fn of(steps: &[Step]) -> Syncs {
        let mut syncs: BTreeMap<PathBuf, Vec<(usize, usize)>> = BTreeMap::new();
        for step in steps.iter().rev() {
            if let Deed::Sync(path) = &step.deed {
                let of_path = syncs.entry(path.clone()).or_default();
                let earliest = of_path.last().map_or(usize::MAX, |(_, ended)| *ended);
                of_path.push((step.began, earliest.min(step.ended)));
            }
        }
        for of_path in syncs.values_mut() {
            of_path.reverse();
        }
        Syncs(syncs)
    }

    /// When a change that had ended then was on the disk for certain.
    fn after(&self, path: &Path, ended: usize) -> usize {
        let Some(syncs) = self.0.get(path) else { return usize::MAX };
        let first = syncs.partition_point(|(began, _)| *began <= ended);
        syncs.get(first).map_or(usize::MAX, |(_, ended)| *ended)
    }
}

impl History {
    pub fn new(before: BTreeMap<PathBuf, Vec<u8>>, steps: Vec<Step>) -> History {
        let syncs = Syncs::of(&steps);
        let safe = |path: &Path, ended: usize| syncs.after(path, ended);
        let end = steps.iter().map(|step| step.began + 1).max().unwrap_or(0);
        let kept = before.get(Path::new("data/log.checkpoint"));
        let kept = kept.map(|note| read_checkpoint(std::str::from_utf8(note).unwrap()).0);
        let mut history = History {
            names: BTreeMap::new(),
            entries: usize::try_from(kept.unwrap_or(0)).unwrap(),
            files: Vec::new(),
            namings: Vec::new(),
            acknowledged: Vec::new(),
            end,
        };
        for (path, bytes) in before {
            history.names.insert(path, history.files.len());
            history.files.push((bytes, Vec::new()));
        }
        let mut names = history.names.clone();
        for Step { began, ended, deed } in steps {
            let parent = |path: &Path| safe(path.parent().unwrap(), ended);
            match deed {
                Deed::Create(path) if names.contains_key(&path) => {}
                Deed::Create(path) => {
                    let (number, safe) = (history.files.len(), parent(&path));
                    history.files.push((Vec::new(), Vec::new()));
                    names.insert(path.clone(), number);
                    history.namings.push(Naming { began, safe, what: Name::File(path, number) });
                }
                Deed::MakeDirectory(path) => {
                    let safe = parent(&path);
                    history.namings.push(Naming { began, safe, what: Name::Directory });
                }
                Deed::Write { path, offset, bytes } => {
                    let change = Change { began, safe: safe(&path, ended), what: Content::Write(offset, bytes) };
                    history.files[names[&path]].1.push(change);
                }
                Deed::Truncate { path, length } => {
                    let change = Change { began, safe: safe(&path, ended), what: Content::Length(length) };
                    history.files[names[&path]].1.push(change);
                }
                Deed::Rename { from, to } => {
                    let (number, safe) = (names.remove(&from).unwrap(), parent(&to));
                    names.insert(to.clone(), number);
                    history.namings.push(Naming { began, safe, what: Name::Rename(from, to) });
                }
                Deed::Link { from, to } => {
                    let (number, safe) = (names[&from], parent(&to));
                    names.insert(to.clone(), number);
                    history.namings.push(Naming { began, safe, what: Name::File(to, number) });
                }
                Deed::Unlink(path) => {
                    let safe = parent(&path);
                    names.remove(&path);
                    history.namings.push(Naming { began, safe, what: Name::Unlink(path) });
                }
                Deed::Acknowledge { item, version } => history.acknowledged.push((began, item, version)),
                Deed::Sync(_) => {}
            }
        }
        history
    }

    /// The files as a power cut at `cut` could leave them. Names change in their order: that much a journal promises.
    pub fn cut(&self, cut: usize, dice: &mut Dice) -> (BTreeMap<PathBuf, Vec<u8>>, Luck) {
        let luck = [Luck::Kept, Luck::Lost, Luck::Scattered, Luck::Torn][dice.below(4)];
        let begun = self.namings.iter().take_while(|naming| naming.began < cut).count();
        let safe = self.namings[..begun].iter().rposition(|naming| naming.safe < cut).map_or(0, |last| last + 1);
        let kept = match luck {
            Luck::Kept => begun,
            Luck::Lost => safe,
            Luck::Scattered | Luck::Torn => safe + dice.below(begun - safe + 1),
        };
        let mut names = self.names.clone();
        for naming in &self.namings[..kept] {
            match &naming.what {
                Name::Directory => {}
                Name::File(path, number) => drop(names.insert(path.clone(), *number)),
                Name::Rename(from, to) => {
                    let number = names.remove(from).unwrap();
                    names.insert(to.clone(), number);
                }
                Name::Unlink(path) => drop(names.remove(path)),
            }
        }
        let files = names.into_iter().map(|(path, number)| (path, self.content(number, cut, luck, dice))).collect();
        (files, luck)
    }

    fn content(&self, number: usize, cut: usize, luck: Luck, dice: &mut Dice) -> Vec<u8> {
        let (before, changes) = &self.files[number];
        let mut content = before.clone();
        for change in changes.iter().take_while(|change| change.began < cut) {
            let is_torn = change.safe >= cut && matches!(luck, Luck::Torn);
            let is_lost = change.safe >= cut
                && match luck {
                    Luck::Kept | Luck::Torn => false,
                    Luck::Lost => true,
                    Luck::Scattered => dice.below(2) == 0,
                };
            match &change.what {
                _ if is_lost => {}
                Content::Length(length) if !is_torn || dice.below(2) == 0 => content.resize(*length, 0),
                Content::Length(_) => {}
                Content::Write(offset, bytes) => write(&mut content, *offset, bytes, is_torn.then_some(&mut *dice)),
            }
        }
        content
    }

    /// How many entries there must be: everything that was acknowledged.
    pub fn owed(&self, cut: usize, indices: &BTreeMap<(String, u64), usize>) -> usize {
        let acknowledged = self.acknowledged.iter().filter(|(at, ..)| *at < cut);
        acknowledged
            .map(|(_, item, version)| indices[&(item.clone(), *version)] + 1)
            .max()
            .unwrap_or(0)
            .max(self.entries)
    }
}

/// With dice, sector by sector, as each falls.
fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8], mut dice: Option<&mut Dice>) {
    let mut at = 0;
    while at < bytes.len() {
        let next = bytes.len().min(at + SECTOR - (offset + at) % SECTOR);
        if dice.as_mut().is_none_or(|dice| dice.below(2) == 0) {
            if content.len() < offset + next {
                content.resize(offset + next, 0);
            }
            content[offset + at..offset + next].copy_from_slice(&bytes[at..next]);
        }
        at = next;
    }
}
