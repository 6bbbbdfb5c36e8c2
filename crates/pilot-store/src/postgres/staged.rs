//! A ledger that is to be restored into an empty database. Until it is put in place it is a file of its own, and nothing
//! is in the database.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::address::Access;
use crate::archive::{Archive, Now, Staged};
use crate::sqlite::Sqlite;
use crate::{Result, Store, transfer};

/// Files that exist next to a file of this name while it is in use.
const COMPANIONS: [&str; 5] =
    ["restoring.db", "restoring.db-wal", "restoring.db-shm", "restoring.db-head", "restoring.db-search"];

pub(super) struct StagedDatabase {
    directory: PathBuf,
    access: Access,
}

impl StagedDatabase {
    pub(super) fn copy_of(from: &dyn Archive, access: Access, directory: &Path) -> Result<StagedDatabase> {
        let staged = StagedDatabase { directory: directory.to_owned(), access };
        staged.remove();
        from.copy(&staged.file())?;
        Ok(staged)
    }

    fn file(&self) -> PathBuf {
        self.directory.join("restoring.db")
    }

    fn remove(&self) {
        for name in COMPANIONS.into_iter().chain(["restoring.lock"]) {
            let _ = fs::remove_file(self.directory.join(name));
        }
    }
}

impl Staged for StagedDatabase {
    fn open(&self, now: Now) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Sqlite::open(&self.file(), now)?))
    }

    /// There was no ledger before, so there is none to keep.
    fn put_in_place(self: Box<Self>, _stamp: &str) -> Result<()> {
        transfer::to_postgres(&self.file(), &self.access, &mut |_| ())?;
        self.remove();
        Ok(())
    }

    fn discard(self: Box<Self>) {
        self.remove();
    }
}
