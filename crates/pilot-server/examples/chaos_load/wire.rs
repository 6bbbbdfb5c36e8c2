//! Just enough HTTP/1.1 for this service, with a limit on every wait.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longer than the service lets anyone wait for a commit.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);
/// For a question that may as well stay open: who asks a node that hangs must not miss the others.
const BRIEF_TIMEOUT: Duration = Duration::from_millis(500);
/// Longer than the pause between two signs of life of a feed.
const FEED_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) token: String,
    pub(crate) key: Option<String>,
    pub(crate) body: Option<String>,
}

impl Request {
    pub(crate) fn get(path: &str, token: &str) -> Request {
        Request { method: "GET", path: path.to_owned(), token: token.to_owned(), key: None, body: None }
    }

    pub(crate) fn post(path: &str, token: &str, key: String, body: String) -> Request {
        Request { method: "POST", path: path.to_owned(), token: token.to_owned(), key: Some(key), body: Some(body) }
    }

    fn text(&self, more: &str) -> String {
        let Request { method, path, token, key, body } = self;
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: pilot\r\nAuthorization: Bearer {token}\r\n{more}");
        if let Some(key) = key {
            text = text + "Idempotency-Key: " + key + "\r\n";
        }
        if let Some(body) = body {
            let length = body.len().to_string();
            text = text + "Content-Type: application/json\r\nContent-Length: " + &length + "\r\n";
        }
        text + "\r\n" + body.as_deref().unwrap_or_default()
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

fn open(address: SocketAddr, patience: Duration) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT.min(patience))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(BufReader::new(stream))
}

fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut text = String::new();
    if stream.read_line(&mut text)? == 0 {
        return Err(broken("the connection was closed"));
    }
    Ok(text.trim_end().to_owned())
}

struct Head {
    status: u16,
    length: Option<usize>,
}

fn head(stream: &mut impl BufRead) -> io::Result<Head> {
    let first = line(stream)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let mut head = Head { status: status.ok_or_else(|| broken("this is not HTTP"))?, length: None };
    loop {
        let field = line(stream)?;
        if field.is_empty() {
            return Ok(head);
        }
        if let Some((name, value)) = field.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            head.length = value.trim().parse().ok();
        }
    }
}

/// A part of a body of unknown length; empty at its end.
fn chunk(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let length = usize::from_str_radix(&line(stream)?, 16).map_err(|_| broken("this is not a chunk"))?;
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    line(stream)?;
    Ok(bytes)
}

/// A connection to one node, opened again whenever it has failed.
pub(crate) struct Connection {
    address: SocketAddr,
    patience: Duration,
    stream: Option<BufReader<TcpStream>>,
}

impl Connection {
    pub(crate) fn to(address: SocketAddr) -> Connection {
        Connection { address, patience: ANSWER_TIMEOUT, stream: None }
    }

    /// One that is not waited for long.
    pub(crate) fn briefly_to(address: SocketAddr) -> Connection {
        Connection { address, patience: BRIEF_TIMEOUT, stream: None }
    }

    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => open(self.address, self.patience)?,
        };
        stream.get_mut().write_all(request.text("").as_bytes())?;
        let Head { status, length } = head(&mut stream)?;
        let mut body = Vec::new();
        match length {
            Some(length) => {
                body.resize(length, 0);
                stream.read_exact(&mut body)?;
            }
            None => loop {
                let part = chunk(&mut stream)?;
                if part.is_empty() {
                    break;
                }
                body.extend(part);
            },
        }
        self.stream = Some(stream);
        Ok(Answer { status, body })
    }
}

/// An event of the feed: its id, and the entry.
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) data: Vec<u8>,
}

pub(crate) struct Feed {
    stream: BufReader<TcpStream>,
    text: Vec<u8>,
}

impl Feed {
    /// The feed, or the status with which it was refused.
    pub(crate) fn open(address: SocketAddr, token: &str, last: Option<u64>) -> io::Result<Result<Feed, u16>> {
        let mut stream = open(address, FEED_TIMEOUT)?;
        let last = last.map_or_else(String::new, |last| format!("Last-Event-ID: {last}\r\n"));
        let request = Request::get("/v1/events", token).text(&format!("Accept: text/event-stream\r\n{last}"));
        stream.get_mut().write_all(request.as_bytes())?;
        let head = head(&mut stream)?;
        Ok(if head.status == 200 { Ok(Feed { stream, text: Vec::new() }) } else { Err(head.status) })
    }

    /// The next event, or nothing when the feed has ended properly.
    pub(crate) fn next(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.text.drain(..end + 2).collect();
                match event(&block) {
                    Some(event) => return Ok(Some(event)),
                    // A comment, as a sign of life.
                    None if block.starts_with(b":") => continue,
                    None => return Err(broken("this is not an event")),
                }
            }
            let part = chunk(&mut self.stream)?;
            if part.is_empty() {
                return Ok(None);
            }
            self.text.extend(part);
        }
    }
}

fn event(block: &[u8]) -> Option<Event> {
    let mut lines = block.split(|byte| *byte == b'\n');
    let id = lines.find_map(|line| line.strip_prefix(b"id: "))?;
    let id = std::str::from_utf8(id).ok()?.parse().ok()?;
    let data = lines.find_map(|line| line.strip_prefix(b"data: "))?.to_vec();
    Some(Event { id, data })
}
