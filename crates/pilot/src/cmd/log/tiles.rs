//! The log's tiles, over HTTP. What they say is believed only if it leads to a signed root.

use pilot_evidence::merkle::Hash;
use pilot_evidence::proof::Rows;
use pilot_evidence::tile::{TILE_WIDTH, Wanted};

use crate::client::Client;
use crate::exit::Failure;

pub(super) struct Tiles<'c> {
    pub(super) client: &'c Client,
    pub(super) size: u64,
}

impl Tiles<'_> {
    fn fetch(&self, wanted: Wanted) -> Result<Vec<u8>, Failure> {
        let width = wanted.available(self.size);
        let wanted = match wanted {
            Wanted::Hashes { level, index, .. } => Wanted::Hashes { level, index, width },
            Wanted::Entries { index, .. } => Wanted::Entries { index, width },
        };
        Ok(self.client.get(&format!("/v1/log/tile/{}", wanted.path()))?.bytes().to_vec())
    }

    /// The bytes of one entry.
    pub(super) fn entry(&self, index: u64) -> Result<Vec<u8>, Failure> {
        let width = TILE_WIDTH as u64;
        let tile = self.fetch(Wanted::Entries { index: index / width, width: TILE_WIDTH })?;
        let mut rest = tile.as_slice();
        for _ in 0..index % width {
            (_, rest) = split(rest).ok_or_else(|| cut(index))?;
        }
        split(rest).map(|(entry, _)| entry.to_vec()).ok_or_else(|| cut(index))
    }
}

fn cut(index: u64) -> Failure {
    Failure::Refused(format!("the tile with entry {index} is incomplete"))
}

/// The first entry, which is preceded by its length in two bytes, and what follows it.
fn split(tile: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = tile.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

impl Rows for Tiles<'_> {
    type Error = Failure;

    fn row(&self, level: u8, start: u64, count: u64) -> Result<Vec<Hash>, Failure> {
        let width = TILE_WIDTH as u64;
        let mut hashes = Vec::new();
        for index in start / width..=(start + count.saturating_sub(1)) / width {
            let tile = self.fetch(Wanted::Hashes { level, index, width: TILE_WIDTH })?;
            let (whole, _) = tile.as_chunks::<32>();
            let places = index * width..;
            let inside = places.zip(whole).filter(|(place, _)| (start..start + count).contains(place));
            hashes.extend(inside.map(|(_, hash)| Hash(*hash)));
        }
        if hashes.len() as u64 == count {
            Ok(hashes)
        } else {
            Err(Failure::Refused(format!("a tile of level {level} is incomplete")))
        }
    }
}
