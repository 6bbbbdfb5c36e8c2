//! The feed of entries, in pages and live: whoever is cut off goes on where it stopped.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use pilot_ledger::clock::Clock;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api::clock::add_refusals;
use crate::support::harness::{PATIENCE, Server, bearer, now};
use crate::support::team::{payload, person, team, token};

const CUTS: usize = 100;

/// A live feed over HTTP/1.1, decoded from its chunks.
struct Feed {
    stream: TcpStream,
    raw: Vec<u8>,
    text: Vec<u8>,
    has_head: bool,
    left_of_chunk: usize,
    /// From the second chunk on, the end of the one before comes first.
    text_begun: bool,
    /// The chunk that says that nothing more will come.
    ended: bool,
}

#[derive(Debug, PartialEq)]
struct Event {
    id: u64,
    kind: String,
    data: Value,
}

impl Feed {
    fn open(server: &Server, who: &str, last: Option<u64>) -> Feed {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let resume = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        let authorization = bearer(&token(who));
        let accept = "Accept: text/event-stream";
        let head = format!("GET /v1/events HTTP/1.1\r\nHost: a\r\n{authorization}\r\n{accept}\r\n{resume}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        Feed {
            stream,
            raw: Vec::new(),
            text: Vec::new(),
            has_head: false,
            left_of_chunk: 0,
            text_begun: false,
            ended: false,
        }
    }

    /// Reads at most so many bytes more; none when there will be none.
    fn read(&mut self, most: usize) -> usize {
        let mut buffer = vec![0; most];
        let length = self.stream.read(&mut buffer).unwrap_or(0);
        self.raw.extend_from_slice(&buffer[..length]);
        if !self.has_head
            && let Some(end) = find(&self.raw, b"\r\n\r\n")
        {
            let head = String::from_utf8(self.raw.drain(..end + 4).collect()).unwrap().to_lowercase();
            assert!(head.starts_with("http/1.1 200"), "{head}");
            for header in ["content-type: text/event-stream\r\n", "cache-control: no-store", "x-accel-buffering: no"] {
                assert!(head.contains(header), "{header}: {head}");
            }
            self.has_head = true;
        }
        while self.has_head && self.take_chunk() {}
        length
    }

    /// Takes over what has arrived of a chunk, which may be a part of it.
    fn take_chunk(&mut self) -> bool {
        if self.left_of_chunk == 0 {
            let begins = if self.text_begun { 2 } else { 0 };
            let Some(line) = self.raw.get(begins..).and_then(|rest| find(rest, b"\r\n")) else { return false };
            let size = std::str::from_utf8(&self.raw[begins..begins + line]).unwrap();
            self.left_of_chunk = usize::from_str_radix(size, 16).unwrap();
            self.raw.drain(..begins + line + 2);
            self.text_begun = true;
            self.ended = self.left_of_chunk == 0;
            return !self.ended;
        }
        let part = self.left_of_chunk.min(self.raw.len());
        self.text.extend(self.raw.drain(..part));
        self.left_of_chunk -= part;
        part > 0
    }

    /// The events that have arrived whole.
    fn take(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(end) = find(&self.text, b"\n\n") {
            let block = String::from_utf8(self.text.drain(..end + 2).collect()).unwrap();
            events.extend(parse(&block));
        }
        events
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// A block of lines; none when it is a comment.
fn parse(block: &str) -> Option<Event> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let id = field("id")?.parse().unwrap();
    Some(Event { id, kind: field("event")?.to_owned(), data: serde_json::from_str(field("data")?).unwrap() })
}

/// Everything from `after` on, in pages.
fn pages(server: &Server, who: &str, limit: u64) -> Vec<Value> {
    let (mut person, mut after, mut all) = (person(server, who), String::new(), Vec::new());
    loop {
        let page = person.get(&format!("/v1/events?limit={limit}{after}")).json();
        let events = page["events"].as_array().unwrap();
        all.extend(events.iter().cloned());
        let next = page["next_after"].as_u64().unwrap();
        let unchanged = after == format!("&after={next}");
        after = format!("&after={next}");
        if unchanged {
            return all;
        }
    }
}

#[test]
fn pages_of_any_size_give_every_entry_once_in_order() {
    let server = team().serve();
    let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
    for _ in 0..30 {
        person(&server, "ben").post(&format!("/v1/items/{id}/comments"), &json!({"text": "c"}));
        assert_eq!(person(&server, "ana").get(&format!("/v1/items?q={}", token("eva"))).status, 400);
    }
    for limit in [1, 7, 200] {
        let all = pages(&server, "ada", limit);
        let indices: Vec<_> = all.iter().map(|entry| entry["index"].as_u64().unwrap()).collect();
        assert!(indices.iter().copied().eq(0..indices.len() as u64), "{indices:?}");
        let seen = pages(&server, "ana", limit);
        assert_eq!(seen.len(), 31, "a page of nothing but hidden entries is no end");
    }
    let last = person(&server, "ada").get("/v1/events?after=5000").json();
    assert_eq!(last, json!({"events": [], "next_after": 5000}));
}

#[test]
fn a_reader_that_is_cut_off_100_times_sees_every_entry_once_and_in_order() {
    let server = team().serve_with(&["--log-level", "warn"], &[]);
    let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
    let finished = AtomicBool::new(false);
    let (mut seen, mut cuts) = (Vec::<Event>::new(), 0);
    thread::scope(|scope| {
        for name in ["ana", "ben", "sol", "eli"] {
            let (id, finished) = (&id, &finished);
            let mut writer = person(&server, name);
            scope.spawn(move || {
                while !finished.load(Ordering::Relaxed) {
                    let answer = writer.post(&format!("/v1/items/{id}/comments"), &json!({"text": "still here"}));
                    assert_eq!(answer.status, 201);
                }
            });
        }
        while cuts < CUTS {
            // The head has some 300 bytes, an entry 450: cut in the head, between entries and in the middle of one.
            let mut left = (cuts * 311) % 3_000 + 1;
            let mut feed = Feed::open(&server, "ada", seen.last().map(|event| event.id));
            while left > 0 {
                let read = feed.read(left.min(64));
                assert!(read > 0, "the server ended the feed");
                left -= read;
            }
            seen.extend(feed.take());
            cuts += 1;
        }
        finished.store(true, Ordering::Relaxed);
    });
    let all = pages(&server, "ada", 200);
    let mut feed = Feed::open(&server, "ada", seen.last().map(|event| event.id));
    while seen.len() < all.len() {
        assert!(feed.read(4096) > 0);
        seen.extend(feed.take());
    }
    println!("{cuts} cuts, {} entries", seen.len());
    assert_eq!(seen.len(), all.len());
    for (index, (event, entry)) in seen.iter().zip(&all).enumerate() {
        assert_eq!((event.id, &event.data), (index as u64, entry), "each once, in order, as in the pages");
        assert_eq!(event.data["type"], event.kind);
    }
}

#[test]
fn a_feed_hides_what_the_role_may_not_see_and_begins_where_it_is_told() {
    let server = team().serve();
    let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
    server.get(&format!("/v1/items?q={}", token("ben")), &[]);
    person(&server, "ana").must(&id, &json!({"action": "submit"}));
    let first = |who: &str, last: Option<u64>, wanted: usize| {
        let mut feed = Feed::open(&server, who, last);
        let mut events = Vec::new();
        while events.len() < wanted {
            assert!(feed.read(4096) > 0);
            events.extend(feed.take());
        }
        events.into_iter().map(|event| format!("{} {}", event.id, event.kind)).collect::<Vec<_>>()
    };
    assert_eq!(first("ana", None, 2), ["1 item.created", "3 item.transition"]);
    assert_eq!(first("ana", Some(1), 1), ["3 item.transition"]);
    let all = ["0 service.started", "1 item.created", "2 access.token_exposed", "3 item.transition"];
    assert_eq!(first("sol", None, 4), all);
    assert_eq!(first("ada", Some(0), 3), all[1..]);
    for wrong in ["x", "-1", "", "9007199254740992"] {
        let header = format!("Last-Event-ID: {wrong}");
        let answer = person(&server, "ana").call("GET /v1/events", &["Accept: text/event-stream", &header], b"");
        assert_eq!(answer.verdict(), "422 invalid_request", "{wrong}");
    }
    // Who does not ask for a feed gets a page.
    for accept in ["*/*", "application/json", "text/event-stream;q=0", "text/event-streams"] {
        let answer = person(&server, "ana").call("GET /v1/events", &[&format!("Accept: {accept}")], b"");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{accept}");
    }
}

#[test]
fn a_feed_ends_cleanly_when_the_service_stops() {
    let server = team().serve();
    let mut feeds: Vec<_> = (0..5).map(|_| Feed::open(&server, "ada", None)).collect();
    for feed in &mut feeds {
        while feed.take().is_empty() {
            assert!(feed.read(4096) > 0);
        }
    }
    let began = now();
    server.signal(Signal::TERM);
    for feed in &mut feeds {
        while !feed.ended && feed.read(4096) > 0 {}
        assert!(feed.ended, "ended by its last chunk, not by a reset");
    }
    server.ends().expect(0);
    println!("ended {:.2?} after SIGTERM", began.elapsed());
    assert!(began.elapsed().as_secs() < 10);
}

#[test]
fn a_feed_over_http_2_goes_on_beside_other_requests_of_its_connection() {
    let server = team().serve();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = |path: &str, accept: &str| {
            http::Request::get(format!("{}{path}", server.url()))
                .header("authorization", format!("Bearer {}", token("ada")))
                .header("accept", accept)
                .body(Empty::<Bytes>::new())
                .unwrap()
        };
        let mut feed = sender.send_request(request("/v1/events", "text/event-stream")).await.unwrap();
        assert_eq!(feed.status(), 200);
        let (mut text, mut seen) = (String::new(), 0_u64);
        for round in 0..20_u64 {
            let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
            let answer = sender.send_request(request(&format!("/v1/items/{id}"), "*/*")).await.unwrap();
            assert_eq!(answer.status(), 200);
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["id"], *id);
            while seen < round + 2 {
                let frame = feed.frame().await.unwrap().unwrap();
                text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
                while let Some((block, rest)) = text.split_once("\n\n") {
                    if let Some(event) = parse(block) {
                        assert_eq!(event.id, seen);
                        seen += 1;
                    }
                    text = rest.to_owned();
                }
            }
        }
    });
}

#[test]
fn readers_that_stop_reading_do_not_hold_up_anyone_else() {
    let server = team().serve_with(&["--log-level", "warn"], &[]);
    let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
    let stalled: Vec<_> = (0..50).map(|_| Feed::open(&server, "ada", None)).collect();
    let mut attentive = Feed::open(&server, "ada", None);
    thread::scope(|scope| {
        for _ in 0..8 {
            let (id, mut ben) = (&id, person(&server, "ben"));
            scope.spawn(move || {
                for _ in 0..100 {
                    assert_eq!(ben.post(&format!("/v1/items/{id}/comments"), &json!({"text": "c"})).status, 201);
                }
            });
        }
        let mut seen = Vec::new();
        while seen.len() < 802 {
            assert!(attentive.read(64 * 1024) > 0);
            seen.extend(attentive.take());
        }
        assert!(seen.iter().map(|event| event.id).eq(0..802));
    });
    drop(stalled);
    assert_eq!(person(&server, "ana").get("/v1/session").status, 200);
}

#[test]
fn a_page_goes_on_past_what_the_caller_may_not_see() {
    let installation = team();
    let server = installation.serve();
    let first = person(&server, "ana").creates("controlled-operation", &payload("low"));
    server.stop().expect(0);
    add_refusals(&installation, Clock::System.now(), 450);
    let server = installation.serve();
    let second = person(&server, "ana").creates("controlled-operation", &payload("low"));
    let mut ben = person(&server, "ben");
    let mut whole = |limit: usize| {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = ben.get(&format!("/v1/events?limit={limit}{after}")).json();
            let events = page["events"].as_array().unwrap().clone();
            assert!(events.len() <= limit);
            if events.is_empty() {
                return seen;
            }
            seen.extend(events);
            after = format!("&after={}", page["next_after"]);
        }
    };
    let one_by_one = whole(1);
    let items: Vec<_> = one_by_one.iter().filter_map(|event| event["item"].as_str()).collect();
    assert_eq!(items, [first, second], "an empty page would have been taken for the end");
    assert!(one_by_one.iter().all(|event| event["type"] != "access.refused"));
    for limit in [2, 3, 200] {
        assert_eq!(whole(limit), one_by_one, "pages of {limit}");
    }
    let all = person(&server, "ada").get("/v1/events?limit=200").json();
    assert_eq!((all["events"].as_array().unwrap().len(), &all["next_after"]), (200, &json!(199)));
}

#[test]
fn a_page_looks_at_ten_thousand_entries_and_then_says_how_far_it_came() {
    let installation = team();
    installation.serve().stop().expect(0);
    add_refusals(&installation, Clock::System.now(), 10_300);
    let server = installation.serve();
    let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
    let mut ben = person(&server, "ben");
    let page = ben.get("/v1/events?limit=1").json();
    assert_eq!((&page["events"], &page["next_after"]), (&json!([]), &json!(9_999)));
    let page = ben.get("/v1/events?limit=1&after=9999").json();
    assert_eq!(page["events"][0]["item"], json!(id), "{page}");
}
