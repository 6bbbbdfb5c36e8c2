//! Follows the bytes of an HTTP/1 connection from head to head, and reports which head states a length twice.
//!
//! The HTTP library treats two equal `Content-Length` lines as one, and drops such a line next to a
//! `Transfer-Encoding`, before anyone else sees them. A proxy in front might read such a message differently. So the
//! lines are counted here, in the bytes as they arrive. Bodies are skipped by the length their head states: what
//! follows is the next head, even if both arrive in one piece.

use memchr::memchr;

/// How HTTP/2 begins. Its frames are not examined.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Enough for a length, however it is padded. A line of this length or more does not state one.
const LINE_BYTES_MAX: usize = 64;

const UNCERTAIN: &str = "It is not certain where the previous request ends.";

/// A head that must not be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faulty {
    /// How many heads came before it on its connection.
    pub index: u64,
    pub detail: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The first bytes of the connection, which so far match the HTTP/2 preface.
    Opening(usize),
    /// Before a request line, where empty lines do not count.
    Start,
    RequestLine,
    Field,
    Body(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    /// HTTP/2, or after a faulty head.
    Done,
}

/// Where in the message stream a connection is.
#[derive(Debug)]
pub struct Heads {
    place: Place,
    index: u64,
    /// The length that the current head states, and whether its body is chunked.
    length: Option<u64>,
    is_chunked: bool,
    /// The beginning of a line that arrives in pieces.
    begun: Vec<u8>,
}

impl Default for Heads {
    fn default() -> Self {
        Heads { place: Place::Opening(0), index: 0, length: None, is_chunked: false, begun: Vec::new() }
    }
}

impl Heads {
    /// Whether any byte of the head after this many others was sent.
    pub fn has_begun(&self, others: u64) -> bool {
        let is_in_head = matches!(self.place, Place::RequestLine | Place::Field);
        self.index > others || self.index == others && is_in_head
    }

    /// Whether what was sent last is the beginning of a request line.
    pub fn is_in_request_line(&self) -> bool {
        self.place == Place::RequestLine
    }

    /// Reads what arrived, and reports the first faulty head. Nothing is reported after it: its answer is the last on
    /// the connection.
    pub fn see(&mut self, bytes: &[u8]) -> Option<Faulty> {
        let Place::Opening(seen) = self.place else { return self.walk(bytes) };
        let expected = HTTP2_PREFACE.get(seen..).unwrap_or_default();
        let alike = bytes.iter().zip(expected).take_while(|(byte, other)| byte == other).count();
        if alike == expected.len() {
            self.place = Place::Done;
            return None;
        }
        if alike == bytes.len() {
            self.place = Place::Opening(seen + alike);
            return None;
        }
        self.place = Place::Start;
        let before = HTTP2_PREFACE.get(..seen).unwrap_or_default();
        self.walk(before).or_else(|| self.walk(bytes))
    }

    fn walk(&mut self, mut rest: &[u8]) -> Option<Faulty> {
        while !rest.is_empty() {
            rest = match self.place {
                Place::Opening(_) | Place::Done => return None,
                Place::Start => {
                    let empty = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                    if empty < rest.len() {
                        self.place = Place::RequestLine;
                    }
                    rest.get(empty..)?
                }
                Place::RequestLine => {
                    let end = memchr(b'\n', rest)?;
                    self.place = Place::Field;
                    rest.get(end + 1..)?
                }
                Place::Body(length) => {
                    let left = step_over(&mut rest, length);
                    self.place = if left == 0 { Place::Start } else { Place::Body(left) };
                    rest
                }
                Place::Chunk(length) => {
                    let left = step_over(&mut rest, length);
                    self.place = if left == 0 { Place::ChunkEnd } else { Place::Chunk(left) };
                    rest
                }
                Place::Field | Place::ChunkSize | Place::ChunkEnd | Place::Trailer => {
                    let Some(end) = memchr(b'\n', rest) else {
                        self.keep(rest);
                        return None;
                    };
                    let (line, after) = (rest.get(..end)?, rest.get(end + 1..)?);
                    if let Err(detail) = self.end_line(line) {
                        self.place = Place::Done;
                        return Some(Faulty { index: self.index, detail });
                    }
                    after
                }
            };
        }
        None
    }

    /// A line is examined only when complete. Beyond the part that is examined, only its last byte is kept.
    fn keep(&mut self, piece: &[u8]) {
        let room = (LINE_BYTES_MAX + 1).saturating_sub(self.begun.len());
        self.begun.extend_from_slice(piece.get(..room).unwrap_or(piece));
        if let (Some(end), Some(last)) = (self.begun.get_mut(LINE_BYTES_MAX), piece.last()) {
            *end = *last;
        }
    }

    fn end_line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if self.begun.is_empty() {
            return self.take(line);
        }
        self.keep(line);
        let whole = std::mem::take(&mut self.begun);
        self.take(&whole)
    }

    fn take(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let bare = line.strip_suffix(b"\r");
        self.place = match (self.place, bare.unwrap_or(line)) {
            (Place::Field, b"") => self.end_head(),
            (Place::Field, field) => {
                self.take_field(field)?;
                Place::Field
            }
            (place, line) => bare.and_then(|_| after_line(place, line)).ok_or(UNCERTAIN)?,
        };
        Ok(())
    }

    fn take_field(&mut self, line: &[u8]) -> Result<(), &'static str> {
        match line.first() {
            Some(b'c' | b'C') => {
                let Some(value) = value_of(line, b"content-length:") else { return Ok(()) };
                if self.length.is_some() {
                    return Err("The request has more than one Content-Length header.");
                }
                let length = Some(value).filter(|_| line.len() < LINE_BYTES_MAX).and_then(number);
                self.length = Some(length.ok_or("The Content-Length is not a number of bytes.")?);
            }
            Some(b't' | b'T') if value_of(line, b"transfer-encoding:").is_some() => self.is_chunked = true,
            _ => return Ok(()),
        }
        if self.is_chunked && self.length.is_some() {
            return Err("The request has both Content-Length and Transfer-Encoding.");
        }
        Ok(())
    }

    fn end_head(&mut self) -> Place {
        self.index += 1;
        match (std::mem::take(&mut self.is_chunked), self.length.take()) {
            (true, _) => Place::ChunkSize,
            (false, None | Some(0)) => Place::Start,
            (false, Some(length)) => Place::Body(length),
        }
    }
}

/// Where a line of a chunked body leads. The library is strict about every byte of such lines, and so are we: if the
/// two disagree, the next head is not trusted.
fn after_line(place: Place, line: &[u8]) -> Option<Place> {
    match (place, line) {
        (Place::ChunkSize, size) => Some(match chunk_size(size)? {
            0 => Place::Trailer,
            size => Place::Chunk(size),
        }),
        (Place::ChunkEnd, b"") => Some(Place::ChunkSize),
        (Place::Trailer, b"") => Some(Place::Start),
        (Place::Trailer, trailer) => (!trailer.contains(&b'\r')).then_some(Place::Trailer),
        _ => None,
    }
}

/// Skips this many bytes, and returns how many of them are still to come.
fn step_over(rest: &mut &[u8], length: u64) -> u64 {
    let here = usize::try_from(length).map_or(rest.len(), |length| length.min(rest.len()));
    *rest = rest.get(here..).unwrap_or_default();
    length - here as u64
}

fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_plain.then_some(digits).and_then(|digits| str::from_utf8(digits).ok()?.parse().ok())
}

/// The size before an extension, which nobody reads.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let digits = line.get(..end).filter(|digits| !digits.is_empty() && digits.len() < LINE_BYTES_MAX)?;
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the result for these bytes however they are split: whole, byte by byte, and in two at every position.
    #[track_caller]
    fn check(bytes: &str, expected: Option<(u64, &str)>) {
        let bytes = bytes.as_bytes();
        let told = |pieces: &[&[u8]]| {
            let mut heads = Heads::default();
            let faulty = pieces.iter().find_map(|piece| heads.see(piece));
            faulty.map(|faulty| (faulty.index, faulty.detail))
        };
        assert_eq!(told(&[bytes]), expected, "whole");
        assert_eq!(told(&bytes.chunks(1).collect::<Vec<_>>()), expected, "byte by byte");
        for at in 0..bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(told(&[first, second]), expected, "cut at {at}");
        }
    }

    const TWICE: &str = "The request has more than one Content-Length header.";
    const BOTH: &str = "The request has both Content-Length and Transfer-Encoding.";

    #[test]
    fn a_head_with_one_length_or_none_is_believed() {
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", None);
        check("POST / HTTP/1.1\r\nContent-Length: 4\r\nContent-Type: x\r\nTE: trailers\r\n\r\nbody", None);
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n4\r\nbody\r\n0\r\n\r\n", None);
    }

    #[test]
    fn a_second_length_is_found_whatever_its_case_its_value_and_its_line_end() {
        check("POST / HTTP/1.1\r\nContent-Length: 4\r\nHost: a\r\ncontent-LENGTH:4\r\n\r\nbody", Some((0, TWICE)));
        check("POST / HTTP/1.1\nContent-Length: 4\nContent-Length: 5\n\nbody", Some((0, TWICE)));
        check("POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Some((0, BOTH)));
        check("POST / HTTP/1.1\r\nTRANSFER-ENCODING: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", Some((0, BOTH)));
    }

    #[test]
    fn a_length_that_is_none_is_not_believed() {
        let detail = "The Content-Length is not a number of bytes.";
        let (padded, zeros) = (format!("{}4", " ".repeat(80)), format!("{:0>60}", 4));
        for value in ["", "+4", "-1", "0x4", "4, 4", "4 4", "99999999999999999999", &padded, &zeros] {
            check(&format!("POST / HTTP/1.1\r\nContent-Length: {value}\r\n\r\nbody"), Some((0, detail)));
        }
    }

    #[test]
    fn what_follows_a_body_is_the_next_head() {
        let twice = "POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n";
        for before in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\n\r\nbody",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nbody\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
        ] {
            check(before, None);
            check(&[before, twice].concat(), Some((1, TWICE)));
            check(&[before, before, twice].concat(), Some((2, TWICE)));
        }
    }

    #[test]
    fn lines_of_a_body_count_for_nothing() {
        let lines = "\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        check(&format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{lines}", lines.len()), None);
        let (size, end) = (lines.len(), "0\r\n\r\n");
        check(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{size:x}\r\n{lines}\r\n{end}"), None);
    }

    #[test]
    fn after_chunks_that_cannot_be_followed_nothing_is_believed() {
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let zeros = "0".repeat(80);
        for chunks in ["\r\n", "x\r\n", "10000000000000000\r\n", &zeros, "4\n", "1\r\nbb\r\n", "1\r\nb\n"] {
            check(&format!("{head}{chunks}\r\n"), Some((1, UNCERTAIN)));
        }
        // The library treats a bare line feed as part of the trailer, so that another line would end it.
        for trailer in ["X: y\n", "X: y\n\r\n", "\n", "X: y\r\nZ\n", &format!("X: {}\n", "y".repeat(80))] {
            check(&format!("{head}0\r\n{trailer}\r\n"), Some((1, UNCERTAIN)));
        }
        check(&format!("{head}0\r\nX: {}\r\n\r\n", "y".repeat(80)), None);
    }

    #[test]
    fn http_2_is_left_alone() {
        let lines = "\nContent-Length: 1\nContent-Length: 2\n\n";
        check(&format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nx{lines}"), None);
        check("PRI * HTTP/2.0\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", Some((0, TWICE)));
    }
}
