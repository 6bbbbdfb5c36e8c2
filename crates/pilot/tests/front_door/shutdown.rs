//! SIGTERM: nothing new is taken, what was begun is finished, and the program ends with 0.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;

use crate::support::harness::{Installation, PATIENCE, TOKEN, bearer, now};
use crate::support::wire::{Broken, HTTP2_HELLO, Wire, headers_frame};

const CLIENTS: usize = 16;
/// Requests answered before the signal comes.
const WARM: usize = 1_000;

#[derive(Default)]
struct Counts {
    answered: AtomicUsize,
    closed_before_an_answer: AtomicUsize,
}

/// Asks again and again, on a connection for as long as it lasts, until no connection can be had.
fn keep_asking(address: std::net::SocketAddr, counts: &Counts) {
    while let Ok(stream) = TcpStream::connect(address) {
        let mut wire = Wire::over(stream);
        loop {
            wire.request("GET /v1/session HTTP/1.1", &[&bearer(TOKEN)]);
            match wire.try_response(false) {
                Ok(answer) => {
                    assert_eq!(answer.status, 200);
                    counts.answered.fetch_add(1, Ordering::Relaxed);
                    if answer.header("connection") == Some("close") {
                        break;
                    }
                }
                Err(Broken::NoAnswer) => {
                    counts.closed_before_an_answer.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                Err(Broken::Truncated(bytes)) => panic!("truncated: {}", String::from_utf8_lossy(&bytes)),
            }
        }
    }
}

#[test]
fn under_load_every_request_is_answered_whole_or_not_at_all_and_the_end_is_0() {
    let installation = Installation::with_ana();
    let server = installation.serve_with(&["--log-level", "warn"], &[]);
    let counts = Counts::default();
    let address = server.address;
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| keep_asking(address, &counts));
        }
        while counts.answered.load(Ordering::Relaxed) < WARM {
            thread::yield_now();
        }
        let began = now();
        let stopped = server.stop().expect(0);
        println!(
            "{} answers, {} connections closed before an answer, ended {:.2?} after SIGTERM",
            counts.answered.load(Ordering::Relaxed),
            counts.closed_before_an_answer.load(Ordering::Relaxed),
            began.elapsed()
        );
        assert!(began.elapsed().as_secs() <= 30, "beyond the drain deadline");
        assert_eq!(stopped.stdout.lines().count(), 1);
    });
    let again = installation.serve();
    assert_eq!(again.session(TOKEN).status, 200);
    again.stop().expect(0);
}

#[test]
fn a_request_begun_before_the_signal_is_answered_and_readiness_says_no() {
    let installation = Installation::with_ana();
    let server = installation.serve();
    let mut half = server.wire();
    half.send(b"GET /v1/session HTTP/1.1\r\nHost: a\r\n");
    let mut probes: Vec<_> = (0..3).map(|_| server.wire()).collect();
    for probe in &mut probes {
        probe.send(b"GET /readyz HTTP/1.1\r\n");
    }
    let mut idle = server.wire();
    idle.request("GET /readyz HTTP/1.1", &[]);
    assert_eq!(idle.response().unwrap().status, 200);
    // The answer above came after the connections before it were accepted, in their order.
    server.signal(Signal::TERM);
    server.wait_for_log("stopping");
    assert!(idle.rest().is_empty(), "an idle connection is closed at once");
    let began = now();
    while TcpStream::connect(server.address).is_ok() {
        assert!(began.elapsed() < PATIENCE, "the port stays open");
    }
    for mut probe in probes {
        probe.send(b"Host: a\r\n\r\n");
        let answer = probe.response().unwrap();
        assert_eq!(answer.verdict(), "503 unavailable");
        assert!(probe.rest().is_empty());
    }
    half.send(format!("{}\r\n\r\n", bearer(TOKEN)).as_bytes());
    let answer = half.response().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(half.rest().is_empty());
    let ended = server.ends().expect(0);
    ended.says(&["service stopped"]);
}

#[test]
fn a_client_that_never_finishes_its_request_does_not_hold_up_the_end() {
    let server = Installation::with_ana().serve();
    let mut half = server.wire();
    half.send(b"GET /v1/session HTTP/1.1\r\nHost: a\r\n");
    let silent = server.wire();
    assert_eq!(server.session(TOKEN).status, 200);
    let began = now();
    server.stop().expect(0);
    assert!(began.elapsed().as_secs() <= 15, "{:?}", began.elapsed());
    assert!(half.rest().is_empty() && silent.rest().is_empty());
}

#[test]
fn an_idle_http_2_connection_is_told_and_does_not_hold_up_the_end() {
    let server = Installation::with_ana().serve();
    let token = format!("Bearer {TOKEN}");
    let head = [(":method", "GET"), (":scheme", "http"), (":path", "/v1/session"), (":authority", "a")];
    let mut idle = server.wire();
    idle.send(&[HTTP2_HELLO, &headers_frame(1, &[&head[..], &[("authorization", &token)]].concat())].concat());
    assert_eq!(idle.http2_status(), Some("200".into()));
    let began = now();
    server.stop().expect(0);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    let kinds: Vec<_> = std::iter::from_fn(|| idle.frame()).map(|frame| frame[0]).collect();
    assert!(kinds.contains(&0x7), "no GOAWAY: {kinds:?}");
}

#[test]
fn interrupt_ends_the_service_as_terminate_does_and_a_second_signal_does_no_harm() {
    let installation = Installation::with_ana();
    let server = installation.serve();
    server.signal(Signal::INT);
    server.ends().expect(0);
    let server = installation.serve();
    for _ in 0..5 {
        server.signal(Signal::TERM);
    }
    server.ends().expect(0);
}
