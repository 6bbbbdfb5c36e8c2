//! Size and root of the ledger as of the last acknowledgement, in a small file next to the database.
//!
//! It is written after each commit and never synced, so it costs next to nothing. If the process dies, it is exact. If
//! the power fails, it may be older than the ledger but never newer, so whatever it refers to must exist.
//!
//! A properly stopped store has no such file: everything is in the database, and the second place covers it. So a
//! leftover file cannot contradict a database that was put in place of another.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pilot_core::certain::Certain as _;
use pilot_core::sha256::sha256;
use pilot_evidence::merkle::{Edge, Hash};

use super::beside::with_suffix;
use crate::archive::Head;
use crate::{Result, StoreError};

/// A mark and a version, then size, root, and the beginning of a digest over all of it, so that a partial write is
/// detected. Later versions may put anything in between, but begin and end like this.
const MARK: [u8; 7] = *b"pilothd";
const VERSION: u8 = 1;
const BYTES: u64 = 7 + 1 + 8 + 32 + 8;
/// More than any version needs so far.
const BYTES_MAX: u64 = 4_096;

/// The fact that holds the size and root of the tree as of the last commit.
pub(super) const HEAD_FACT: &str = "head";

/// Size and root as they are stored.
pub(super) type HeadBytes = [u8; 40];

pub(super) fn head_bytes(edge: &Edge) -> HeadBytes {
    head_bytes_of(&Head { size: edge.size(), root: edge.root() })
}

pub(super) fn head_bytes_of(head: &Head) -> HeadBytes {
    let mut bytes = [0; 40];
    let (size, root) = bytes.split_at_mut(8);
    size.copy_from_slice(&head.size.to_be_bytes());
    root.copy_from_slice(&head.root.0);
    bytes
}

pub(super) fn beside(database: &Path) -> PathBuf {
    with_suffix(database, "-head")
}

fn seal(bytes: &[u8]) -> [u8; 8] {
    *sha256([bytes]).first_chunk().certain("a digest has 32 bytes")
}

/// What was acknowledged last, as far as the file knows. A file that is missing, truncated or full of zeros says
/// nothing: a power cut can leave it like that.
pub fn read(database: &Path) -> Result<Option<Head>> {
    let mut bytes = Vec::new();
    match File::open(beside(database)).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::DiskFailed(format!("{}: {error}", beside(database).display()))),
        Ok(_) => {}
    }
    let Some((body, _)) = bytes.split_last_chunk::<8>().filter(|(body, found)| seal(body) == **found) else {
        return Ok(None);
    };
    match body.strip_prefix(&MARK).and_then(<[u8]>::split_first) {
        // A file from before there was a version.
        None => Ok(head_of(body)),
        Some((&VERSION, rest)) => Ok(head_of(rest)),
        Some((version, _)) => Err(StoreError::Unavailable(format!(
            "{}: was written by a newer version of pilot (version {version}); use that version",
            beside(database).display()
        ))),
    }
}

fn head_of(bytes: &[u8]) -> Option<Head> {
    let (size, root) = bytes.split_first_chunk::<8>()?;
    Some(Head { size: u64::from_be_bytes(*size), root: Hash(root.try_into().ok()?) })
}

/// Called once everything has been copied into the database.
pub(super) fn forget(database: &Path) {
    // If it cannot be removed, it still refers to entries that exist.
    let _ = std::fs::remove_file(beside(database));
}

/// The file, open for as long as the store is.
pub(super) struct HeadFile(Option<File>);

impl HeadFile {
    /// If there is no space for the file, the store works without it.
    pub(super) fn open(database: &Path, edge: &Edge) -> Result<HeadFile> {
        let mut options = File::options();
        let opened = options.write(true).create(true).truncate(false).mode(0o600).open(beside(database));
        let mut file = HeadFile(opened.inspect_err(|error| tracing::warn!(cause = %error, "no head is kept")).ok());
        file.write(head_bytes(edge))?;
        file.cut()?;
        Ok(file)
    }

    /// Removes the tail of a longer head that another version wrote.
    fn cut(&self) -> Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        let cut = file.metadata().and_then(|found| if found.len() > BYTES { file.set_len(BYTES) } else { Ok(()) });
        cut.map_err(|error| StoreError::DiskFailed(format!("the head cannot be cut: {error}")))
    }

    pub(super) fn write(&mut self, head: HeadBytes) -> Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        let mut bytes = [&MARK[..], &[VERSION], &head].concat();
        let seal = seal(&bytes);
        bytes.extend_from_slice(&seal);
        match file.write_all_at(&bytes, 0) {
            Ok(()) => Ok(()),
            // The old head stays: it is older, but still true.
            Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Ok(()),
            Err(error) => {
                self.0 = None;
                Err(StoreError::DiskFailed(format!("the head cannot be written: {error}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_again_and_a_newer_one_is_not_taken_for_damage() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("pilot.db");
        let mut edge = Edge::default();
        edge.push(Hash::of_leaf(b"one"), &mut Vec::new());
        let head = Some(Head { size: 1, root: edge.root() });
        assert_eq!(read(&database).unwrap(), None);
        HeadFile::open(&database, &edge).unwrap();
        assert_eq!(read(&database).unwrap(), head);
        let sealed = |body: &[u8]| std::fs::write(beside(&database), [body, &seal(body)].concat()).unwrap();
        sealed(&head_bytes(&edge));
        assert_eq!(read(&database).unwrap(), head, "as it was before it had a version");
        sealed(&[&MARK[..], &[VERSION + 1], b"whatever comes then"].concat());
        assert!(matches!(read(&database), Err(StoreError::Unavailable(_))));
        std::fs::write(beside(&database), [&MARK[..], &[VERSION + 1], b"half a lin"].concat()).unwrap();
        assert_eq!(read(&database).unwrap(), None, "a power cut can leave it like that");
    }
}
