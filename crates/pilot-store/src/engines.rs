//! Which engine an address names.

use std::path::{Path, PathBuf};

use crate::archive::Archive;
use crate::postgres::{Access, LedgerDatabase};
use crate::sqlite::LedgerFile;

/// Where a ledger is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAddress {
    Sqlite(PathBuf),
    Postgres(Access),
}

impl StoreAddress {
    /// Whether a URL names a database on a server.
    pub fn is_postgres(url: &str) -> bool {
        ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme))
    }
}

/// The ledger at this address. Copies that are needed only for a while are made in `scratch`.
pub fn archive(address: StoreAddress, scratch: &Path) -> Box<dyn Archive> {
    match address {
        StoreAddress::Sqlite(path) => archive_in_file(path),
        StoreAddress::Postgres(access) => Box::new(LedgerDatabase::at(access, scratch)),
    }
}

/// A ledger in a file of its own, as a backup has it.
pub fn archive_in_file(path: impl Into<PathBuf>) -> Box<dyn Archive> {
    Box::new(LedgerFile::at(path))
}
