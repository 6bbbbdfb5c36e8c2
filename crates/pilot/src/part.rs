//! A file that is being downloaded.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// The file while it grows, under another name: what has its own name is complete.
pub(crate) struct Part {
    path: PathBuf,
    file: File,
    is_done: bool,
}

impl Part {
    pub(crate) fn create(out: &Path) -> Result<Part, Failure> {
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        let path = out.with_file_name(format!("{name}.part"));
        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        let file = opened.map_err(|error| Failure::environment(path.display(), error))?;
        Ok(Part { path, file, is_done: false })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| Failure::environment(self.path.display(), error))
    }

    pub(crate) fn finish(mut self, out: &Path) -> Result<(), Failure> {
        let done = self.file.sync_all().and_then(|()| std::fs::rename(&self.path, out));
        self.is_done = done.is_ok();
        done.map_err(|error| Failure::environment(out.display(), error))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
