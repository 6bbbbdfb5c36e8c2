//! Only one process at a time.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{Result, StoreError};

/// Held until it is dropped.
pub(crate) struct Lock(File);

impl Drop for Lock {
    /// Closing the file would not be enough: a child that another thread is just starting has it open too, until it
    /// becomes another program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// A second process on the same file would assign the same indices to its entries, so it must not start.
pub(crate) fn lock(path: &Path) -> Result<Lock> {
    let beside: PathBuf = path.with_extension("lock");
    let failed = |error| StoreError::Unavailable(format!("{}: {error}", beside.display()));
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(&beside).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::Refused(format!(
            "{}: another process has this store open; only one service may use it (stop the other one first)",
            path.display()
        ))),
        Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}
