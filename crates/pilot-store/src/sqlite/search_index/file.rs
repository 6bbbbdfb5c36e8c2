//! The file with the full slabs, next to the database. Everything in it follows from the ledger: a file that is not as it
//! should be is discarded and made again.
//!
//! A slab is on disk before the header counts it. A slab that is written again only gains bits, so it is right for the old
//! header and for the new one.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pilot_core::sha256::sha256;
use pilot_evidence::merkle::Hash;

use super::slab::{BITS_BYTES, Bits, Geometry, Slab, Span};
use crate::sqlite::beside::with_suffix;
use crate::sqlite::overwrite;

/// A mark and a version; then geometry, slabs, size, root, and a digest over all of it.
const MARK: [u8; 7] = *b"pilotsx";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 7 + 1 + 3 * 4 + 8 + 8 + 32 + 32;
/// Slabs begin, and are as long as, whole pages.
const PAGE_BYTES: usize = 4_096;
const SPAN_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;
/// The index must not take the space that the ledger still writes in when a disk is nearly full. It ends with twice of
/// that: an eighth of the disk, and 128 MiB on a large one.
const FREE_PART: u64 = 8;
const FREE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// How far the slabs in the file go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) slabs: u64,
    /// The items created by so many of the ledger's first entries are in the slabs, with their contents as of then or
    /// later.
    pub(super) size: u64,
    /// The root of the ledger's tree at this size, so that the file of another ledger is not taken for this one's.
    pub(super) root: Hash,
}

pub(super) struct SlabFile {
    file: File,
    geometry: Geometry,
}

pub(in crate::sqlite) fn beside(database: &Path) -> PathBuf {
    with_suffix(database, "-search")
}

/// Overwritten too, because its bits say which letters follow each other in the texts.
pub(in crate::sqlite) fn destroy(database: &Path) -> io::Result<()> {
    overwrite::destroy(&beside(database))
}

impl SlabFile {
    /// An empty one, in place of any other.
    pub(super) fn create(database: &Path, geometry: Geometry) -> io::Result<SlabFile> {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(true).mode(0o600);
        Ok(SlabFile { file: options.open(beside(database))?, geometry })
    }

    /// The file that is there, if it can be read.
    pub(super) fn open(database: &Path, geometry: Geometry) -> io::Result<Option<(SlabFile, Header)>> {
        let file = match File::options().read(true).write(true).open(beside(database)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => SlabFile { file: opened?, geometry },
        };
        let header = file.header()?;
        Ok(header.map(|header| (file, header)))
    }

    fn header(&self) -> io::Result<Option<Header>> {
        let mut bytes = [0; HEADER_BYTES];
        if !self.read(&mut bytes, 0)? {
            return Ok(None);
        }
        Ok(self.read_header(&bytes))
    }

    fn read_header(&self, bytes: &[u8]) -> Option<Header> {
        let (body, digest) = bytes.split_last_chunk::<DIGEST_BYTES>()?;
        let rest = body.strip_prefix(self.beginning().as_slice()).filter(|_| sha256([body]) == *digest)?;
        let (slabs, rest) = rest.split_first_chunk()?;
        let (size, root) = rest.split_first_chunk()?;
        let (slabs, size) = (u64::from_le_bytes(*slabs), u64::from_le_bytes(*size));
        Some(Header { slabs, size, root: Hash(root.try_into().ok()?) })
    }

    /// A file with another beginning was written by another version, and is made again.
    fn beginning(&self) -> Vec<u8> {
        let Geometry { block_items, slab_blocks, slot_bits } = self.geometry;
        let geometry = [block_items, slab_blocks, slot_bits].map(u32::to_le_bytes).concat();
        [&MARK[..], &[VERSION], &geometry].concat()
    }

    /// Slabs that were written before are on disk when this begins, and the header is when it returns.
    pub(super) fn write_header(&self, header: &Header) -> io::Result<()> {
        self.file.sync_data()?;
        let Header { slabs, size, root } = header;
        let mut bytes = [&self.beginning()[..], &slabs.to_le_bytes(), &size.to_le_bytes(), &root.0].concat();
        let digest = sha256([&bytes]);
        bytes.extend_from_slice(&digest);
        self.file.write_all_at(&bytes, 0)?;
        self.file.sync_data()
    }

    /// Slots, blocks and a digest over both.
    const fn slab_bytes(&self) -> usize {
        let content = self.geometry.slots() * BITS_BYTES + self.geometry.slab_blocks() * SPAN_BYTES + DIGEST_BYTES;
        content.next_multiple_of(PAGE_BYTES)
    }

    fn slab_at(&self, number: u64) -> u64 {
        number.saturating_mul(self.slab_bytes() as u64).saturating_add(PAGE_BYTES as u64)
    }

    /// Only a slab that is full is written.
    pub(super) fn write_slab(&self, number: u64, slab: &Slab) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(self.slab_bytes());
        bytes.extend(slab.slots.iter().flat_map(|bits| bits.to_le_bytes()));
        bytes.extend(slab.blocks.iter().flat_map(|block| [block.first, block.last]).flat_map(u64::to_le_bytes));
        let digest = sha256([&number.to_le_bytes(), &bytes]);
        bytes.extend_from_slice(&digest);
        bytes.resize(self.slab_bytes(), 0);
        self.file.write_all_at(&bytes, self.slab_at(number))
    }

    /// `None` if the slab is not what was written.
    pub(super) fn read_slab(&self, number: u64) -> io::Result<Option<Slab>> {
        let mut bytes = vec![0; self.slab_bytes()];
        if !self.read(&mut bytes, self.slab_at(number))? {
            return Ok(None);
        }
        let slots = self.geometry.slots() * BITS_BYTES;
        let (content, rest) = bytes.split_at(slots + self.geometry.slab_blocks() * SPAN_BYTES);
        if rest.first_chunk() != Some(&sha256([&number.to_le_bytes(), content])) {
            return Ok(None);
        }
        let (slots, blocks) = content.split_at(slots);
        let slots = slots.as_chunks().0.iter().map(|bits| Bits::from_le_bytes(*bits)).collect();
        let numbers: Vec<_> = blocks.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let blocks = numbers.as_chunks().0.iter().map(|[first, last]| Span { first: *first, last: *last }).collect();
        Ok(Some(Slab::of(self.geometry, slots, blocks)))
    }

    /// The blocks of a slab in which all of these slots are set.
    pub(super) fn having(&self, number: u64, slots: &[usize]) -> io::Result<Bits> {
        let (mut having, mut bytes) = (Bits::MAX, [0; BITS_BYTES]);
        for slot in slots {
            self.file.read_exact_at(&mut bytes, self.slab_at(number) + (slot * BITS_BYTES) as u64)?;
            having &= Bits::from_le_bytes(bytes);
            if having == 0 {
                break;
            }
        }
        Ok(having)
    }

    pub(super) fn has_room(&self, database: &Path) -> bool {
        let directory = database.parent().filter(|parent| !parent.as_os_str().is_empty());
        let disk = rustix::fs::statvfs(directory.unwrap_or(Path::new(".")));
        disk.is_ok_and(|disk| {
            let kept = (disk.f_blocks.saturating_mul(disk.f_frsize) / FREE_PART).min(FREE_BYTES_MAX);
            disk.f_bavail.saturating_mul(disk.f_frsize) >= kept + self.slab_bytes() as u64
        })
    }

    /// Whether the file is long enough.
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<bool> {
        match self.file.read_exact_at(bytes, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            read => read.map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry { block_items: 1, slab_blocks: 2, slot_bits: 6 };
    const HEADER: Header = Header { slabs: 1, size: 10, root: Hash([7; 32]) };

    fn slab(first: u64) -> Slab {
        let mut slab = Slab::new(SMALL);
        slab.add(first, &["hay".into()]);
        slab.add(first + 1, &["needle".into()]);
        slab
    }

    #[test]
    fn what_was_written_is_read_again_and_whatever_else_is_there_is_not_taken_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("pilot.db");
        assert!(SlabFile::open(&database, SMALL).unwrap().is_none());
        let file = SlabFile::create(&database, SMALL).unwrap();
        file.write_slab(0, &slab(3)).unwrap();
        file.write_header(&HEADER).unwrap();
        let whole = std::fs::read(beside(&database)).unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(beside(&database), bytes).unwrap();
            let (file, header) = SlabFile::open(&database, SMALL).unwrap()?;
            let slab = file.read_slab(0).unwrap()?;
            Some((header, slab.blocks, slab.slots))
        };
        assert_eq!(read(&whole), Some((HEADER, slab(3).blocks, slab(3).slots)));
        let used = |at: &usize| *at < HEADER_BYTES || (PAGE_BYTES..PAGE_BYTES + 2_048 + 32 + 32).contains(at);
        for at in (0..whole.len()).filter(used) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            assert_eq!(read(&flipped), None, "byte {at}");
        }
        for len in [0, HEADER_BYTES - 1, PAGE_BYTES, whole.len() - 1] {
            assert_eq!(read(&whole[..len]), None, "{len} bytes");
        }
        std::fs::write(beside(&database), &whole).unwrap();
        assert!(SlabFile::open(&database, Geometry { block_items: 2, ..SMALL }).unwrap().is_none());
        let (file, _) = SlabFile::open(&database, SMALL).unwrap().unwrap();
        assert!(file.read_slab(1).unwrap().is_none(), "there is none");
        file.write_slab(1, &slab(3)).unwrap();
        std::fs::write(beside(&database), [&whole, &whole[PAGE_BYTES..]].concat()).unwrap();
        assert!(file.read_slab(1).unwrap().is_none(), "a slab belongs to its place");
    }

    #[test]
    fn only_its_owner_can_read_the_file_and_when_it_is_destroyed_none_of_its_bytes_are_left() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("pilot.db");
        destroy(&database).unwrap();
        let file = SlabFile::create(&database, SMALL).unwrap();
        file.write_slab(0, &slab(3)).unwrap();
        let metadata = std::fs::metadata(beside(&database)).unwrap();
        assert_eq!((metadata.permissions().mode() & 0o777, metadata.nlink()), (0o600, 1));
        destroy(&database).unwrap();
        assert!(!beside(&database).exists());
        // It is still open here, so what is left of it can be read.
        let mut left = vec![1; file.slab_bytes()];
        file.file.read_exact_at(&mut left, PAGE_BYTES as u64).unwrap();
        assert!(left.iter().all(|byte| *byte == 0));
    }
}
