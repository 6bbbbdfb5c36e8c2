//! A receiver of webhooks that does what the test wants, and keeps everything that arrives.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::harness::PATIENCE;

/// What happens to one delivery. Without any, it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Status(u16),
    /// To this path of the same receiver.
    Redirect(&'static str),
    /// Until the sender gives up.
    Hang,
    /// Accepts it after this long.
    Late(Duration),
    /// Accepts it, and says so with more than anyone wants to read.
    Talk,
}

#[derive(Debug, Clone)]
pub struct Arrived {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    pub is_accepted: bool,
}

impl Arrived {
    pub fn event(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn index(&self) -> u64 {
        self.event()["id"].as_str().unwrap().parse().unwrap()
    }
}

#[derive(Default)]
struct Kept {
    arrived: Mutex<Vec<Arrived>>,
    moods: Mutex<VecDeque<Mood>>,
    grown: Condvar,
}

pub struct Receiver {
    pub address: SocketAddr,
    kept: Arc<Kept>,
}

impl Receiver {
    pub fn start() -> Receiver {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (address, kept) = (listener.local_addr().unwrap(), Arc::new(Kept::default()));
        let shared = Arc::clone(&kept);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let kept = Arc::clone(&shared);
                thread::spawn(move || answer(&kept, stream.unwrap()));
            }
        });
        Receiver { address, kept }
    }

    /// The next deliveries are treated like this, one after the other.
    pub fn will(&self, moods: &[Mood]) {
        self.kept.moods.lock().unwrap().extend(moods);
    }

    pub fn arrived(&self) -> Vec<Arrived> {
        self.kept.arrived.lock().unwrap().clone()
    }

    pub fn indices(&self) -> Vec<u64> {
        self.arrived().iter().map(Arrived::index).collect()
    }

    /// Waits until it is so.
    #[track_caller]
    pub fn until(&self, what: &str, is_so: impl Fn(&[Arrived]) -> bool) {
        let arrived = self.kept.arrived.lock().unwrap();
        let (arrived, timeout) =
            self.kept.grown.wait_timeout_while(arrived, PATIENCE, |arrived| !is_so(arrived)).unwrap();
        assert!(!timeout.timed_out(), "never: {what}; {} arrived", arrived.len());
    }

    #[track_caller]
    pub fn until_accepted(&self, index: u64) {
        self.until(&format!("entry {index} is accepted"), |arrived| {
            arrived.iter().any(|arrived| arrived.is_accepted && arrived.index() == index)
        });
    }
}

fn answer(kept: &Kept, mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut headers) = (String::new(), BTreeMap::new());
    // A service that was killed leaves half a request.
    if !reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        return;
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        line.clear();
        if reader.read_line(&mut line).is_err() || line.len() <= 2 {
            break;
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap();
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length").map_or(0, |length| length.parse().unwrap())];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let mood = kept.moods.lock().unwrap().pop_front().unwrap_or(Mood::Status(204));
    let is_accepted = matches!(mood, Mood::Status(200..300) | Mood::Late(_) | Mood::Talk);
    kept.arrived.lock().unwrap().push(Arrived { path, headers, body, is_accepted });
    kept.grown.notify_all();
    let head = |status: &str, more: &str| format!("HTTP/1.1 {status} x\r\n{more}Connection: close\r\n\r\n");
    let _ = match mood {
        Mood::Status(204) => stream.write_all(head("204", "").as_bytes()),
        Mood::Status(status) => stream.write_all(head(&status.to_string(), "Content-Length: 0\r\n").as_bytes()),
        Mood::Redirect(path) => {
            let more = format!("Location: {path}\r\nContent-Length: 0\r\n");
            stream.write_all(head("302", &more).as_bytes())
        }
        Mood::Hang => reader.read(&mut [0]).map(drop),
        Mood::Late(pause) => {
            thread::sleep(pause);
            stream.write_all(head("200", "Content-Length: 0\r\n").as_bytes())
        }
        Mood::Talk => {
            let _ = stream.write_all(head("200", "Content-Length: 1000000000\r\n").as_bytes());
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
            Ok(())
        }
    };
}
