//! A connection that asks and reads whole answers.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Anything;

pub(crate) fn get(path: &str, token: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n").into_bytes()
}

pub(crate) fn post(path: &str, token: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

pub(crate) struct Connection {
    socket: TcpStream,
    answer: Vec<u8>,
    body_at: usize,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Result<Connection, Anything> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Connection { socket, answer: Vec::with_capacity(64 * 1024), body_at: 0 })
    }

    /// As it was sent, including the lengths of its chunks.
    pub(crate) fn body(&self) -> &[u8] {
        self.answer.get(self.body_at..).unwrap_or_default()
    }

    /// Returns when the whole answer is here, which must be a success.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<(), Anything> {
        self.socket.write_all(request).await?;
        self.answer.clear();
        let mut end = End::Unknown;
        while !end.is_reached(&self.answer) {
            if self.socket.read_buf(&mut self.answer).await? == 0 {
                return Err("the service closed a connection".into());
            }
            if matches!(end, End::Unknown)
                && let Some(body_at) = find(&self.answer, b"\r\n\r\n").map(|at| at + 4)
            {
                self.body_at = body_at;
                end = End::of(self.answer.get(..body_at).unwrap_or_default());
            }
        }
        if !self.answer.starts_with(b"HTTP/1.1 20") {
            return Err(format!("an unexpected answer:\n{}", String::from_utf8_lossy(&self.answer)).into());
        }
        Ok(())
    }
}

/// Where an answer ends.
enum End {
    Unknown,
    At(usize),
    /// After the last chunk; the next one begins here.
    Chunks(usize),
}

impl End {
    fn of(head: &[u8]) -> End {
        let length = find(head, b"\r\ncontent-length: ").and_then(|at| number(head.get(at + 18..)?, 10));
        match length {
            None if find(head, b"\r\ntransfer-encoding: chunked").is_some() => End::Chunks(head.len()),
            length => End::At(head.len() + length.map_or(0, |(length, _)| length)),
        }
    }

    fn is_reached(&mut self, answer: &[u8]) -> bool {
        match self {
            End::Unknown => false,
            End::At(end) => answer.len() >= *end,
            End::Chunks(next) => loop {
                let Some(rest) = answer.get(*next..) else { return false };
                let Some((length, digits)) = number(rest, 16) else { return false };
                if length == 0 {
                    return rest.len() >= digits + 4;
                }
                // Each chunk has a line end after its length and after itself.
                *next += digits + 2 + length + 2;
            },
        }
    }
}

/// The number a text begins with and how many digits it has; none before the end of its line is here.
fn number(text: &[u8], radix: u32) -> Option<(usize, usize)> {
    let line = text.get(..find(text, b"\r\n")?)?;
    let number = usize::from_str_radix(std::str::from_utf8(line).ok()?, radix).ok()?;
    Some((number, line.len()))
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}
