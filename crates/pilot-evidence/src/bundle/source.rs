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

/// Reads pieces that follow one another. Most are small, so many are read at once.
pub struct Ahead<'s> {
    source: &'s Source<'s>,
    window: Vec<u8>,
    /// Where the window begins.
    at: u64,
}

const WINDOW_BYTES: u64 = 256 * 1024;

impl<'s> Ahead<'s> {
    pub fn of(source: &'s Source<'s>) -> Ahead<'s> {
        Ahead { source, window: Vec::new(), at: 0 }
    }

    /// The same as [`Source::read`].
    pub fn read(&mut self, at: u64, count: u64) -> io::Result<Cow<'_, [u8]>> {
        if count > WINDOW_BYTES || matches!(self.source, Source::Memory(_)) {
            return self.source.read(at, count);
        }
        let end = at.saturating_add(count).min(self.source.length());
        let is_inside = at >= self.at && end <= self.at + self.window.len() as u64;
        if !is_inside {
            self.window = self.source.read(at, WINDOW_BYTES)?.into_owned();
            self.at = at;
        }
        let (start, end) = (place(at - self.at)?, place(end.saturating_sub(self.at))?);
        Ok(Cow::Borrowed(self.window.get(start..end).unwrap_or_default()))
    }
}

fn place(at: u64) -> io::Result<usize> {
    usize::try_from(at).map_err(io::Error::other)
}

/// Why a bundle that was read before cannot be judged: what is there now is not what was checked.
pub fn changed() -> io::Error {
    io::Error::other("the bundle changed while it was being read")
}
