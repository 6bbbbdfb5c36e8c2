//! The leak scan: tokens are put wherever a client can put anything, and then looked for wherever the program writes.

use std::fs;

use crate::front_door::onboarding::{onboarded, token_of};
use crate::support::harness::{Installation, Port, Server, digest};
use crate::support::wire::{HTTP2_HELLO, Response, Wire, frame, headers_frame};

/// With everything a log might escape.
const QUOTED: &str = "hand\"made\\token'with`every<kind>of&trouble=1/2?#";
const PLAIN: &str = "hand-made-token-that-was-never-presented-0001";
const USED: &str = "hand-made-token-that-was-presented-once-00002";

/// Every place of an HTTP/1 request where a token is no credential, as bytes to send. `@` stands for the token.
const PLACES: &[&str] = &[
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nAuthorization: @\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nAuthorization: Basic @\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer @ @\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x@x\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer @\r\nAuthorization: Bearer @\r\n\r\n",
    "GET /v1/session?access_token=@ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /v1/session?@=@&x@x HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /v1/@ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /@/x@x HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /healthz#@ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET @ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://@/v1/session HTTP/1.1\r\nHost: @\r\n\r\n",
    "GET http://u:@@h/v1/session HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: @\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nCookie: token=@; @=1\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nX-Api-Key: @\r\nX-Request-Id: @\r\nTraceparent: @\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nUser-Agent: x@x\r\nReferer: http://a/?t=@\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\n@: x\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\n@\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nContent-Length: @\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: @\r\n\r\n",
    "GET /v1/session HTTP/1.1\r\nHost: a\r\nConnection: @\r\nUpgrade: @\r\nExpect: @\r\n\r\n",
    "POST /v1/session HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n{\"token\":\"@\"}",
    "POST /v1/session HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n@\r\n@\r\n",
    "@ /v1/session HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /v1/session @\r\nHost: a\r\n\r\n",
    "GET /v1/session HTTP/@\r\nHost: a\r\n\r\n",
    "@\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n@@@@",
    "\0@\0",
];

/// HTTP/2 connections that carry the token in fields, in broken fields and in frames of their own.
fn http2_places(token: &str) -> Vec<Vec<u8>> {
    let glued = format!("x{token}x");
    let request = |path: &str, authority: &str, more: &[(&str, &str)]| {
        let head = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", authority)];
        headers_frame(1, &[&head, more].concat())
    };
    let with_hello = |frame: Vec<u8>| [HTTP2_HELLO, &frame].concat();
    vec![
        with_hello(request("/v1/session", "a", &[("authorization", &format!("Bearer {glued}"))])),
        with_hello(request("/v1/session", "a", &[("x-token", token), ("cookie", &glued)])),
        with_hello(request(&format!("/v1/{token}"), "a", &[])),
        with_hello(request(&format!("not a path {glued}"), "a", &[])),
        with_hello(request(&format!("{glued} "), "a", &[])),
        with_hello(request("/v1/session", &format!("{glued} {token}"), &[])),
        with_hello(request("/v1/session", &format!("\u{7f}{glued}"), &[])),
        with_hello(headers_frame(1, &[(":method", &format!("{glued} ")), (":path", "/"), (":scheme", "http")])),
        with_hello(headers_frame(1, &[(":method", "GET"), (":path", "/"), (":scheme", &format!("{glued}:"))])),
        with_hello(headers_frame(1, &[(token, "x"), (":status", &glued)])),
        // GOAWAY with debug data, PING, an unknown kind of frame, and one that is cut off.
        with_hello(frame(0x7, 0, 0, &[&[0; 8], glued.as_bytes()].concat())),
        with_hello(frame(0x6, 0, 0, &token.as_bytes()[..8])),
        with_hello(frame(0xEE, 0, 0, glued.as_bytes())),
        with_hello(frame(0x0, 0, 1, token.as_bytes())),
        with_hello(token.as_bytes().to_vec()),
    ]
}

/// Sends the bytes and returns everything that came back.
fn exchange(server: &Server, bytes: &[u8]) -> String {
    let mut wire = server.wire();
    wire.send(bytes);
    wire.end_of_input();
    String::from_utf8_lossy(&wire.rest()).into_owned()
}

/// The token as it stands and as JSON, a debug rendering or a URL would write it.
fn renderings(token: &str) -> Vec<String> {
    let json = serde_json::to_string(token).unwrap();
    let twice = serde_json::to_string(&json).unwrap();
    let encoded = token.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let inner = |text: &str| text.trim_matches('"').to_owned();
    vec![token.to_owned(), inner(&json), inner(&twice), format!("{token:?}").trim_matches('"').to_owned(), encoded]
}

#[test]
fn no_token_comes_out_anywhere_wherever_it_was_put_in() {
    let installation = onboarded();
    let generated = token_of(&installation, "initiator");
    let mut file: serde_json::Value = serde_json::from_str(&installation.read("credentials.json")).unwrap();
    for token in [QUOTED, PLAIN, USED] {
        let entry =
            serde_json::json!({"actor_id": "ben", "roles": ["approver"], "token_sha3_256": digest(token.as_bytes())});
        file["credentials"].as_array_mut().unwrap().push(entry);
    }
    installation.write("credentials.json", &file.to_string());
    let port = Port::reserve();
    let ops = port.address().to_string();
    let free = [("PILOT_LISTEN", "127.0.0.1:0"), ("PILOT_OPS__LISTEN", ops.as_str())];
    for format in ["json", "text"] {
        let server = installation.serve_with(&["--log-level", "trace", "--log-format", format], &free);
        assert_eq!(server.session(USED).status, 200);
        let mut answers = Vec::new();
        for token in [&generated, QUOTED, PLAIN, USED] {
            for place in PLACES {
                answers.push(exchange(&server, place.replace('@', token).as_bytes()));
            }
            for bytes in http2_places(token) {
                answers.push(exchange(&server, &bytes));
            }
            if token != PLAIN {
                answers.push(server.session(token).text());
            }
        }
        answers.push(get_ops(&port, "/metrics").text());
        let ended = server.stop().expect(0);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        for token in [&generated, QUOTED, PLAIN, USED] {
            for shown in renderings(token) {
                ended.never_says(&shown);
                let leaking = answers.iter().find(|answer| answer.contains(&shown));
                assert!(leaking.is_none(), "{shown}: {leaking:?}");
            }
            scan_files(&installation, token);
        }
    }
}

/// Nothing below the installation holds the token but the file its owner keeps it in.
fn scan_files(installation: &Installation, token: &str) {
    let files = installation.files();
    assert!(files.len() >= 5, "{files:?}");
    for path in files.iter().filter(|path| path.extension().is_none_or(|extension| extension != "token")) {
        let bytes = fs::read(path).unwrap();
        let found = bytes.windows(token.len()).any(|window| window == token.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

/// From the operations listener.
fn get_ops(port: &Port, path: &str) -> Response {
    let mut wire = Wire::connect(port.address());
    wire.request(&format!("GET {path} HTTP/1.1"), &[]);
    wire.response().unwrap()
}

#[test]
fn metrics_count_what_happened_and_name_nobody() {
    let installation = Installation::with(&[("ana-canary", "initiator", USED)]);
    let port = Port::reserve();
    installation.write("pilot.toml", &format!("listen = '127.0.0.1:0'\n[ops]\nlisten = '{}'\n", port.address()));
    let server = installation.serve();
    let mut expected = vec![("pilot_requests_total{operation=\"get_session\",status=\"200\"}", 2)];
    for _ in 0..2 {
        assert_eq!(server.session(USED).status, 200);
    }
    assert_eq!(server.get(&format!("/v1/session?t={USED}"), &[]).status, 400);
    expected.push(("pilot_tokens_in_url_total", 1));
    assert_eq!(server.get("/v1/session", &[]).status, 401);
    expected.push(("pilot_authentication_failures_total{reason=\"missing\"}", 1));
    assert_eq!(server.session("short").status, 401);
    expected.push(("pilot_authentication_failures_total{reason=\"malformed\"}", 1));
    for _ in 0..3 {
        assert_eq!(server.session(&"z".repeat(50)).status, 401);
    }
    expected.push(("pilot_authentication_failures_total{reason=\"unrecognised\"}", 3));
    let get = |path: &str| get_ops(&port, path);
    let metrics = get("/metrics");
    assert_eq!(metrics.status, 200);
    let text = String::from_utf8(metrics.body).unwrap();
    for (name, count) in expected {
        assert!(text.contains(&format!("{name} {count}\n")), "{name} {count}: {text}");
    }
    assert!(text.contains("pilot_build_info{version="));
    for secret in [USED, &digest(USED.as_bytes()), "canary"] {
        assert!(!text.contains(secret));
    }
    assert_eq!((get("/healthz").status, get("/readyz").status), (200, 200));
    assert_eq!((get("/v1/session").status, get("/nothing").status), (404, 404));
}
