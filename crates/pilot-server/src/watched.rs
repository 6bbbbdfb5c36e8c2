//! Notices when files are replaced. They are checked once a second; no signal is needed.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// After this many looks, files that could not be used are tried again.
const RETRIED_LOOKS: u32 = 10;

/// Device, inode, change time and size: a replaced file differs in one of them.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

/// Files that are checked at intervals.
pub(crate) struct Watched {
    paths: Vec<PathBuf>,
    looks: Mutex<Looks>,
}

struct Looks {
    applied: Vec<Stamp>,
    last: Vec<Stamp>,
    /// Why they could not be used, and how often they were looked at since.
    refused: Option<(String, u32)>,
}

impl Watched {
    pub(crate) fn new<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Watched {
        let paths: Vec<_> = paths.cloned().collect();
        let stamps: Vec<_> = paths.iter().map(|path| stamp(path)).collect();
        Watched { paths, looks: Mutex::new(Looks { applied: stamps.clone(), last: stamps, refused: None }) }
    }

    /// Whether the files differ from those in use and have stopped changing.
    pub(crate) fn look(&self) -> bool {
        let stamps = self.paths.iter().map(|path| stamp(path)).collect();
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).is_due(stamps)
    }

    /// They could not be used: they are tried again later, because what is wrong may not be in the files. True unless it
    /// is the same cause as the last time.
    pub(crate) fn refuse(&self, cause: &str) -> bool {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.refused.replace((cause.to_owned(), 0)).is_none_or(|(before, _)| before != cause)
    }

    /// What is in the files is in use.
    pub(crate) fn accept(&self) {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).refused = None;
    }
}

impl Looks {
    /// Whether the files differ from those in use and are the same as at the last check: a certificate and its key are
    /// two files, and the second is replaced a moment after the first.
    fn is_due(&mut self, now: Vec<Stamp>) -> bool {
        let settled = now == self.last;
        self.last.clone_from(&now);
        if let Some((_, looks)) = &mut self.refused {
            *looks += 1;
        }
        let is_retried = self.refused.as_ref().is_some_and(|(_, looks)| *looks >= RETRIED_LOOKS);
        if !settled || (now == self.applied && !is_retried) {
            return false;
        }
        self.applied = now;
        true
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec(), metadata.size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Vec<Stamp> {
        vec![Some((1, 1, second, 0, 10)), Some((1, 2, 0, 0, 10))]
    }

    #[test]
    fn a_replaced_file_is_taken_up_once_and_only_when_it_has_settled() {
        let mut looks = Looks { applied: at(0), last: at(0), refused: None };
        assert!(!looks.is_due(at(0)), "nothing changed");
        assert!(!looks.is_due(at(1)), "it may still be changing");
        assert!(!looks.is_due(at(2)), "it did");
        assert!(looks.is_due(at(2)));
        assert!(!looks.is_due(at(2)), "taken up already, or found unusable");
    }

    #[test]
    fn a_file_that_vanished_and_came_back_as_it_was_is_not_taken_up_again() {
        let gone = || vec![None, Some((1, 2, 0, 0, 10))];
        let mut looks = Looks { applied: at(0), last: at(0), refused: None };
        assert!(!looks.is_due(gone()));
        assert!(!looks.is_due(at(0)));
        assert!(!looks.is_due(at(0)));
    }
}
