//! An answer as it is kept with its idempotency key: the same request gets the same bytes again.

use std::io::Write as _;

use bytes::Bytes;
use pilot_core::certain::Certain as _;
use serde::Serialize;

/// What became of the request. Kept as the numbers of HTTP, as it always was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Created,
    Changed,
}

impl Made {
    const fn as_str(self) -> &'static str {
        match self {
            Made::Created => "201",
            Made::Changed => "200",
        }
    }

    fn parse(text: &str) -> Option<Made> {
        [Made::Created, Made::Changed].into_iter().find(|made| made.as_str() == text)
    }
}

#[derive(Debug, PartialEq)]
pub struct StoredAnswer {
    pub made: Made,
    pub location: Option<String>,
    pub version: Option<u64>,
    pub body: Bytes,
}

/// Where the bytes of an answer will be written, made where they will be read.
pub fn room() -> Vec<u8> {
    // Enough for most, so that it need not grow.
    Vec::with_capacity(768)
}

/// A line of its own for all but the body: `201 7 /v1/items/…`, with `-` for what is absent. The body is appended as it
/// is.
fn first_line(mut room: Vec<u8>, made: Made, version: Option<u64>, location: Option<&str>) -> Vec<u8> {
    room.clear();
    let _ = match version {
        Some(version) => write!(room, "{} {version} ", made.as_str()),
        None => write!(room, "{} - ", made.as_str()),
    };
    room.extend_from_slice(location.unwrap_or("-").as_bytes());
    room.push(b'\n');
    room
}

impl StoredAnswer {
    /// The bytes of an answer that shows `view`.
    pub fn showing(
        room: Vec<u8>,
        made: Made,
        version: Option<u64>,
        location: Option<&str>,
        view: &impl Serialize,
    ) -> Vec<u8> {
        let mut bytes = first_line(room, made, version, location);
        serde_json::to_writer(&mut bytes, view).certain("views have text keys and are written to memory");
        bytes
    }

    /// Nobody waits for it.
    pub fn empty() -> Vec<u8> {
        first_line(Vec::new(), Made::Changed, None, None)
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Option<StoredAnswer> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(bytes.get(..end)?).ok()?;
        let mut words = line.splitn(3, ' ');
        let made = Made::parse(words.next()?)?;
        let mut present = || words.next().map(|word| Some(word).filter(|word| *word != "-"));
        let version = present()?.map(str::parse).transpose().ok()?;
        let location = present()?.map(str::to_owned);
        let body = Bytes::from(bytes).split_off(end + 1);
        Some(StoredAnswer { made, location, version, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_answer_is_read_as_it_was_written() {
        for (location, version, body) in
            [(Some("/v1/items/x"), Some(7), "{\"a\":\"\\n\"}"), (None, Some(1), "a\nb - c"), (None, None, "")]
        {
            let mut bytes = first_line(room(), Made::Created, version, location);
            bytes.extend_from_slice(body.as_bytes());
            let answer =
                StoredAnswer { made: Made::Created, location: location.map(str::to_owned), version, body: body.into() };
            assert_eq!(StoredAnswer::from_bytes(bytes), Some(answer));
        }
        assert_eq!(StoredAnswer::from_bytes(b"201 7".to_vec()), None);
    }
}
