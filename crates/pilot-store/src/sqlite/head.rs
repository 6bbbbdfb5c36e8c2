//! Size and root of the ledger as of the last acknowledgement, in a small file next to the database.
//!
//! It is written after each commit and never synced, so it costs next to nothing. When the process dies it is exact.
//! When the power fails it may be older than the ledger, but never newer: so whatever it refers to must exist.
//!
//! A store that was stopped properly has none: everything is in the database, and the second place covers it. So it
//! says nothing about a database that replaces another.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pilot_evidence::merkle::{Edge, Hash};
use sha2::{Digest, Sha256};

use super::connection::head_bytes;
use crate::{Result, StoreError};

/// Size, root, and the beginning of a digest of both: half a line is not a head.
const BYTES: usize = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub size: u64,
    pub root: Hash,
}

pub(super) fn beside(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-head");
    PathBuf::from(path)
}

fn seal(bytes: &[u8]) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let mut seal = [0; 8];
    seal.copy_from_slice(digest.get(..8).unwrap_or(&[0; 8]));
    seal
}

/// What was acknowledged last, as far as the file knows. One that is missing, cut or of zeroes knows nothing: a power cut
/// can leave it like that.
pub fn read(database: &Path) -> Result<Option<Head>> {
    let mut bytes = Vec::new();
    match File::open(beside(database)).and_then(|file| file.take(BYTES as u64).read_to_end(&mut bytes)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::DiskFailed(format!("{}: {error}", beside(database).display()))),
        Ok(_) => {}
    }
    let Some((body, _)) = bytes.split_at_checked(40).filter(|(body, found)| seal(body) == *found) else {
        return Ok(None);
    };
    let (size, root) = body.split_at_checked(8).unwrap_or_default();
    Ok(size
        .try_into()
        .ok()
        .zip(root.try_into().ok())
        .map(|(size, root)| Head { size: u64::from_be_bytes(size), root: Hash(root) }))
}

/// After everything was carried over.
pub(super) fn forget(database: &Path) {
    // One that stays refers to what exists.
    let _ = std::fs::remove_file(beside(database));
}

/// The file, for as long as the store is open.
pub(super) struct HeadFile(Option<File>);

impl HeadFile {
    /// If there is no space for it, the store works without it.
    pub(super) fn open(database: &Path, edge: &Edge) -> Result<HeadFile> {
        let mut options = File::options();
        let opened = options.write(true).create(true).truncate(false).mode(0o600).open(beside(database));
        let mut file = HeadFile(opened.inspect_err(|error| tracing::warn!(cause = %error, "no head is kept")).ok());
        file.write(edge)?;
        Ok(file)
    }

    pub(super) fn write(&mut self, edge: &Edge) -> Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        let mut bytes = head_bytes(edge);
        let seal = seal(&bytes);
        bytes.extend_from_slice(&seal);
        match file.write_all_at(&bytes, 0) {
            Ok(()) => Ok(()),
            // What stays there is older, and as true as it was.
            Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Ok(()),
            Err(error) => {
                self.0 = None;
                Err(StoreError::DiskFailed(format!("the head cannot be written: {error}")))
            }
        }
    }
}
