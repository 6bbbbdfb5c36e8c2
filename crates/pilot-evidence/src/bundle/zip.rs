//! The container of a bundle: a zip that any tool can open, in the exact form that our writer produces.
//!
//! Files are stored uncompressed, each preceded by its size and checksum, no file has its own time, and there is
//! nothing between them. The reader reads the files one after another and rebuilds the list at the end itself, so it
//! detects every byte that the writer would not have written.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

// The format's checksum. It detects accidents; the manifest detects everything else.
use crc32fast::hash as crc32;
use pilot_core::certain::Certain as _;

use crate::bundle::source::{Ahead, Source};

const LOCAL: [u8; 4] = *b"PK\x03\x04";
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
const END_64: [u8; 4] = *b"PK\x06\x06";
const LOCATOR_64: [u8; 4] = *b"PK\x06\x07";

const VERSION: u16 = 20;
const VERSION_64: u16 = 45;
/// 1980-01-01 00:00, the earliest time the format can express.
const DATE: u16 = 0x0021;
const LOCAL_BYTES: usize = 30;
/// In the list at the end, without the name.
const CENTRAL_BYTES_MAX: usize = 58;
/// After that list, in the long form.
const END_BYTES_MAX: usize = 56 + 20 + 22;
const NAME_BYTES_MAX: usize = 200;
const HEAD_BYTES_MAX: u64 = (LOCAL_BYTES + NAME_BYTES_MAX) as u64;
const UNKNOWN_NAME: &str = "a file has a name that a bundle may not contain";

/// Where the container differs from what the writer writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {what}")]
pub struct ZipFault {
    pub at: u64,
    pub what: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ZipError {
    #[error(transparent)]
    Fault(ZipFault),
    #[error(transparent)]
    Unreadable(#[from] io::Error),
}

/// One file of a container in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed<'b> {
    pub path: &'b str,
    pub bytes: &'b [u8],
    /// Where its bytes begin in the container.
    pub at: u64,
    /// Its checksum matches its bytes.
    pub is_whole: bool,
}

/// A path that every tool accepts: lowercase words, no parent directories.
pub fn is_plain(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_/".contains(&byte);
    let names = |part: &str| part.bytes().any(|byte| byte != b'.');
    path.len() <= NAME_BYTES_MAX && path.bytes().all(plain) && path.split('/').all(names)
}

/// One file of a container, as its header describes it.
#[derive(Debug, Clone)]
pub struct Listed {
    pub path: Arc<str>,
    checksum: u32,
    size: u32,
    /// Where its header begins.
    offset: u64,
}

impl Listed {
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Where its bytes begin in the container.
    pub fn start(&self) -> u64 {
        self.offset + (LOCAL_BYTES + self.path.len()) as u64
    }

    pub fn read<'s>(&self, container: &'s Source<'_>) -> io::Result<Cow<'s, [u8]>> {
        container.read(self.start(), u64::from(self.size))
    }

    /// The same, for files that are read in order.
    pub fn read_ahead<'a>(&self, ahead: &'a mut Ahead<'_>) -> io::Result<Cow<'a, [u8]>> {
        ahead.read(self.start(), u64::from(self.size))
    }

    /// Its checksum matches these bytes.
    pub fn is_whole(&self, bytes: &[u8]) -> bool {
        crc32(bytes) == self.checksum
    }
}

#[derive(Debug, Clone, Default)]
pub struct ZipWriter {
    ready: Vec<u8>,
    written: u64,
    listed: Vec<Listed>,
}

impl ZipWriter {
    /// Adds a file; false if it is too large for the format.
    #[must_use]
    pub fn add(&mut self, path: impl Into<Arc<str>>, bytes: &[u8]) -> bool {
        let Some(size) = u32::try_from(bytes.len()).ok().filter(|size| *size < u32::MAX) else { return false };
        let listed = Listed { path: path.into(), checksum: crc32(bytes), size, offset: self.written };
        let before = self.ready.len();
        push_local_header(&listed, &mut self.ready);
        self.ready.extend_from_slice(bytes);
        self.written += (self.ready.len() - before) as u64;
        self.listed.push(listed);
        true
    }

    /// How many bytes are ready to be sent.
    pub fn ready_bytes(&self) -> usize {
        self.ready.len()
    }

    /// Takes the bytes that are ready to be sent. The next ones will need about as much memory: growing into it step by
    /// step would copy them several times.
    pub fn take_ready(&mut self) -> Vec<u8> {
        let next = Vec::with_capacity(self.ready.len());
        std::mem::replace(&mut self.ready, next)
    }

    /// The rest of the container.
    pub fn finish(mut self) -> Vec<u8> {
        push_directory(&self.listed, self.written, &mut self.ready);
        self.ready
    }
}

fn name_length(path: &str) -> u16 {
    u16::try_from(path.len()).certain("names in a bundle are short")
}

/// Appended, here and below: a container may have a million files, and memory for each header would cost more than what
/// is in it.
fn push_local_header(listed: &Listed, bytes: &mut Vec<u8>) {
    bytes.reserve(LOCAL_BYTES + listed.path.len());
    bytes.extend(LOCAL);
    for number in [VERSION, 0, 0, 0, DATE] {
        bytes.extend(number.to_le_bytes());
    }
    for number in [listed.checksum, listed.size, listed.size] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(name_length(&listed.path).to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes.extend(listed.path.as_bytes());
}

fn push_central_header(listed: &Listed, bytes: &mut Vec<u8>) {
    bytes.extend(CENTRAL);
    let offset = u32::try_from(listed.offset).ok().filter(|offset| *offset < u32::MAX);
    let needed = if offset.is_some() { VERSION } else { VERSION_64 };
    for number in [needed, needed, 0, 0, 0, DATE] {
        bytes.extend(number.to_le_bytes());
    }
    for number in [listed.checksum, listed.size, listed.size] {
        bytes.extend(number.to_le_bytes());
    }
    let extra_length = if offset.is_some() { 0 } else { 12 };
    // Lengths of name, extra field and comment; disk, internal attributes; then the external attributes.
    for number in [name_length(&listed.path), extra_length, 0, 0, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(offset.unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(listed.path.as_bytes());
    if offset.is_none() {
        bytes.extend(1_u16.to_le_bytes());
        bytes.extend(8_u16.to_le_bytes());
        bytes.extend(listed.offset.to_le_bytes());
    }
}

fn directory(listed: &[Listed], start: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_directory(listed, start, &mut bytes);
    bytes
}

/// Appends the list at the end, for files that end at `start`. The long form is used if, and only if, the short one is
/// not enough.
fn push_directory(listed: &[Listed], start: u64, bytes: &mut Vec<u8>) {
    let names = listed.iter().map(|file| CENTRAL_BYTES_MAX + file.path.len()).sum::<usize>();
    bytes.reserve_exact(names + END_BYTES_MAX);
    let before = bytes.len();
    for file in listed {
        push_central_header(file, bytes);
    }
    let (size, count) = ((bytes.len() - before) as u64, listed.len() as u64);
    let short_count = u16::try_from(count).ok().filter(|count| *count < u16::MAX);
    let short = |number: u64| u32::try_from(number).ok().filter(|number| *number < u32::MAX);
    if short_count.is_none() || short(size).is_none() || short(start).is_none() {
        bytes.extend(END_64);
        bytes.extend(44_u64.to_le_bytes());
        bytes.extend(VERSION_64.to_le_bytes());
        bytes.extend(VERSION_64.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        for number in [count, count, size, start] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(LOCATOR_64);
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend((start + size).to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
    }
    bytes.extend(END);
    bytes.extend(0_u32.to_le_bytes());
    for _ in 0..2 {
        bytes.extend(short_count.unwrap_or(u16::MAX).to_le_bytes());
    }
    for number in [size, start] {
        bytes.extend(short(number).unwrap_or(u32::MAX).to_le_bytes());
    }
    bytes.extend(0_u16.to_le_bytes());
}

/// Every file of a container in memory, in order. A file whose checksum is wrong is returned as such; anything else that
/// the writer would not have written is a fault.
pub fn read(container: &[u8]) -> Result<Vec<Packed<'_>>, ZipFault> {
    let listed = list(&container.into()).map_err(|error| match error {
        ZipError::Fault(fault) => fault,
        ZipError::Unreadable(error) => ZipFault { at: 0, what: error.to_string() },
    })?;
    let packed = |file: &Listed| {
        let start = usize::try_from(file.start()).ok()?;
        let bytes = container.get(start..start + file.size as usize)?;
        let name = container.get(start - file.path.len()..start)?;
        let is_whole = file.is_whole(bytes);
        Some(Packed { path: std::str::from_utf8(name).ok()?, bytes, at: file.start(), is_whole })
    };
    Ok(listed.iter().filter_map(packed).collect())
}

/// Every file of a container, in order, without reading more of each than its header.
pub fn list(container: &Source<'_>) -> Result<Vec<Listed>, ZipError> {
    let (mut listed, mut seen) = (Vec::<Listed>::new(), HashSet::new());
    let (mut ahead, mut header) = (Ahead::of(container), Vec::new());
    let mut at = 0;
    loop {
        let head = ahead.read(at, HEAD_BYTES_MAX)?;
        if !head.starts_with(&LOCAL) {
            break;
        }
        let file = next(&head, at, container.length())?;
        if !seen.insert(Arc::clone(&file.path)) {
            return Err(fault(at, format!("{} appears twice", file.path)));
        }
        header.clear();
        push_local_header(&file, &mut header);
        if !head.starts_with(&header) {
            return Err(fault(at, format!("the header of {} is not one that a bundle may have", file.path)));
        }
        at = file.start() + u64::from(file.size);
        listed.push(file);
    }
    drop(seen);
    let expected = directory(&listed, at);
    // One byte more than expected, to see that nothing follows.
    let rest = container.read(at, expected.len() as u64 + 1)?;
    if *rest == expected {
        return Ok(listed);
    }
    let same = rest.iter().zip(&expected).take_while(|(one, other)| one == other).count();
    let Some(last) = listed.last() else {
        return Err(fault(0, "this is not a bundle: it does not begin with a file".into()));
    };
    let what = format!("after {}: expected another file or the list of files", last.path);
    Err(fault(at + same as u64, what))
}

fn fault(at: u64, what: String) -> ZipError {
    ZipError::Fault(ZipFault { at, what })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The file whose header begins with these bytes, in a container of this length.
fn next(head: &[u8], at: u64, length: u64) -> Result<Listed, ZipError> {
    let cut = || fault(at, "the bundle is cut off in the middle of a file".into());
    let (checksum, size) = (word(head, 14).ok_or_else(cut)?, word(head, 18).ok_or_else(cut)?);
    let name_length =
        usize::from(u16::from_le_bytes(head.get(26..28).and_then(|two| two.try_into().ok()).ok_or_else(cut)?));
    if name_length > NAME_BYTES_MAX {
        return Err(fault(at, UNKNOWN_NAME.into()));
    }
    let name = head.get(LOCAL_BYTES..LOCAL_BYTES + name_length).ok_or_else(cut)?;
    let path = std::str::from_utf8(name).ok().filter(|path| is_plain(path));
    let path = path.ok_or_else(|| fault(at, UNKNOWN_NAME.into()))?;
    let file = Listed { path: path.into(), checksum, size, offset: at };
    if length.checked_sub(file.start()).is_none_or(|rest| rest < u64::from(size)) {
        return Err(fault(at, format!("{path} is cut off, or its size is wrong")));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::default();
        for (path, bytes) in files {
            assert!(writer.add(*path, bytes));
        }
        writer.finish()
    }

    #[test]
    fn what_is_written_is_read_again_and_no_changed_inserted_or_removed_byte_passes() {
        let container = packed(&[("a", b"one"), ("b/c.json", b""), ("manifest", b"two")]);
        let files = read(&container).unwrap();
        assert_eq!(
            files.iter().map(|file| (file.path, file.bytes)).collect::<Vec<_>>(),
            [("a", b"one".as_slice()), ("b/c.json", b""), ("manifest", b"two")]
        );
        let passes = |bytes: &[u8]| read(bytes).is_ok_and(|files| files.iter().all(|file| file.is_whole));
        for at in 0..container.len() {
            for bit in 0..8 {
                let mut changed = container.clone();
                changed[at] ^= 1 << bit;
                assert!(!passes(&changed), "bit {bit} of byte {at}");
            }
            let mut longer = container.clone();
            longer.insert(at, b'x');
            let mut shorter = container.clone();
            shorter.remove(at);
            assert!(!passes(&longer) && !passes(&shorter) && !passes(&container[..at]), "byte {at}");
        }
        assert!(!passes(&[container.as_slice(), b"x"].concat()));
    }

    #[test]
    fn names_that_could_leave_the_directory_are_refused() {
        for path in ["", "/a", "a//b", "../a", "a/..", "A", "a b", "a\\b", "a:b", "é", "a/"] {
            assert!(!is_plain(path), "{path}");
            assert!(read(&packed(&[(path, b"")])).is_err(), "{path}");
        }
        assert_eq!(read(&packed(&[("a", b""), ("a", b"")])).unwrap_err().to_string(), "byte 31: a appears twice");
    }

    #[test]
    fn more_files_than_the_short_form_can_count_use_the_long_one() {
        let names: Vec<_> = (0..65_535).map(|number| number.to_string()).collect();
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
        let container = packed(&files);
        assert!(container.windows(4).any(|four| four == END_64));
        assert_eq!(read(&container).unwrap().len(), 65_535);
        assert!(!packed(&files[..65_534]).windows(4).any(|four| four == END_64));
    }

    #[test]
    fn a_file_behind_the_fourth_gibibyte_has_its_place_in_the_long_form() {
        let far = Listed { path: "a".into(), checksum: 1, size: 2, offset: 1 << 32 };
        let bytes = directory(&[far], (1 << 32) + 33);
        assert_eq!(bytes[42..46], [0xFF; 4]);
        assert_eq!(bytes[47..59], [1, 0, 8, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    }
}
