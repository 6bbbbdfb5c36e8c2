//! Which engine an address names.

use std::path::{Path, PathBuf};

use crate::archive::Archive;
use crate::sqlite::LedgerFile;

/// The ledger of `[store] url`; none when no engine knows such an address. A file's path is relative to `data_dir`.
pub fn archive(url: &str, data_dir: &Path) -> Option<Box<dyn Archive>> {
    Some(archive_in_file(data_dir.join(url.strip_prefix("sqlite:")?)))
}

/// A ledger in a file of its own, as a backup has it.
pub fn archive_in_file(path: impl Into<PathBuf>) -> Box<dyn Archive> {
    Box::new(LedgerFile::at(path))
}
