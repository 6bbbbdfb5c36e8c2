//! HTTP/1 by hand, so that a test can send exactly the bytes it means, however wrong; and frames of HTTP/2.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::harness::PATIENCE;

/// One connection.
pub struct Wire {
    stream: TcpStream,
    received: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What came instead of a complete response.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// Closed or reset before the first byte: the request was not answered, and the client knows.
    NoAnswer,
    /// Closed in the middle of a response.
    Truncated(Vec<u8>),
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is given twice: {self:?}");
        value
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The problem's code; none for an answer without one.
    pub fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["code"].as_str().unwrap_or_default().to_owned()
    }

    /// `200`, or `401 credential_required`.
    pub fn verdict(&self) -> String {
        format!("{} {}", self.status, self.code()).trim_end().to_owned()
    }

    /// Everything that was sent, as text to search in.
    pub fn text(&self) -> String {
        format!("{:?} {}", self.headers, String::from_utf8_lossy(&self.body))
    }
}

/// A body in chunks and how many bytes it took; none if it is not all there yet.
fn chunks(received: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let line = received[at..].windows(2).position(|window| window == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&received[at..at + line]).unwrap(), 16).unwrap();
        at += line + 2;
        body.extend_from_slice(received.get(at..at + length)?);
        at += length + 2;
        if length == 0 {
            return (received.len() >= at).then_some((body, at));
        }
    }
}

impl Wire {
    pub fn connect(address: SocketAddr) -> Wire {
        Wire::over(TcpStream::connect(address).unwrap())
    }

    pub fn over(stream: TcpStream) -> Wire {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Wire { stream, received: Vec::new() }
    }

    /// Over a Unix socket, for which reading, writing and patience are the same.
    pub fn over_unix(stream: UnixStream) -> Wire {
        let stream = TcpStream::from(OwnedFd::from(stream));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Wire { stream, received: Vec::new() }
    }

    /// Sends what the server still takes: it may answer and close before it has read everything.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Nothing more will be sent; answers are still read.
    pub fn finish_sending(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    pub fn request(&mut self, line: &str, headers: &[&str]) {
        let lines: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        self.send(format!("{line}\r\nHost: pilot.example\r\n{lines}\r\n").as_bytes());
    }

    /// The next response; none when the connection was closed before it began.
    #[track_caller]
    pub fn response(&mut self) -> Option<Response> {
        match self.try_response(false) {
            Ok(response) => Some(response),
            Err(Broken::NoAnswer) => None,
            Err(Broken::Truncated(bytes)) => panic!("half a response: {}", String::from_utf8_lossy(&bytes)),
        }
    }

    /// The answer to HEAD.
    pub fn response_without_body(&mut self) -> Option<Response> {
        self.try_response(true).ok()
    }

    pub fn try_response(&mut self, is_head: bool) -> Result<Response, Broken> {
        loop {
            if let Some(response) = self.take_response(is_head) {
                return Ok(response);
            }
            if self.read_more() == 0 {
                let received = std::mem::take(&mut self.received);
                return Err(if received.is_empty() { Broken::NoAnswer } else { Broken::Truncated(received) });
            }
        }
    }

    fn take_response(&mut self, is_head: bool) -> Option<Response> {
        let end = self.received.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(self.received[..end].to_vec()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status_line = lines.next().unwrap();
        let status = status_line.split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers = lines.map(|line| header(line).unwrap_or_else(|| panic!("{line:?}"))).collect();
        let response = Response { status, headers, body: Vec::new() };
        if response.header("transfer-encoding") == Some("chunked") && !is_head {
            let (body, length) = chunks(&self.received[end..])?;
            self.received.drain(..end + length);
            return Some(Response { body, ..response });
        }
        let length = match response.header("content-length") {
            _ if is_head => 0,
            Some(length) => length.parse().unwrap(),
            // RFC 9110: it has no body, and so no length either.
            None if status == 204 => 0,
            None => panic!("a response without a length: {response:?}"),
        };
        let body = self.received.get(end..end + length)?.to_vec();
        self.received.drain(..end + length);
        Some(Response { body, ..response })
    }

    /// Whether the next thing said is that the body is waited for.
    pub fn is_told_to_go_on(&mut self) -> bool {
        let leave = b"HTTP/1.1 100 Continue\r\n\r\n";
        while self.received.len() < leave.len() && self.read_more() > 0 {}
        let told = self.received.starts_with(leave);
        if told {
            self.received.drain(..leave.len());
        }
        told
    }

    /// Bytes that arrived; 0 when there will be no more.
    fn read_more(&mut self) -> usize {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(length) => {
                self.received.extend_from_slice(&buffer[..length]);
                length
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the server neither answers nor closes"),
            Err(_) => 0,
        }
    }

    /// Everything until the server closes.
    pub fn rest(mut self) -> Vec<u8> {
        while self.read_more() > 0 {}
        self.received
    }

    /// Says that nothing more will be sent.
    pub fn end_of_input(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The `:status` of the first answer on an HTTP/2 connection.
    pub fn http2_status(&mut self) -> Option<String> {
        while let Some(frame) = self.frame() {
            if frame.first() == Some(&0x1) {
                return status_in(&frame[6..]);
            }
        }
        None
    }

    /// Kind, flags, stream and payload of the next HTTP/2 frame; none when the connection was closed.
    pub fn frame(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(frame) = self.take_frame() {
                return Some(frame);
            }
            if self.read_more() == 0 {
                return None;
            }
        }
    }

    fn take_frame(&mut self) -> Option<Vec<u8>> {
        let length = self.received.get(..3)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        self.received.get(..9 + length)?;
        Some(self.received.drain(..9 + length).skip(3).collect())
    }

    /// Whether the connection stays open and silent for this long.
    pub fn is_left_alone_for(&mut self, span: Duration) -> bool {
        self.stream.set_read_timeout(Some(span)).unwrap();
        let read = self.stream.read(&mut [0]);
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

/// What an HTTP/2 client sends first: the preface and empty settings.
pub const HTTP2_HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// An HTTP/2 frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A complete HEADERS frame that ends its stream; every field is a literal, neither indexed nor compressed.
pub fn headers_frame(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(0x1, 0x4 | 0x1, stream, &header_block(fields))
}

/// The same, with a body to follow.
pub fn headers_frame_before_body(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(0x1, 0x4, stream, &header_block(fields))
}

fn header_block(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| [&[0][..], &literal(name), &literal(value)].concat()).collect()
}

fn literal(text: &str) -> Vec<u8> {
    let length = text.len();
    let prefix = match u8::try_from(length) {
        Ok(short) if short < 127 => vec![short],
        // HPACK's integer: 127 in the prefix, then the rest in groups of seven bits.
        _ => vec![127, u8::try_from((length - 127) & 0x7F).unwrap() | 0x80, u8::try_from((length - 127) >> 7).unwrap()],
    };
    [&prefix, text.as_bytes()].concat()
}

/// HPACK has the usual statuses in its static table; others come as a literal after the name's index.
fn status_in(block: &[u8]) -> Option<String> {
    let known = ["200", "204", "206", "304", "400", "404", "500"];
    match block {
        [index @ 0x88..=0x8E, ..] => Some(known[usize::from(index - 0x88)].to_owned()),
        [0x48 | 0x08, 3, digits @ ..] => Some(String::from_utf8_lossy(digits.get(..3)?).into_owned()),
        [0x48 | 0x08, length @ (0x82 | 0x83), packed @ ..] => digits_in(packed.get(..usize::from(length & 0x7F))?),
        _ => Some(format!("{block:02x?}")),
    }
}

/// Three digits in HPACK's Huffman code: five bits for 0 to 2, six for 3 to 9.
fn digits_in(packed: &[u8]) -> Option<String> {
    let bits: Vec<u8> = packed.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let number = |bits: &[u8]| bits.iter().fold(0, |number, bit| number << 1 | bit);
    let (mut text, mut rest) = (String::new(), bits.as_slice());
    while text.len() < 3 {
        let (digit, length) = match number(rest.get(..5)?) {
            short @ 0..=2 => (short, 5),
            _ => (number(rest.get(..6)?).checked_sub(0x19)? + 3, 6),
        };
        text.push(char::from(b'0' + digit));
        rest = &rest[length..];
    }
    Some(text)
}
