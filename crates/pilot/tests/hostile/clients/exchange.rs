//! A request and its answer over HTTP/1.1, by hand.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use super::{Run, Target};

/// Longer than any honest answer takes; whoever waits longer has found a hang.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// One connection, for one request after the other.
pub(crate) struct Exchange {
    stream: BufReader<TcpStream>,
}

/// What was answered. A streamed answer has an empty body here.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    /// `200`, or `413 body_too_large`.
    pub(crate) fn verdict(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let code = text.split("\"code\":\"").nth(1).and_then(|rest| rest.split('"').next());
        match code.filter(|_| self.status >= 400) {
            Some(code) => format!("{} {code}", self.status),
            None => self.status.to_string(),
        }
    }

    /// A member of the answer that is text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.body);
        let rest = text.split(&format!("\"{name}\":\"")).nth(1)?;
        rest.split('"').next().map(str::to_owned)
    }
}

impl Exchange {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Exchange> {
        Exchange::over(TcpStream::connect_timeout(&address, PATIENCE)?)
    }

    pub(crate) fn over(stream: TcpStream) -> io::Result<Exchange> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Exchange { stream: BufReader::new(stream) })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn ask(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.send(request)?;
        self.answer()
    }

    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let broken = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
        let mut length = 0;
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(broken());
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(|_| broken())?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, body })
    }

    /// The rest of a streamed answer, as fast as it comes, until `run` is over.
    pub(crate) fn drain(&mut self, run: &Run) {
        let mut buffer = [0; 16 * 1024];
        while !run.is_over() && self.stream.read(&mut buffer).is_ok_and(|length| length > 0) {}
    }
}

/// A request without a body.
pub(crate) fn get(path: &str, token: &str) -> Vec<u8> {
    with_headers(&format!("GET {path}"), token, "")
}

pub(crate) fn with_headers(line: &str, token: &str, headers: &str) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\nHost: pilot.example\r\n{}{headers}\r\n", authorization(token)).into_bytes()
}

pub(crate) fn post(path: &str, token: &str, body: &[u8]) -> Vec<u8> {
    let length = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    [&with_headers(&format!("POST {path}"), token, &length), body].concat()
}

fn authorization(token: &str) -> String {
    if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") }
}

/// Sends each of these requests again and again on so many connections, and notes the answers.
pub(crate) fn repeat(target: &Target, run: &Run, connections: usize, requests: &[Vec<u8>]) {
    thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                while !run.is_over() {
                    let Ok(mut exchange) = Exchange::open(target.address) else { return };
                    for request in requests.iter().cycle() {
                        if run.is_over() {
                            return;
                        }
                        match exchange.ask(request) {
                            Ok(answer) => run.note(answer.verdict()),
                            // Whoever is hung up on comes back.
                            Err(_) => break,
                        }
                    }
                }
            });
        }
    });
}
