//! Where a list continues. To callers a cursor is opaque; it is the index of an entry: the one that created the last item
//! of a page, or the last entry looked at. In a sorted list the item's rank is added, as it was when the page was made:
//! an item that changes in between does not move the place where the list continues.

use std::cmp::Reverse;

use data_encoding::BASE64URL_NOPAD;
use pilot_core::fault::Fault;
use pilot_core::json::INTEGER_MAX;
use pilot_store::{Rank, Sort, SortKey};

use crate::problem::Problem;

pub fn write(index: u64) -> String {
    BASE64URL_NOPAD.encode(&index.to_be_bytes())
}

pub fn read(text: &str) -> Result<u64, Problem> {
    let decoded = BASE64URL_NOPAD.decode(text.as_bytes()).ok().and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    let index = decoded.map(u64::from_be_bytes).filter(|index| *index <= INTEGER_MAX);
    index.ok_or_else(not_ours)
}

fn not_ours() -> Problem {
    Problem::invalid(vec![Fault::new("/query/cursor", "is not a cursor issued by this service")])
}

/// A cursor of one order says nothing in another.
fn mark(sort: Sort) -> u8 {
    match sort {
        Sort::Updated => b'u',
        Sort::Due => b'd',
        Sort::Title => b't',
    }
}

pub fn write_rank(rank: &Rank, sort: Sort) -> String {
    let Rank { key, created_entry: Reverse(created_entry) } = rank;
    let mut bytes = vec![mark(sort)];
    bytes.extend_from_slice(&created_entry.to_be_bytes());
    match key {
        SortKey::Number(number) => bytes.extend_from_slice(&number.to_be_bytes()),
        SortKey::Text(text) => bytes.extend_from_slice(text.as_bytes()),
    }
    BASE64URL_NOPAD.encode(&bytes)
}

pub fn read_rank(text: &str, sort: Sort) -> Result<Rank, Problem> {
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| not_ours())?;
    let rest = bytes.strip_prefix(&[mark(sort)]).ok_or_else(not_ours)?;
    let (created_entry, key) = rest.split_first_chunk().ok_or_else(not_ours)?;
    let key = match sort {
        Sort::Updated | Sort::Due => {
            SortKey::Number(i64::from_be_bytes(<[u8; 8]>::try_from(key).map_err(|_| not_ours())?))
        }
        Sort::Title => SortKey::Text(String::from_utf8(key.to_vec()).map_err(|_| not_ours())?),
    };
    Ok(Rank { key, created_entry: Reverse(u64::from_be_bytes(*created_entry)) })
}
