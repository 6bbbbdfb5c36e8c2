//! Where a list continues. To callers a cursor is opaque; it is the index of an entry: the one that created the last item
//! of a page, or the last entry looked at.

use data_encoding::BASE64URL_NOPAD;
use pilot_core::fault::Fault;
use pilot_core::json::INTEGER_MAX;

use crate::problem::Problem;

pub fn write(index: u64) -> String {
    BASE64URL_NOPAD.encode(&index.to_be_bytes())
}

pub fn read(text: &str) -> Result<u64, Problem> {
    let decoded = BASE64URL_NOPAD.decode(text.as_bytes()).ok().and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    let index = decoded.map(u64::from_be_bytes).filter(|index| *index <= INTEGER_MAX);
    index.ok_or_else(|| Problem::invalid(vec![Fault::new("/query/cursor", "is not a cursor issued by this service")]))
}
