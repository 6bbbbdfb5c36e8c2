//! Directories that are gone after the test.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// An empty directory of the test's own.
pub struct Scratch(TempDir);

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch(tempfile::tempdir().unwrap())
    }
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch::default()
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file with this in it.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// In memory where there is such a place, for tests that are not about the disk.
pub fn scratch_in_memory() -> Scratch {
    let shared = Path::new("/dev/shm");
    Scratch(if shared.is_dir() { TempDir::new_in(shared) } else { TempDir::new() }.unwrap())
}
