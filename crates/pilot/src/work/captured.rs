//! What a command printed: masked, hashed and kept within a limit.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::work::mask::{Masked, Masks};

/// What is kept of output beyond the limit: its beginning and its end.
const HEAD_BYTES: usize = 256 * 1024;
const TAIL_BYTES: usize = 768 * 1024;
/// A last line that is longer says nothing.
const LINE_BYTES_MAX: usize = 4 * 1024;

/// Takes the output as it arrives. A disk that is full loses the file, and nothing else.
pub(crate) struct Capture {
    masked: Masked,
    path: PathBuf,
    file: Option<File>,
    hash: Sha256,
    bytes: u64,
    bytes_max: u64,
    head: Vec<u8>,
    tail: VecDeque<u8>,
}

/// The output as it is kept.
#[derive(Debug)]
pub(crate) struct Captured {
    pub bytes: u64,
    pub sha256: String,
    /// The command printed more than the limit; only the beginning and the end were kept.
    pub is_cut: bool,
    /// Whether the file has what was hashed.
    pub is_kept: bool,
    /// The end of it, for people.
    pub end: String,
}

impl Capture {
    pub(crate) fn new(path: &Path, masks: Masks, bytes_max: u64) -> Capture {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        Capture {
            masked: Masked::new(masks),
            path: path.to_owned(),
            file: file.ok(),
            hash: Sha256::new(),
            bytes: 0,
            bytes_max: bytes_max.max((HEAD_BYTES + TAIL_BYTES) as u64),
            head: Vec::new(),
            tail: VecDeque::new(),
        }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        let shown = self.masked.push(piece);
        self.take(&shown);
    }

    fn take(&mut self, shown: &[u8]) {
        self.bytes += shown.len() as u64;
        let room = HEAD_BYTES.saturating_sub(self.head.len()).min(shown.len());
        self.head.extend_from_slice(shown.get(..room).unwrap_or_default());
        self.tail.extend(shown);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
        if self.bytes <= self.bytes_max {
            self.hash.update(shown);
            self.write(shown);
        }
    }

    fn write(&mut self, shown: &[u8]) {
        if self.file.as_mut().is_some_and(|file| file.write_all(shown).is_err()) {
            self.file = None;
        }
    }

    /// The last line that has something in it.
    pub(crate) fn last_line(&self) -> Option<String> {
        let end: Vec<u8> = self.tail.iter().rev().take(LINE_BYTES_MAX).rev().copied().collect();
        let text = String::from_utf8_lossy(&end);
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }

    pub(crate) fn finish(mut self) -> Captured {
        let rest = self.masked.end();
        self.take(&rest);
        let is_cut = self.bytes > self.bytes_max;
        if is_cut {
            let left_out = self.bytes - (self.head.len() + self.tail.len()) as u64;
            let note = format!("\n[{left_out} bytes are left out here]\n");
            let kept = [&self.head[..], note.as_bytes(), self.tail.make_contiguous()].concat();
            self.hash = Sha256::new_with_prefix(&kept);
            self.bytes = kept.len() as u64;
            self.file = self.file.take().and_then(|_| rewrite(&self.path, &kept).ok());
        }
        let is_kept = self.file.as_ref().is_some_and(|file| file.sync_all().is_ok());
        Captured {
            bytes: self.bytes,
            sha256: data_encoding::HEXLOWER.encode(&self.hash.finalize()),
            is_cut,
            is_kept,
            end: String::from_utf8_lossy(self.tail.make_contiguous()).trim_end().to_owned(),
        }
    }
}

fn rewrite(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(pieces: &[&[u8]], bytes_max: u64) -> (Captured, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("output");
        let mut capture = Capture::new(&path, Masks::of(["hunter2hunter2"]), bytes_max);
        for piece in pieces {
            capture.push(piece);
        }
        (capture.finish(), std::fs::read(&path).unwrap())
    }

    #[test]
    fn the_digest_is_that_of_the_file_and_the_file_has_no_secret() {
        let (captured, file) = captured(&[b"one hunter2", b"hunter2 two\n"], 1 << 24);
        assert_eq!(file, b"one *** two\n");
        assert_eq!(captured.sha256, data_encoding::HEXLOWER.encode(&Sha256::digest(&file)));
        assert_eq!((captured.bytes, captured.is_cut, captured.is_kept), (12, false, true));
        assert_eq!(captured.end, "one *** two");
    }

    #[test]
    fn beyond_the_limit_the_beginning_and_the_end_are_kept() {
        let line = [b"x".repeat(1023), b"\n".to_vec()].concat();
        let pieces: Vec<&[u8]> = (0..3 * 1024).map(|_| &line[..]).chain([&b"the end\n"[..]]).collect();
        let (captured, file) = captured(&pieces, 0);
        assert!(captured.is_cut && captured.is_kept);
        assert_eq!(captured.sha256, data_encoding::HEXLOWER.encode(&Sha256::digest(&file)));
        assert_eq!(captured.bytes, file.len() as u64);
        assert!(file.len() < HEAD_BYTES + TAIL_BYTES + 64);
        assert!(file.ends_with(b"the end\n"));
    }
}
