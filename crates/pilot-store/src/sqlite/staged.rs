//! A file that is to take the place of the service's own. Until it does nothing is touched, and what was there is kept.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::Sqlite;
use super::beside::{directory_of, with_suffix};
use crate::archive::{Archive, Now, Staged};
use crate::{Result, Store, StoreError};

/// Files that exist next to a database while it is in use.
const COMPANIONS: [&str; 6] = ["", "-wal", "-shm", "-head", "-search", "-upgrade"];

pub(super) struct StagedFile {
    staged: PathBuf,
    place: PathBuf,
}

impl StagedFile {
    pub(super) fn copy_of(from: &dyn Archive, place: PathBuf) -> Result<StagedFile> {
        // A lock file has its database's name with another extension. With one of its own, the copy's cannot be the ledger's.
        let file = StagedFile { staged: with_suffix(&place, ".restoring.db"), place };
        file.remove();
        from.copy(&file.staged)?;
        Ok(file)
    }

    fn remove(&self) {
        for suffix in COMPANIONS {
            let _ = fs::remove_file(with_suffix(&self.staged, suffix));
        }
        let _ = fs::remove_file(self.staged.with_extension("lock"));
    }

    fn swap(&self, stamp: &str) -> io::Result<()> {
        File::open(&self.staged)?.sync_all()?;
        for suffix in COMPANIONS {
            let present = with_suffix(&self.place, suffix);
            if present.exists() {
                fs::rename(&present, with_suffix(&self.place, &format!(".replaced-{stamp}{suffix}")))?;
            }
        }
        fs::rename(&self.staged, &self.place)?;
        File::open(directory_of(&self.place))?.sync_all()
    }
}

impl Staged for StagedFile {
    fn open(&self, now: Now) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Sqlite::open(&self.staged, now)?))
    }

    fn put_in_place(self: Box<Self>, stamp: &str) -> Result<()> {
        let failed = |error| StoreError::Unavailable(format!("{}: {error}", self.place.display()));
        self.swap(stamp).map_err(failed)?;
        self.remove();
        Ok(())
    }

    fn discard(self: Box<Self>) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::LedgerFile;

    #[test]
    fn staging_a_copy_leaves_the_lock_of_the_ledger_alone_whatever_its_file_is_called() {
        for name in ["pilot.db", "ledger", "a.b.c"] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(name);
            let now: Now = Arc::new(|| pilot_core::time::Time::EPOCH);
            drop(Sqlite::open(&path, Arc::clone(&now)).unwrap());
            let ledger = LedgerFile::at(&path);
            let held = ledger.hold().unwrap();
            let staged = ledger.stage(&ledger).unwrap();
            drop(staged.open(now).unwrap());
            assert!(ledger.hold().is_err(), "{name}: a service could start during the restore");
            staged.discard();
            assert!(ledger.hold().is_err(), "{name}: a service could start after the restore was given up");
            drop(held);
        }
    }
}
