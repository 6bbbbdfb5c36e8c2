//! Live feeds, and one client that writes meanwhile. Each line of standard input is a command, answered by lines of
//! which the last is `done`:
//!
//! - `open N`: opens feeds until there are N
//! - `alone N`: N writes, each after every feed has received the one before it; prints percentiles of the time from the
//!   answer to the write until the last feed has it
//! - `steady N`: N writes one after the other; prints percentiles of the time each write took, and then waits for the
//!   feeds

use std::io::{Lines, StdinLock};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::Anything;
use crate::clock::{micros_since, now, print_percentiles};
use crate::connection::{Connection, get, post};

/// The service limits how many connections come from one address.
const FEEDS_PER_ADDRESS: usize = 200;
/// An item takes so many comments, and some more.
const WRITES_PER_ITEM: u64 = 1_000;

/// The first token is of an initiator, who writes; the others are of those who listen.
pub(crate) fn run(
    runtime: &Runtime,
    address: &str,
    tokens: &[String],
    commands: Lines<StdinLock<'static>>,
) -> Result<(), Anything> {
    let [writer, listeners @ ..] = tokens else { return Err("the token of a writer is needed".into()) };
    let mut stage = runtime.block_on(Stage::open(address.parse()?, writer))?;
    println!("done");
    for command in commands {
        let command = command?;
        let (what, count) = command.split_once(' ').ok_or("a command has a number")?;
        let count = count.parse()?;
        match what {
            "open" => runtime.block_on(stage.listen(listeners, count))?,
            "alone" => runtime.block_on(stage.write(count, true))?,
            "steady" => runtime.block_on(stage.write(count, false))?,
            _ => return Err("`open`, `alone` or `steady`".into()),
        }
        println!("done");
    }
    Ok(())
}

struct Stage {
    address: SocketAddr,
    writer: Writer,
    feeds: Vec<Arc<Feed>>,
    arrived: Arc<Notify>,
}

/// How far a feed has read.
struct Feed {
    last: AtomicU64,
}

impl Stage {
    async fn open(address: SocketAddr, token: &str) -> Result<Stage, Anything> {
        let connection = Connection::open(&address.to_string()).await?;
        let mut writer = Writer { connection, token: token.to_owned(), item: String::new(), written: 0 };
        writer.begin_item().await?;
        Ok(Stage { address, writer, feeds: Vec::new(), arrived: Arc::default() })
    }

    async fn listen(&mut self, tokens: &[String], count: usize) -> Result<(), Anything> {
        let last = self.writer.write().await?;
        while self.feeds.len() < count {
            let number = self.feeds.len();
            let token = tokens.get(number % tokens.len().max(1)).ok_or("a listener needs a token")?;
            let host = u8::try_from(2 + number / FEEDS_PER_ADDRESS)?;
            let socket = connect(self.address, Ipv4Addr::new(127, 0, 0, host), token, last).await?;
            let feed = Arc::new(Feed { last: AtomicU64::new(last) });
            tokio::spawn(Arc::clone(&feed).read(socket, Arc::clone(&self.arrived)));
            self.feeds.push(feed);
        }
        // Every feed is in place once it has received something.
        let last = self.writer.write().await?;
        self.until_received(last).await
    }

    async fn write(&mut self, count: usize, is_alone: bool) -> Result<(), Anything> {
        let (mut micros, mut last, begun) = (Vec::new(), 0, now());
        for _ in 0..count {
            let start = now();
            last = self.writer.write().await?;
            if is_alone {
                let answered = now();
                self.until_received(last).await?;
                micros.push(micros_since(answered));
            } else {
                micros.push(micros_since(start));
            }
        }
        self.until_received(last).await?;
        println!("seconds {:.6}", elapsed(begun));
        print_percentiles(micros);
        Ok(())
    }

    async fn until_received(&self, last: u64) -> Result<(), Anything> {
        loop {
            let notified = self.arrived.notified();
            if self.feeds.iter().any(|feed| feed.last.load(Ordering::Relaxed) == ENDED) {
                return Err("the service closed a feed".into());
            }
            if self.feeds.iter().all(|feed| feed.last.load(Ordering::Relaxed) >= last) {
                return Ok(());
            }
            notified.await;
        }
    }
}

fn elapsed(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64()
}

/// In place of an index: nothing will come any more.
const ENDED: u64 = u64::MAX;

impl Feed {
    async fn read(self: Arc<Feed>, mut socket: TcpStream, arrived: Arc<Notify>) {
        let mut text = Vec::with_capacity(4 * 1024);
        loop {
            let is_open = socket.read_buf(&mut text).await.is_ok_and(|count| count > 0);
            let last = if is_open { last_event(&text) } else { Some(ENDED) };
            if let Some(last) = last {
                self.last.store(last, Ordering::Relaxed);
                arrived.notify_one();
                text.clear();
            }
            if !is_open {
                return;
            }
        }
    }
}

/// The id of the last event that is here as a whole.
fn last_event(text: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(text);
    let whole = text.trim_end().rsplit_once("\ndata: ")?.0;
    whole.rsplit_once("id: ")?.1.lines().next()?.parse().ok()
}

async fn connect(server: SocketAddr, from: Ipv4Addr, token: &str, last: u64) -> Result<TcpStream, Anything> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((from, 0)))?;
    let mut stream = socket.connect(server).await?;
    let request = get("/v1/events", token);
    let head = request.strip_suffix(b"\r\n").unwrap_or(&request);
    stream.write_all(head).await?;
    stream.write_all(format!("Accept: text/event-stream\r\nLast-Event-ID: {last}\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b": connected\n\n\r\n") {
        if stream.read_buf(&mut answer).await? == 0 || !answer.starts_with(b"HTTP/1.1 200") {
            return Err(format!("a feed was refused:\n{}", String::from_utf8_lossy(&answer)).into());
        }
    }
    Ok(stream)
}

struct Writer {
    connection: Connection,
    token: String,
    item: String,
    written: u64,
}

impl Writer {
    async fn begin_item(&mut self) -> Result<(), Anything> {
        let body = r#"{"workflow":"controlled-operation","title":"Something to talk about","payload":{"risk":"low"}}"#;
        let made = self.post("/v1/items", body).await?;
        made.get("id").and_then(Value::as_str).ok_or("a new item has no id")?.clone_into(&mut self.item);
        Ok(())
    }

    /// Gives the index of the entry.
    async fn write(&mut self) -> Result<u64, Anything> {
        self.written += 1;
        if self.written.is_multiple_of(WRITES_PER_ITEM) {
            self.begin_item().await?;
        }
        let path = format!("/v1/items/{}/comments", self.item);
        let made = self.post(&path, r#"{"text":"One more look at the numbers"}"#).await?;
        Ok(made.get("entry").and_then(Value::as_u64).ok_or("a comment has no entry")?)
    }

    async fn post(&mut self, path: &str, body: &str) -> Result<Value, Anything> {
        self.connection.ask(&post(path, &self.token, body)).await?;
        Ok(serde_json::from_slice(self.connection.body())?)
    }
}
