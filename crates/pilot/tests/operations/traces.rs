//! Spans of requests, as a collector receives them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::Value;

use crate::support::harness::{Installation, PATIENCE, Port, bearer, now};
use crate::support::team::{team, token};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// A collector that keeps what it gets, and answers with this status.
fn collector(status: &'static str) -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver): (Sender<Value>, _) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let header = line.to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
            let _ = stream.write_all(answer.as_bytes());
            if sender.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (address, receiver)
}

fn configure(installation: &Installation, ops: &Port, more: &str) {
    let ops = ops.address();
    installation.write("pilot.toml", &format!("listen = '127.0.0.1:0'\n[ops]\nlisten = '{ops}'\n[traces]\n{more}\n"));
}

/// The spans of what arrives, until there are this many.
fn spans(received: &Receiver<Value>, count: usize) -> Vec<Value> {
    let mut spans = Vec::new();
    while spans.len() < count {
        let batch = received.recv_timeout(PATIENCE).expect("a batch");
        let resource = batch["resourceSpans"][0]["resource"]["attributes"].to_string();
        assert!(resource.contains(r#"{"key":"service.name","value":{"stringValue":"pilot"}}"#), "{resource}");
        spans.extend(batch["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    }
    spans
}

fn attribute<'s>(span: &'s Value, key: &str) -> Option<&'s str> {
    let found = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key)?;
    found["value"]["stringValue"].as_str().or(found["value"]["intValue"].as_str())
}

#[test]
fn each_request_is_a_span_in_the_trace_of_a_known_caller_and_says_nothing_about_people() {
    let (installation, ops) = (team(), Port::reserve());
    let (address, received) = collector("200 OK");
    configure(&installation, &ops, &format!("url = 'http://{address}/v1/traces'"));
    let server = installation.serve();
    let traced = format!("traceparent: 00-{TRACE}-{SPAN}-01");
    let unsampled = format!("traceparent: 00-{TRACE}-{SPAN}-00");
    assert_eq!(server.get("/v1/session", &[&bearer(&token("ana")), &traced]).status, 200);
    assert_eq!(server.get("/v1/session", &[&bearer(&token("ana")), &unsampled]).status, 200);
    assert_eq!(server.get("/v1/items/018f6d2c-aaaa-7bbb-8ccc-000000000000", &[&bearer(&token("ada"))]).status, 404);
    let refused = server.get("/v1/session", &[&bearer("nobody-has-this-token-nobody-has-it"), &traced]);
    assert_eq!(refused.status, 401);
    assert_eq!(server.get("/healthz", &[]).status, 200);
    let spans = spans(&received, 3);
    let shown = |span: &Value| {
        let get = |key| attribute(span, key).unwrap_or("-").to_owned();
        let name = span["name"].as_str().unwrap();
        format!("{name} {} {} {}", get("pilot.operation"), get("pilot.role"), get("http.response.status_code"))
    };
    assert_eq!(
        spans.iter().map(shown).collect::<Vec<_>>(),
        ["GET /v1/session get_session initiator 200", "GET /v1/items/{id} get_item auditor 404", "GET - - 401",]
    );
    assert_eq!((&spans[0]["traceId"], &spans[0]["parentSpanId"]), (&TRACE.into(), &SPAN.into()));
    for others in &spans[1..] {
        assert_ne!(others["traceId"], TRACE, "an outsider decides nothing, and a new trace is a new one");
        assert!(others.get("parentSpanId").is_none());
    }
    let number = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    for span in &spans {
        assert_eq!((span["traceId"].as_str().unwrap().len(), span["spanId"].as_str().unwrap().len()), (32, 16));
        assert_eq!(span["kind"], 2);
        assert!(number(span, "startTimeUnixNano") < number(span, "endTimeUnixNano"));
        assert!(attribute(span, "pilot.request_id").is_some());
        let text = span.to_string();
        assert!(!text.contains("ana") && !text.contains("018f6d2c") && !text.contains("127.0.0.1"), "{text}");
    }
    assert_eq!(attribute(&spans[2], "pilot.request_id"), refused.header("x-request-id"));
    server.stop().expect(0);
}

const LONG: &str = "00112233445566778899aabbccddeeff0123456789abcdef";

#[test]
fn a_live_token_as_the_id_of_a_trace_does_not_get_out() {
    // Sixteen bytes in hexadecimal are a token that the configuration accepts, and look like the id of a trace.
    let secret = "0af7651916cd43dd8448eb211c80319c";
    let installation = Installation::with(&[("ana", "initiator", secret), ("ben", "approver", LONG)]);
    let ops = Port::reserve();
    let (address, received) = collector("200 OK");
    configure(&installation, &ops, &format!("url = 'http://{address}/v1/traces'"));
    let server = installation.serve();
    let traced = format!("traceparent: 00-{secret}-{SPAN}-01");
    assert_eq!(server.get("/v1/session", &[&bearer(secret), &traced]).status, 200);
    // Answered just before the end, and still sent.
    let halves = format!("traceparent: 00-{}-{}-01", &LONG[..32], &LONG[32..]);
    assert_eq!(server.get("/v1/session", &[&bearer(LONG), &halves]).status, 200);
    let finished = server.stop().expect(0);
    finished.never_says(LONG);
    let spans = spans(&received, 2);
    assert_ne!(spans[0]["traceId"], secret);
    assert_ne!(spans[1]["traceId"], LONG[..32]);
    finished.expect(0).never_says(secret);
}

#[test]
fn a_collector_that_fails_is_named_once_and_delays_nobody() {
    let (installation, ops) = (team(), Port::reserve());
    let (address, received) = collector("503 Service Unavailable");
    configure(&installation, &ops, &format!("url = 'http://{address}/v1/traces'"));
    let server = installation.serve();
    for _ in 0..3 {
        assert_eq!(server.get("/v1/session", &[&bearer(&token("ana"))]).status, 200);
        received.recv_timeout(PATIENCE).expect("a batch");
    }
    server.wait_for_log("traces cannot be sent and are dropped");
    let begun = now();
    while !ops.metrics().contains("pilot_trace_spans_dropped_total 3") {
        assert!(begun.elapsed() < PATIENCE, "{}", ops.metrics());
    }
    let finished = server.stop().expect(0);
    assert_eq!(finished.stderr.matches("traces cannot be sent").count(), 1, "{}", finished.stderr);
}

#[test]
fn a_share_of_traces_is_from_1_to_100_and_an_address_is_one() {
    let (installation, ops) = (team(), Port::reserve());
    for (more, said) in [
        ("url = 'http://127.0.0.1:1/'\nsample_percent = 0", "traces.sample_percent: 0 is not from 1 to 100"),
        ("url = 'http://127.0.0.1:1/'\nsample_percent = 101", "traces.sample_percent: 101 is not from 1 to 100"),
        ("url = 'grpc://127.0.0.1:4317'", "is not an address that can be used"),
        ("sample_percent = 5", "missing field `url`"),
    ] {
        configure(&installation, &ops, more);
        installation.serve_in_vain().expect(2).says(&[said]);
    }
}
