//! A client that sends more than anyone wants still learns what was wrong.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::harness::{Installation, PATIENCE, Server, TOKEN, bearer, now};
use crate::support::wire::{HTTP2_HELLO, Wire, frame, headers_frame_before_body};

const BEN: &str = "another-hand-made-token-of-40-bytes-xxxx";
const MIB: usize = 1024 * 1024;
/// Well before a body would be late.
const SOON: Duration = Duration::from_secs(6);

fn server() -> Server {
    Installation::with(&[("ana", "initiator", TOKEN), ("ben", "approver", BEN)]).serve()
}

/// Path, token, and what comes of sending ten times too much there.
const UNWANTED: [(&str, Option<&str>, u16); 5] = [
    ("/v1/items", None, 401),
    ("/v1/items", Some(BEN), 403),
    ("/v1/nothing", Some(TOKEN), 404),
    ("/v1/session", Some(TOKEN), 405),
    ("/v1/items", Some(TOKEN), 413),
];

fn head(path: &str, token: Option<&str>, lines: &str) -> String {
    let credential = token.map(|token| format!("{}\r\n", bearer(token))).unwrap_or_default();
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{credential}Content-Type: application/json\r\n{lines}\r\n\r\n")
}

#[test]
fn a_client_that_sends_all_before_it_reads_gets_its_answer_and_goes_on() {
    let server = server();
    let body = vec![b' '; 10 * MIB];
    for (path, token, expected) in UNWANTED {
        let stream = TcpStream::connect(server.address).unwrap();
        let mut sending = stream.try_clone().unwrap();
        sending.write_all(head(path, token, &format!("Content-Length: {}", body.len())).as_bytes()).unwrap();
        sending.write_all(&body).unwrap_or_else(|error| panic!("{path} {expected}: {error}"));
        let mut wire = Wire::over(stream);
        let answer = wire.response().unwrap();
        assert_eq!((answer.status, answer.header("connection")), (expected, None), "{path}");
        wire.request("GET /v1/session HTTP/1.1", &[&bearer(TOKEN)]);
        assert_eq!(wire.response().unwrap().status, 200, "after {path} {expected}");
    }
}

const PING: u8 = 0x6;
const RESET: u8 = 0x3;

/// Kinds of the frames about stream 1 until the service has read everything sent so far.
fn kinds_until_read(wire: &mut Wire) -> Vec<u8> {
    wire.send(&frame(PING, 0, 0, b"all read"));
    let mut kinds = Vec::new();
    loop {
        match wire.frame().expect("the connection stays").as_slice() {
            [PING, 1, ..] => return kinds,
            [kind, _, 0, 0, 0, 1, ..] => kinds.push(*kind),
            _ => {}
        }
    }
}

#[test]
fn http_2_gives_no_stream_up_before_its_body_has_ended() {
    let server = server();
    for (path, token, expected) in UNWANTED {
        let token = format!("Bearer {}", token.unwrap_or("none"));
        let mut fields = vec![(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "a")];
        fields.extend([("authorization", token.as_str()), ("content-type", "application/json")]);
        // Sent whole, one that is too large would need more than the service's window.
        let is_sent_whole = expected != 413;
        if !is_sent_whole {
            fields.push(("content-length", "1048577"));
        }
        let mut wire = server.wire();
        wire.send(&[HTTP2_HELLO, &headers_frame_before_body(1, &fields), &frame(0, 0, 1, &[b' '; 16_000])].concat());
        for _ in 0..3 {
            let kinds = kinds_until_read(&mut wire);
            assert!(!kinds.contains(&RESET), "{path} {expected}: {kinds:?}");
            wire.send(&frame(0, 0, 1, &[b' '; 100]));
        }
        if !is_sent_whole {
            continue;
        }
        wire.send(&frame(0, 1, 1, b" "));
        assert_eq!(wire.http2_status(), Some(expected.to_string()), "{path}");
        let kinds = kinds_until_read(&mut wire);
        assert!(!kinds.contains(&RESET), "{path} {expected}: {kinds:?}");
    }
}

#[test]
fn a_client_that_asks_first_is_answered_at_once_and_never_told_to_go_on() {
    let server = server();
    for (path, token, expected) in UNWANTED {
        let mut wire = server.wire();
        wire.send(head(path, token, "Expect: 100-continue\r\nContent-Length: 10485760").as_bytes());
        let answer = wire.response().unwrap();
        assert_eq!((answer.status, answer.header("connection")), (expected, Some("close")), "{path}");
        assert!(wire.rest().is_empty());
    }
    // One that is wanted is.
    let mut wire = server.wire();
    wire.send(head("/v1/items", Some(TOKEN), "Expect: 100-continue\r\nContent-Length: 2").as_bytes());
    assert!(wire.is_told_to_go_on());
    wire.send(b"{}");
    assert_eq!(wire.response().unwrap().verdict(), "422 invalid_request");
}

#[test]
fn a_body_too_large_by_its_own_account_is_refused_without_waiting_for_it() {
    let server = server();
    let began = now();
    for length in ["1048577", "10485760", "16777217", "9999999999999"] {
        let mut wire = server.wire();
        wire.send(head("/v1/items", Some(TOKEN), &format!("Content-Length: {length}")).as_bytes());
        let answer = wire.response().unwrap();
        assert_eq!(answer.verdict(), "413 body_too_large", "{length}");
        assert_eq!(answer.header("connection"), Some("close"), "{length}");
        assert!(wire.rest().is_empty());
    }
    assert!(began.elapsed() < 2 * SOON, "{:?}", began.elapsed());
    let mut wire = server.wire();
    wire.send(head("/v1/items", Some(TOKEN), &format!("Content-Length: {}", MIB / 8)).as_bytes());
    wire.send(&vec![b' '; MIB / 8]);
    assert_eq!(wire.response().unwrap().verdict(), "422 invalid_request");
}

#[test]
fn nobody_is_listened_to_without_end() {
    let server = server();
    for again in [&b"1\r\nx\r\n"[..], &[&b"1000\r\n"[..], &[b'x'; 0x1000], b"\r\n"].concat()] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut sending = stream.try_clone().unwrap();
        sending.write_all(head("/v1/items", None, "Transfer-Encoding: chunked").as_bytes()).unwrap();
        let began = now();
        // Until the service has closed: writing fails.
        while sending.write_all(again).is_ok() {
            assert!(began.elapsed() < SOON, "{} bytes at once", again.len());
        }
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 401");
    }
}
