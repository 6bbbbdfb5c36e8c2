//! The last signed checkpoint, kept outside the database: it reveals an old database, and a second server that signs
//! with the same key.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pilot_setup::error::{StartError, with_cause};
use pilot_setup::private_file;

/// Longer than any checkpoint with all the cosignatures a note may have.
const BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("{}: cannot be used as the second place of the log's checkpoint", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: another service keeps its checkpoint there; two services on one log would fork it (stop the other one first)", path.display())]
    Locked { path: PathBuf },
}

impl From<PlaceError> for StartError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Locked { .. } => StartError::Refused(error.to_string()),
            PlaceError::Io { .. } => StartError::Environment { what: with_cause(&error), source: None },
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// Someone else has written there.
    #[error("it does not contain what this service last wrote there")]
    Changed,
    /// The file holds either what was there before or what was being written; which one is unknown.
    #[error("it cannot be written: {0}")]
    Io(#[from] io::Error),
}

impl SwapError {
    /// Whether the disk itself failed, or the system treats it as failed. A full disk has not failed.
    pub fn is_of_the_disk(&self) -> bool {
        matches!(self, SwapError::Io(error) if is_of_the_disk(error))
    }
}

/// Whether the disk itself failed, or the system treats it as failed. A full disk has not failed.
pub fn is_of_the_disk(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let failed = [Errno::IO, Errno::ROFS, Errno::NXIO, Errno::NODEV].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| failed.contains(&code))
}

pub struct SecondPlace {
    path: PathBuf,
    /// Held as long as the place is used; if nodes share the ledger, only while it is written, because they may share
    /// the place too. If several machines share the file, the comparison keeps them apart.
    lock: File,
    is_shared: bool,
}

impl SecondPlace {
    /// `is_shared` says whether other nodes may use the same place.
    pub fn open(path: &Path, is_shared: bool) -> Result<SecondPlace, PlaceError> {
        let failed = |source| PlaceError::Io { path: path.to_owned(), source };
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let mut options = File::options();
        let lock = options.write(true).create(true).truncate(false).mode(0o600).open(beside).map_err(failed)?;
        let place = |lock| SecondPlace { path: path.to_owned(), lock, is_shared };
        if is_shared {
            return Ok(place(lock));
        }
        match lock.try_lock() {
            Ok(()) => Ok(place(lock)),
            Err(std::fs::TryLockError::WouldBlock) => Err(PlaceError::Locked { path: path.to_owned() }),
            Err(std::fs::TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read(&self) -> io::Result<Option<String>> {
        read(&self.path)
    }

    /// Writes `new` if the file holds one of `known`. Atomic: a crash leaves it done or not done.
    pub fn swap(&self, known: &[Option<String>], new: &str) -> Result<(), SwapError> {
        if !self.is_shared {
            return self.swap_locked(known, new);
        }
        self.lock.lock()?;
        let swapped = self.swap_locked(known, new);
        self.lock.unlock()?;
        swapped
    }

    fn swap_locked(&self, known: &[Option<String>], new: &str) -> Result<(), SwapError> {
        if !known.contains(&self.read()?) {
            return Err(SwapError::Changed);
        }
        Ok(private_file::replace(&self.path, new.as_bytes())?)
    }
}

/// The contents of the file, if there is one.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use pilot_testing::Scratch;

    use super::*;

    #[test]
    fn only_what_is_known_to_be_there_is_replaced() {
        let directory = Scratch::new();
        let path = directory.file("log.checkpoint");
        let place = SecondPlace::open(&path, false).unwrap();
        assert!(matches!(place.swap(&[Some("a".into())], "b"), Err(SwapError::Changed)), "nothing is there yet");
        place.swap(&[None], "a").unwrap();
        place.swap(&[Some("x".into()), Some("a".into())], "b").unwrap();
        assert!(matches!(place.swap(&[None, Some("a".into())], "c"), Err(SwapError::Changed)));
        assert_eq!(place.read().unwrap().as_deref(), Some("b"));
    }

    #[test]
    fn a_place_is_used_by_one_service_alone() {
        let directory = Scratch::new();
        let path = directory.file("log.checkpoint");
        let place = SecondPlace::open(&path, false).unwrap();
        assert!(matches!(SecondPlace::open(&path, false), Err(PlaceError::Locked { .. })));
        drop(place);
        assert!(SecondPlace::open(&path, false).is_ok());
        assert!(matches!(SecondPlace::open(&directory.file("no/such"), false), Err(PlaceError::Io { .. })));
    }
}
