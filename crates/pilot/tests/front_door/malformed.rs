//! What cannot be read as a request, or can be read in two ways, is refused with a whole answer.

use serde_json::json;

use crate::support::harness::{Installation, Server, TOKEN, bearer};
use crate::support::wire::Response;

/// Status, code and detail; and everything every answer has.
#[track_caller]
fn check(server: &Server, request: &[u8], status: u16, detail: &str) {
    let shown = String::from_utf8_lossy(request).chars().take(200).collect::<String>();
    let mut wire = server.wire();
    wire.send(request);
    let answer = wire.response().unwrap_or_else(|| panic!("no answer to {shown:?}"));
    check_answer(&answer, status, detail, &shown);
    assert!(wire.rest().is_empty(), "closed after the answer: {shown:?}");
}

#[track_caller]
fn check_answer(answer: &Response, status: u16, detail: &str, shown: &str) {
    assert_eq!(answer.verdict(), format!("{status} invalid_request"), "{shown:?}");
    let problem = answer.json();
    assert!(problem["detail"].as_str().unwrap().contains(detail), "{shown:?}: {problem}");
    assert_eq!(problem["status"], json!(status), "{shown:?}");
    assert_eq!(problem["request_id"].as_str(), answer.header("x-request-id"), "{shown:?}");
    assert!(problem["type"].is_string() && problem["title"].is_string(), "{shown:?}");
    for (name, value) in [
        ("content-type", "application/problem+json"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("connection", "close"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name} of the answer to {shown:?}");
    }
    assert!(answer.header("date").is_some(), "{shown:?}");
}

/// These header lines after a good request line and a good credential.
fn with(lines: &[&str]) -> Vec<u8> {
    format!("POST /v1/items HTTP/1.1\r\nHost: a\r\n{}\r\n{}\r\n\r\n", bearer(TOKEN), lines.join("\r\n")).into_bytes()
}

const UNREADABLE: &str = "not a valid HTTP/1.1 request";

#[test]
fn what_is_no_request_is_refused_with_a_problem() {
    let server = Installation::with_ana().serve();
    for request in [
        &b"GET /v1/session\r\n\r\n"[..],
        b"G\0T /v1/session HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /v1/session HTTP/1.2\r\nHost: a\r\n\r\n",
        b"GET /v1/session FTP/1.1\r\nHost: a\r\n\r\n",
        b"GET  /v1/session HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET v1/session HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /v1/session HTTP/1.1\rHost: a\r\n\r\n",
        b"POST /v1/session HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        check(&server, request, 400, UNREADABLE);
    }
    for lines in [
        &["NoColon"][..],
        &[": empty"],
        &["X : y"],
        &["X: a", " folded"],
        &["X: a\0b"],
        &["X: a\rb"],
        &["Transfer-Encoding: identity"],
        &["Transfer-Encoding: xchunked"],
        &["Transfer-Encoding:"],
    ] {
        check(&server, &with(lines), 400, UNREADABLE);
    }
    for length in ["", "+4", "-1", "0x4", "4, 4", "4 4", "99999999999999999999"] {
        check(&server, &with(&[&format!("Content-Length: {length}")]), 400, "not a number of bytes");
    }
    assert_eq!(server.session(TOKEN).status, 200);
}

#[test]
fn what_is_far_too_large_is_refused_with_a_problem() {
    let server = Installation::with_ana().serve();
    check(&server, &with(&["X: y"; 99]), 431, "64 fields");
    check(&server, &with(&["X: y"; 500]), 431, "64 fields");
    check(&server, &with(&[&format!("X: {}", "y".repeat(40 * 1024))]), 431, "16 KiB");
    let url = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(100 * 1024));
    check(&server, url.as_bytes(), 414, "8 KiB");
}

#[test]
fn a_body_has_one_length_stated_once() {
    let server = Installation::with_ana().serve();
    let (twice, both) = ("more than one Content-Length", "both Content-Length and Transfer-Encoding");
    check(&server, &with(&["Content-Length: 0", "Content-Length: 0"]), 400, twice);
    check(&server, &with(&["Content-Length: 4", "X: y", "content-length:4"]), 400, twice);
    check(&server, &with(&["Content-Length: 4", "Content-Length: 5"]), 400, twice);
    check(&server, &with(&["Content-Length: 5", "Transfer-Encoding: chunked"]), 400, both);
    check(&server, &with(&["transfer-encoding: chunked", "CONTENT-LENGTH: 0"]), 400, both);
}

#[test]
fn requests_before_one_at_fault_are_answered_and_none_after_it() {
    let server = Installation::with_ana().serve();
    let good = format!("GET /v1/session HTTP/1.1\r\nHost: a\r\n{}\r\n", bearer(TOKEN));
    let length = format!("{good}Content-Length: 4\r\n\r\nbody");
    let chunks = format!("{good}Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n");
    let plain = format!("{good}\r\n");
    for at_fault in [with(&["Content-Length: 0", "Content-Length: 0"]), b"GET /v1/session HTTP/9\r\n\r\n".to_vec()] {
        let mut wire = server.wire();
        wire.send(&[plain.as_bytes(), length.as_bytes(), chunks.as_bytes(), &at_fault, plain.as_bytes()].concat());
        for _ in 0..3 {
            assert_eq!(wire.response().unwrap().status, 200);
        }
        check_answer(&wire.response().unwrap(), 400, "", "the fourth");
        assert!(wire.rest().is_empty());
    }
}

#[test]
fn no_trailer_hides_the_head_behind_it() {
    let server = Installation::with_ana().serve();
    let good = format!("GET /v1/session HTTP/1.1\r\nHost: a\r\n{}\r\n", bearer(TOKEN));
    let twice = format!("{good}Content-Length: 0\r\nContent-Length: 0\r\n\r\n");
    for trailer in ["", "X: y\r\n", "X: y\n\r\nZ: 1\r\n", "X: y\n\n\r\n", "\n\r\n", "X: y\n\nGET / HTTP/1.1\r\n"] {
        let mut wire = server.wire();
        wire.send(format!("{good}Transfer-Encoding: chunked\r\n\r\n0\r\n{trailer}\r\n{twice}").as_bytes());
        let answers = String::from_utf8(wire.rest()).unwrap();
        assert!(answers.matches("HTTP/1.1 200").count() <= 1, "{trailer:?}: {answers}");
    }
}

#[test]
fn lines_in_a_body_are_no_headers() {
    let server = Installation::with_ana().serve();
    let body = "\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
    let length = body.len();
    let mut wire = server.wire();
    for _ in 0..2 {
        let head = format!("GET /v1/session HTTP/1.1\r\nHost: a\r\n{}\r\nContent-Length: {length}", bearer(TOKEN));
        wire.send(format!("{head}\r\n\r\n{body}").as_bytes());
        assert_eq!(wire.response().unwrap().status, 200);
    }
}

#[test]
fn a_refused_message_is_counted_and_logged_without_a_word_of_it() {
    let installation = Installation::with_ana();
    let server = installation.serve();
    check(&server, b"GET /secret-path HTTP/1.2\r\nHost: secret-host\r\n\r\n", 400, UNREADABLE);
    let log = server.stop().expect(0).stderr;
    assert!(log.lines().any(|line| line.contains("request answered") && line.contains("\"status\": 400")), "{log}");
    assert!(!log.contains("secret"), "{log}");
}
