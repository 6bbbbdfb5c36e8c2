//! Load for `bench transitions`: clients on connections that stay open, each moving items of its own back and forth
//! between submitted and approved, and waiting for each answer.
//!
//! `transitions_load ADDRESSES CLIENTS prepare ITEMS` makes and submits items and prints each id with its content
//! digest; `transitions_load ADDRESSES CLIENTS run SECONDS` reads such lines from standard input, and prints
//! `transitions N`, `seconds S`, `p50_micros M` and `p99_micros M`. The tokens of an initiator and an approver are the
//! first two lines of standard input. Clients are spread over the addresses, which have commas between them.
//!
//! With `restate` as a fifth argument, the items are virtual objects of `xtask/peers/restate`, and the address is that of
//! Restate's ingress.
//!
//! It speaks just enough HTTP/1.1 to this service to cost little itself: both share the machine's cores.
#![allow(clippy::print_stdout, reason = "the benchmark reads the figures from standard output")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::error::Error;
use std::time::{Duration, Instant};

use memchr::memmem;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Anything = Box<dyn Error + Send + Sync>;

#[derive(Clone)]
struct Item {
    id: String,
    content_digest: String,
}

/// Whose paths are asked, and how success is answered.
#[derive(Clone, Copy, PartialEq)]
enum Api {
    Pilot,
    Restate,
}

impl Api {
    fn transition(self, item: &str, action: &str) -> String {
        match self {
            Api::Pilot => format!("/v1/items/{item}/transitions"),
            Api::Restate => format!("/item/{item}/{action}"),
        }
    }

    fn success(self) -> &'static [u8] {
        match self {
            Api::Pilot => b"HTTP/1.1 201",
            Api::Restate => b"HTTP/1.1 200",
        }
    }
}

struct Setting {
    api: Api,
    addresses: Vec<String>,
    clients: usize,
    initiator: String,
    approver: String,
    items: Vec<Item>,
}

fn main() -> Result<(), Anything> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [addresses, clients, what, number, rest @ ..] = arguments.as_slice() else {
        return Err("usage: transitions_load ADDRESSES CLIENTS prepare|run NUMBER [restate]".into());
    };
    let api = if rest.first().is_some_and(|api| api == "restate") { Api::Restate } else { Api::Pilot };
    let input = std::io::read_to_string(std::io::stdin())?;
    let mut lines = input.lines();
    let mut token = || lines.next().map(str::to_owned).ok_or("two tokens are needed on standard input");
    let (initiator, approver) = (token()?, token()?);
    let item = |line: &str| {
        line.split_once(' ').map(|(id, digest)| Item { id: id.to_owned(), content_digest: digest.to_owned() })
    };
    let items = lines.filter_map(item).collect();
    let addresses = addresses.split(',').map(str::to_owned).collect();
    let setting = Setting { api, addresses, clients: clients.parse()?, initiator, approver, items };
    let number = number.parse()?;
    // One thread: more would only take from the server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    match what.as_str() {
        "prepare" => runtime.block_on(prepare(&setting, number)),
        "run" => runtime.block_on(run(&setting, number)),
        _ => Err("`prepare` or `run`".into()),
    }
}

async fn prepare(setting: &Setting, items: u64) -> Result<(), Anything> {
    let address = setting.addresses.first().ok_or("an address is needed")?;
    let mut connection = Connection::open(address).await?;
    for number in 0..items {
        let body = format!(
            r#"{{"workflow":"controlled-operation","title":"An operation to measure, {number}","payload":{{"purpose":"Room for the new region","operation":"psql -f grow.sql","risk":"low","rollback_plan":"psql -f shrink.sql"}}}}"#
        );
        let path = match setting.api {
            Api::Pilot => "/v1/items".to_owned(),
            Api::Restate => setting.api.transition(&format!("operation-{number}"), "propose"),
        };
        connection.ask(&post(&path, &setting.initiator, &body), setting.api.success()).await?;
        let made: Value = serde_json::from_slice(connection.body())?;
        let text = |name: &str| made.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if setting.api == Api::Pilot {
            let path = setting.api.transition(&text("id"), "submit");
            let submit = post(&path, &setting.initiator, r#"{"action":"submit"}"#);
            connection.ask(&submit, setting.api.success()).await?;
        }
        println!("{} {}", text("id"), text("content_digest"));
    }
    Ok(())
}

async fn run(setting: &Setting, seconds: u64) -> Result<(), Anything> {
    let per_client = setting.items.len() / setting.clients;
    if per_client == 0 {
        return Err("there are fewer items than clients".into());
    }
    let mut clients = Vec::new();
    let items = setting.items.chunks_exact(per_client).take(setting.clients);
    for (items, address) in items.zip(setting.addresses.iter().cycle()) {
        clients.push(Client::open(address, setting, items).await?);
    }
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    let clients: Vec<_> = clients.into_iter().map(|client| tokio::spawn(client.run(end))).collect();
    let mut micros = Vec::new();
    for client in clients {
        micros.extend(client.await??);
    }
    let seconds = start.elapsed().as_secs_f64();
    micros.sort_unstable();
    let percentile = |percent: usize| micros.get(micros.len() * percent / 100).copied().unwrap_or(0);
    println!("transitions {}\nseconds {seconds:.3}", micros.len());
    println!("p50_micros {}\np99_micros {}", percentile(50), percentile(99));
    Ok(())
}

fn post(path: &str, token: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A connection with the requests it sends, over and over.
struct Client {
    connection: Connection,
    requests: Vec<Vec<u8>>,
    success: &'static [u8],
}

impl Client {
    async fn open(address: &str, setting: &Setting, items: &[Item]) -> Result<Client, Anything> {
        let approve = |item: &Item| format!(r#"{{"action":"approve","content_digest":"{}"}}"#, item.content_digest);
        let revoke = |_: &Item| r#"{"action":"revoke_approval","comment":"One more look at the numbers"}"#.to_owned();
        let request = |item: &Item, action: &str, body: String| {
            post(&setting.api.transition(&item.id, action), &setting.approver, &body)
        };
        let there = items.iter().map(|item| request(item, "approve", approve(item)));
        let back = items.iter().map(|item| request(item, "revoke_approval", revoke(item)));
        let requests = there.chain(back).collect();
        Ok(Client { connection: Connection::open(address).await?, requests, success: setting.api.success() })
    }

    /// Ends with every item as it was found. Gives the time each answer took.
    async fn run(mut self, end: Instant) -> Result<Vec<u64>, Anything> {
        let mut micros = Vec::new();
        while Instant::now() < end {
            for request in &self.requests {
                let asked = Instant::now();
                self.connection.ask(request, self.success).await?;
                micros.push(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
            }
        }
        Ok(micros)
    }
}

struct Connection {
    socket: TcpStream,
    answer: Vec<u8>,
    body_at: usize,
}

impl Connection {
    async fn open(address: &str) -> Result<Connection, Anything> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Connection { socket, answer: Vec::with_capacity(8 * 1024), body_at: 0 })
    }

    fn body(&self) -> &[u8] {
        self.answer.get(self.body_at..).unwrap_or_default()
    }

    async fn ask(&mut self, request: &[u8], expected: &[u8]) -> Result<(), Anything> {
        self.socket.write_all(request).await?;
        self.answer.clear();
        while !self.is_whole() {
            if self.socket.read_buf(&mut self.answer).await? == 0 {
                return Err("the service closed a connection".into());
            }
        }
        if !self.answer.starts_with(expected) {
            return Err(format!("an unexpected answer:\n{}", String::from_utf8_lossy(&self.answer)).into());
        }
        Ok(())
    }

    /// The service writes names of headers in lower case.
    fn is_whole(&mut self) -> bool {
        let Some(end) = memmem::find(&self.answer, b"\r\n\r\n") else { return false };
        let head = self.answer.get(..end).unwrap_or_default();
        let length = memmem::find(head, b"\r\ncontent-length: ").and_then(|at| head.get(at + 18..));
        let digits = length.map(|rest| rest.iter().take_while(|byte| byte.is_ascii_digit()));
        let length = digits.map_or(0, |digits| digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0')));
        self.body_at = end + 4;
        self.answer.len() >= self.body_at + length
    }
}
