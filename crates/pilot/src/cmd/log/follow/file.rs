//! A file of entries, one on each line, on disk before it counts. It may be renamed at any time.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use pilot_setup::private_file;

use crate::exit::Failure;

/// More than any entry has, so that an incomplete one at the end is found.
const TAIL_BYTES_MAX: u64 = 1024 * 1024;

pub(super) struct EntryFile {
    path: PathBuf,
    open: Option<File>,
}

impl EntryFile {
    pub(super) fn new(path: PathBuf) -> EntryFile {
        EntryFile { path, open: None }
    }

    pub(super) fn prepare(&mut self) -> Result<(), Failure> {
        self.current().map(drop)
    }

    /// All of these lines, or none: what was written of them before an error is cut off again.
    pub(super) fn write(&mut self, lines: &[u8]) -> Result<(), Failure> {
        let path = self.path.display().to_string();
        let failed = |error| Failure::environment(&path, error);
        let mut file = self.current()?;
        let length = file.metadata().map_err(failed)?.len();
        file.write_all(lines).map_err(|error| {
            // If this fails too, the next start cuts it off.
            let _ = file.set_len(length);
            failed(error)
        })
    }

    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        let Some(file) = &self.open else { return Ok(()) };
        file.sync_data().map_err(|error| {
            // After an error, the kernel may have dropped what was written: it is read and written again.
            Failure::environment(self.path.display(), error)
        })
    }

    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// The file that has the name now: after a rotation, a new one.
    fn current(&mut self) -> Result<&File, Failure> {
        if self.open.as_ref().is_some_and(|file| !self.is_current(file)) {
            self.open = None;
        }
        let file = match self.open.take() {
            Some(file) => file,
            None => self.opened()?,
        };
        Ok(self.open.insert(file))
    }

    fn is_current(&self, file: &File) -> bool {
        let identity = |found: Metadata| (found.dev(), found.ino());
        let named = std::fs::metadata(&self.path).map(identity);
        let opened = file.metadata().map(identity);
        matches!((named, opened), (Ok(named), Ok(opened)) if named == opened)
    }

    fn opened(&self) -> Result<File, Failure> {
        let failed = |error| Failure::environment(self.path.display(), error);
        let usage = |what: &str| Failure::Usage(format!("{}: {what}", self.path.display()));
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o640).open(&self.path);
        let mut file = file.map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(usage("is not a regular file; to feed a pipe, use --to-stdout"));
        }
        let Some(length) = whole_lines(&mut file, metadata.len()).map_err(failed)? else {
            return Err(usage("ends with something that is not part of an entry; name another file"));
        };
        if length < metadata.len() {
            // A line that a crash or a full disk cut short. Its entry was not counted, and comes again.
            file.set_len(length).map_err(failed)?;
        }
        // The name has to survive a power cut too.
        private_file::sync_directory(&self.path).map_err(failed)?;
        Ok(file)
    }
}

/// How long the file is up to the end of its last whole line. None if what follows was not written by us.
fn whole_lines(file: &mut File, length: u64) -> std::io::Result<Option<u64>> {
    let from = length.saturating_sub(TAIL_BYTES_MAX);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    Read::by_ref(file).take(TAIL_BYTES_MAX).read_to_end(&mut tail)?;
    let end = match tail.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        None if from == 0 => 0,
        None => return Ok(None),
    };
    let rest = tail.get(end..).unwrap_or_default();
    Ok((rest.is_empty() || rest.starts_with(b"{")).then(|| from + end as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_opening(before: &[u8]) -> Result<Vec<u8>, u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("entries");
        std::fs::write(&path, before).unwrap();
        EntryFile::new(path.clone()).prepare().map_err(|failure| failure.code())?;
        Ok(std::fs::read(path).unwrap())
    }

    #[test]
    fn an_incomplete_last_line_is_cut_off_and_nothing_else() {
        assert_eq!(after_opening(b"").unwrap(), b"");
        assert_eq!(after_opening(b"{\"a\":1}\n").unwrap(), b"{\"a\":1}\n");
        assert_eq!(after_opening(b"{\"a\":1}\n{\"a").unwrap(), b"{\"a\":1}\n");
        assert_eq!(after_opening(b"{\"a").unwrap(), b"");
        assert_eq!(after_opening(b"a letter to a friend"), Err(2));
        assert_eq!(after_opening(b"{\"a\":1}\nDear friend,"), Err(2));
        let long = [b"{".to_vec(), vec![b'x'; 2 * 1024 * 1024]].concat();
        assert_eq!(after_opening(&long), Err(2));
    }
}
