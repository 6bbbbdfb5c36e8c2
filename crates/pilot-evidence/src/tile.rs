//! C2SP tlog-tiles: the tree in pieces of 256 hashes, each with its own path.

use crate::merkle::Hash;

pub const TILE_WIDTH: usize = 256;
/// Each level of tiles spans eight levels of the tree.
pub const TILE_HEIGHT: u8 = 8;
/// Higher levels would only be needed for more leaves than 64 bits can count.
const LEVEL_MAX: u8 = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    pub level: u8,
    pub index: u64,
    pub hashes: Vec<Hash>,
}

impl Tile {
    pub fn to_bytes(&self) -> Vec<u8> {
        self.hashes.iter().flat_map(|hash| hash.0).collect()
    }
}

/// What a tile path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Hashes { level: u8, index: u64, width: usize },
    Entries { index: u64, width: usize },
}

impl Wanted {
    /// Reads `0/x001/234`, `1/000.p/17` or `entries/005`, strictly.
    pub fn parse(path: &str) -> Option<Wanted> {
        let (level, rest) = path.split_once('/')?;
        let (number, width) = match rest.split_once(".p/") {
            Some((number, width)) => (number, partial_width(width)?),
            None => (rest, TILE_WIDTH),
        };
        let index = parse_index(number)?;
        if level == "entries" {
            return Some(Wanted::Entries { index, width });
        }
        let plain = level.len() == 1 || !level.starts_with('0');
        let level: u8 = level.parse().ok().filter(|level| plain && *level <= LEVEL_MAX)?;
        Some(Wanted::Hashes { level, index, width })
    }

    /// The path of this tile, as `parse` reads it.
    pub fn path(self) -> String {
        let (level, index, width) = match self {
            Wanted::Hashes { level, index, width } => (level.to_string(), index, width),
            Wanted::Entries { index, width } => ("entries".to_owned(), index, width),
        };
        let partial = if width < TILE_WIDTH { format!(".p/{width}") } else { String::new() };
        format!("{level}/{}{partial}", index_path(index))
    }

    /// How many hashes (or entries) of this tile a tree of `size` leaves has.
    pub fn available(self, size: u64) -> usize {
        let (level, index) = match self {
            Wanted::Hashes { level, index, .. } => (level, index),
            Wanted::Entries { index, .. } => (0, index),
        };
        let row = size >> (u32::from(level) * u32::from(TILE_HEIGHT));
        let before = index.saturating_mul(TILE_WIDTH as u64);
        usize::try_from(row.saturating_sub(before)).unwrap_or(TILE_WIDTH).min(TILE_WIDTH)
    }
}

fn partial_width(text: &str) -> Option<usize> {
    let plain = !text.is_empty() && !text.starts_with('0') && text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|width| plain && *width < TILE_WIDTH)
}

fn index_path(index: u64) -> String {
    let mut path = format!("{:03}", index % 1000);
    let mut rest = index / 1000;
    while rest > 0 {
        path = format!("x{:03}/{path}", rest % 1000);
        rest /= 1000;
    }
    path
}

/// Groups of three digits, all but the last with a leading `x`, and no more groups than needed.
fn parse_index(text: &str) -> Option<u64> {
    let groups: Vec<_> = text.split('/').collect();
    let mut index = 0_u64;
    for (place, group) in groups.iter().enumerate() {
        let digits = if place + 1 < groups.len() { group.strip_prefix('x')? } else { group };
        if digits.len() != 3 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        if place == 0 && groups.len() > 1 && digits == "000" {
            return None;
        }
        index = index.checked_mul(1000)?.checked_add(digits.parse().ok()?)?;
    }
    Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tile_paths_are_read_as_the_specification_writes_them() {
        let full = |level, index| Some(Wanted::Hashes { level, index, width: 256 });
        assert_eq!(Wanted::parse("0/000"), full(0, 0));
        assert_eq!(Wanted::parse("0/x001/x234/067"), full(0, 1_234_067));
        assert_eq!(Wanted::parse("1/000.p/17"), Some(Wanted::Hashes { level: 1, index: 0, width: 17 }));
        assert_eq!(Wanted::parse("entries/x001/002.p/255"), Some(Wanted::Entries { index: 1002, width: 255 }));
        for path in ["0/000", "0/x001/x234/067", "1/000.p/17", "entries/x001/002.p/255", "2/999", "5/x001/000.p/1"] {
            assert_eq!(Wanted::parse(path).unwrap().path(), path);
        }
        for wrong in [
            "",
            "0",
            "0/",
            "0/1",
            "0/0000",
            "0/x000/001",
            "0/001/002",
            "0/x001",
            "6/000",
            "00/000",
            "-1/000",
            "0/000.p/0",
            "0/000.p/256",
            "0/000.p/017",
            "0/000.p/",
            "entries/",
            "data/000",
            "0/000/",
            "0/x99999999999999999999/000",
        ] {
            assert_eq!(Wanted::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_tile_has_as_many_hashes_as_the_tree_reaches() {
        let available = |path: &str, size| Wanted::parse(path).unwrap().available(size);
        assert_eq!(available("0/000", 0), 0);
        assert_eq!(available("0/000", 255), 255);
        assert_eq!(available("0/001", 300), 44);
        assert_eq!(available("1/000", 511), 1);
        assert_eq!(available("1/000", 512), 2);
        assert_eq!(available("entries/000", 1_000), 256);
    }
}
