//! The embedded store as operators have it: a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilot_core::item::ItemId;
use pilot_evidence::merkle::Hash;

use super::staged::StagedFile;
use super::{Sqlite, copy, erase, fsck, head, lock};
use crate::archive::{Archive, Head, Now, Progress, Report, Staged};
use crate::{Result, Store};

/// A ledger in a file, wherever it lies: the service's own, a backup, a copy.
pub struct LedgerFile(PathBuf);

impl LedgerFile {
    pub fn at(path: impl Into<PathBuf>) -> LedgerFile {
        LedgerFile(path.into())
    }
}

impl Archive for LedgerFile {
    fn place(&self) -> String {
        self.0.display().to_string()
    }

    fn exists(&self) -> bool {
        self.0.exists()
    }

    fn examine(&self, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
        fsck::fsck(&self.0, progress)
    }

    fn copy(&self, to: &Path) -> Result<()> {
        copy::copy(&self.0, to)
    }

    fn acknowledged(&self) -> Result<Option<Head>> {
        head::read(&self.0)
    }

    fn root_at(&self, size: u64) -> Result<Option<Hash>> {
        copy::root_at(&self.0, size)
    }

    fn fact(&self, name: &str) -> Result<Option<Vec<u8>>> {
        copy::fact_in(&self.0, name)
    }

    fn facts(&self, beginning: &str) -> Result<Vec<(String, Vec<u8>)>> {
        copy::facts_in(&self.0, beginning)
    }

    fn erasable(&self, id: &ItemId) -> Result<u64> {
        erase::erasable(&self.0, id)
    }

    fn erase(&self, id: &ItemId) -> Result<u64> {
        erase::erase(&self.0, id)
    }

    fn open(&self, now: Now) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Sqlite::open(&self.0, now)?))
    }

    fn hold(&self) -> Result<Box<dyn Send>> {
        Ok(Box::new(lock(&self.0)?))
    }

    fn stage(&self, from: &dyn Archive) -> Result<Box<dyn Staged>> {
        Ok(Box::new(StagedFile::copy_of(from, self.0.clone())?))
    }

    fn engine(&self) -> String {
        format!("SQLite {}", rusqlite::version())
    }
}
