//! Clients that keep the service waiting: they are let go, and nobody else notices.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::harness::{Installation, TOKEN, bearer, now};
use crate::support::wire::{HTTP2_HELLO, frame, headers_frame_before_body};

const SLOW: usize = 2_000;
/// First byte, headers, and the service's own precision, with room for a busy machine.
const GONE_WITHIN: Duration = Duration::from_secs(15);

/// What a slow client sends at once, and what it sends again every second.
struct Habit {
    name: &'static str,
    first: Vec<u8>,
    again: Vec<u8>,
}

fn habits() -> Vec<Habit> {
    let habit = |name, first: &[u8], again: &[u8]| Habit { name, first: first.to_owned(), again: again.to_owned() };
    let ping = frame(0x6, 0, 0, b"12345678");
    let half_headers = [HTTP2_HELLO, &frame(0x1, 0, 1, b"\x82")].concat();
    vec![
        habit("silent", b"", b""),
        habit("one byte of a header a second", b"GET /v1/session HTTP/1.1\r\nX: ", b"y"),
        habit("one header a second", b"GET /v1/session HTTP/1.1\r\n", b"X: y\r\n"),
        habit("half a header", b"GET /v1/session HTTP/1.1\r\nHost: a\r\nAuthoriz", b""),
        habit("empty lines", b"\r\n", b"\r\n"),
        habit("half an HTTP/2 preface", &HTTP2_HELLO[..10], b""),
        habit("HTTP/2 without a request", HTTP2_HELLO, b""),
        habit("HTTP/2 that pings", HTTP2_HELLO, &ping),
        habit("half of HTTP/2 headers", &half_headers, &frame(0x9, 0, 1, b"")),
        habit(
            "one byte of a body a second",
            b"POST /v1/session HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n",
            b"b",
        ),
    ]
}

/// Connects, keeps to its habit, and returns how long the server let it.
async fn be_slow(address: SocketAddr, first: Vec<u8>, again: Vec<u8>) -> Duration {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let began = now();
    let _ = stream.write_all(&first).await;
    let mut every_second = tokio::time::interval(Duration::from_secs(1));
    every_second.tick().await;
    let mut buffer = [0; 1024];
    loop {
        tokio::select! {
            read = stream.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return began.elapsed(),
                Ok(_) => {}
            },
            _ = every_second.tick() => {
                if began.elapsed() > 3 * GONE_WITHIN {
                    return began.elapsed();
                }
                let _ = stream.write_all(&again).await;
            }
        }
    }
}

/// A request on a connection of its own.
async fn be_quick(address: SocketAddr) -> Duration {
    let began = now();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /v1/session HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{}\r\n\r\n", bearer(TOKEN));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    began.elapsed()
}

fn allow_open_files(count: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < count) {
        assert!(maximum.is_none_or(|maximum| maximum >= count), "this test needs {count} open files: ulimit -Hn");
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    }
}

#[test]
fn two_thousand_slow_clients_are_let_go_while_others_are_served() {
    allow_open_files(SLOW as u64 + 500);
    let server = Installation::with_ana().serve();
    let habits = habits();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = server.address;
    runtime.block_on(async {
        let mut slow = JoinSet::new();
        for index in 0..SLOW {
            let habit = index % habits.len();
            let (first, again) = (habits[habit].first.clone(), habits[habit].again.clone());
            slow.spawn(async move { (habit, be_slow(address, first, again).await) });
            if index % 200 == 199 {
                // Served after those before it were accepted: a queue that runs over in the kernel is no test of ours.
                be_quick(address).await;
            }
        }
        let mut longest = vec![Duration::ZERO; habits.len()];
        let mut times = Vec::new();
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        // For as long as there is a slow client, a quick one is served.
        while !slow.is_empty() {
            tokio::select! {
                Some(ended) = slow.join_next() => {
                    let (habit, lasted) = ended.unwrap();
                    longest[habit] = longest[habit].max(lasted);
                }
                _ = pace.tick() => times.push(be_quick(address).await),
            }
        }
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        println!(
            "{SLOW} slow clients; beside them {} answers 200: median {:.1?}, p99 {:.1?}",
            times.len(),
            at(50),
            at(99)
        );
        for (habit, longest) in habits.iter().zip(&longest) {
            println!("{:<32} gone after at most {longest:.1?}", habit.name);
        }
        for (habit, longest) in habits.iter().zip(&longest) {
            assert!(*longest <= GONE_WITHIN, "{}: {longest:.1?}", habit.name);
        }
    });
    assert_eq!(server.session(TOKEN).status, 200);
}

#[test]
fn a_body_that_trickles_ends_its_connection_within_30_s() {
    let server = Installation::with_ana().serve();
    let token = format!("Bearer {TOKEN}");
    let fields = [(":method", "POST"), (":scheme", "http"), (":path", "/v1/items"), (":authority", "a")];
    let fields = [&fields[..], &[("authorization", &token), ("content-type", "application/json")]].concat();
    let head = format!("POST /v1/items HTTP/1.1\r\nHost: a\r\n{}\r\nContent-Type: application/json\r\n", bearer(TOKEN));
    let habits = [
        (format!("{head}Content-Length: 999\r\n\r\n").into_bytes(), b" ".to_vec()),
        ([HTTP2_HELLO, &headers_frame_before_body(1, &fields)].concat(), frame(0, 0, 1, b" ")),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut slow = JoinSet::new();
        for (first, again) in habits {
            slow.spawn(be_slow(server.address, first, again));
        }
        while let Some(lasted) = slow.join_next().await {
            let lasted = lasted.unwrap();
            assert!((15..=30).contains(&lasted.as_secs()), "{lasted:?}");
        }
    });
}

#[test]
fn an_idle_connection_is_kept_for_longer_than_a_slow_one() {
    let server = Installation::with_ana().serve();
    let mut wire = server.wire();
    for _ in 0..2 {
        wire.request("GET /v1/session HTTP/1.1", &[&bearer(TOKEN)]);
        assert_eq!(wire.response().unwrap().status, 200);
        assert!(wire.is_left_alone_for(Duration::from_secs(7)), "closed while idle");
    }
    wire.request("GET /v1/session HTTP/1.1", &[&bearer(TOKEN)]);
    assert_eq!(wire.response().unwrap().status, 200);
}

#[test]
fn the_second_request_of_a_connection_has_the_same_deadline_as_the_first() {
    let server = Installation::with_ana().serve();
    let mut wire = server.wire();
    wire.request("GET /v1/session HTTP/1.1", &[&bearer(TOKEN)]);
    assert_eq!(wire.response().unwrap().status, 200);
    let began = now();
    wire.send(b"GET /v1/session HTT");
    assert!(wire.rest().is_empty());
    assert!(began.elapsed() <= GONE_WITHIN, "{:?}", began.elapsed());
}

#[test]
fn a_service_that_may_open_few_files_outlives_more_clients_than_it_has_room_for() {
    let installation = Installation::with_ana();
    let mut command = Command::new("sh");
    // 64 files are kept for the store and the log, so 16 connections have room.
    command.args(["-c", "ulimit -n 80; exec \"$0\" serve", env!("CARGO_BIN_EXE_pilot")]);
    let server = installation.start(installation.prepare(command));
    let crowd: Vec<_> = (0..32).map(|_| server.wire()).collect();
    // Waits its turn behind clients that never say a word, and is served when they are let go.
    let began = now();
    assert_eq!(server.session(TOKEN).status, 200);
    println!("served {:.1?} after 32 silent clients came to 16 places", began.elapsed());
    drop(crowd);
    let log = server.stop().expect(0);
    assert!(!log.stderr.contains("could not be accepted"), "{}", log.stderr);
}

#[test]
fn a_client_that_reads_no_answers_is_not_read_from_without_end() {
    let server = Installation::with_ana().serve();
    let stream = std::net::TcpStream::connect(server.address).unwrap();
    // Until the service takes no more for two seconds: its memory for one client is bounded.
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let request = format!("GET /v1/session HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n", bearer(TOKEN)).repeat(100);
    let mut sent = 0;
    while let Ok(bytes) = std::io::Write::write(&mut &stream, request.as_bytes()) {
        sent += bytes;
        assert!(sent < 256 * 1024 * 1024, "{sent} bytes were taken, and no end");
    }
    println!("a client that reads nothing was read from for {} KiB", sent / 1024);
    assert_eq!(server.session(TOKEN).status, 200);
}
