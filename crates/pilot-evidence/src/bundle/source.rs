//! Where a bundle's bytes are: in memory, or somewhere they are read from piece by piece. A bundle may be larger than the
//! memory of the machine that verifies it.

use std::borrow::Cow;
use std::io;

/// Fills the buffer with the bytes that begin at this place.
pub type ReadAt<'b> = Box<dyn Fn(u64, &mut [u8]) -> io::Result<()> + 'b>;

pub enum Source<'b> {
    Memory(Cow<'b, [u8]>),
    Elsewhere { length: u64, read_at: ReadAt<'b> },
}

impl<'b> From<&'b [u8]> for Source<'b> {
    fn from(bytes: &'b [u8]) -> Source<'b> {
        Source::Memory(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Source<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Source::Memory(Cow::Owned(bytes))
    }
}

impl Source<'_> {
    pub fn length(&self) -> u64 {
        match self {
            Source::Memory(bytes) => bytes.len() as u64,
            Source::Elsewhere { length, .. } => *length,
        }
    }

    /// As many bytes from this place on; fewer if the bundle ends before.
    pub fn read(&self, at: u64, count: u64) -> io::Result<Cow<'_, [u8]>> {
        let start = at.min(self.length());
        let end = start.saturating_add(count).min(self.length());
        match self {
            Source::Memory(bytes) => Ok(Cow::Borrowed(bytes.get(place(start)?..place(end)?).unwrap_or_default())),
            Source::Elsewhere { read_at, .. } => {
                let mut buffer = vec![0; place(end - start)?];
                read_at(start, &mut buffer)?;
                Ok(Cow::Owned(buffer))
            }
        }
    }
}

fn place(at: u64) -> io::Result<usize> {
    usize::try_from(at).map_err(io::Error::other)
}

/// Why a bundle that was read before cannot be judged: what is there now is not what was checked.
pub fn changed() -> io::Error {
    io::Error::other("the bundle changed while it was being read")
}
