//! Messages that two readers could understand differently, that are too large, or that are no HTTP at all.

use http::{Request, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;

use crate::support::harness::{Installation, Server, TOKEN, bearer};
use crate::support::wire::{HTTP2_HELLO, Wire, headers_frame};

/// A request with a good credential and these lines, nothing added.
fn authorized(line: &str, headers: &[&str]) -> String {
    let lines: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("{line}\r\n{}\r\n{lines}\r\n", bearer(TOKEN))
}

#[track_caller]
fn check(server: &Server, request: impl AsRef<[u8]>, expected: &str) {
    let shown = String::from_utf8_lossy(request.as_ref()).chars().take(300).collect::<String>();
    assert_eq!(server.send(request).verdict(), expected, "{shown:?}");
}

const LINE: &str = "GET /v1/session HTTP/1.1";

#[test]
fn http_1_1_needs_exactly_one_plain_host() {
    let server = Installation::with_ana().serve();
    for hosts in
        [&["Host: pilot.example"][..], &["Host: 127.0.0.1:7450"], &["Host: [::1]:7450"], &["host:pilot.example"]]
    {
        check(&server, authorized(LINE, hosts), "200");
    }
    for hosts in [
        &[][..],
        &["Host:"],
        &["Host: "],
        &["Host: a", "Host: a"],
        &["Host: a", "Host: b"],
        &["Host: a", "host:"],
        &["Host: a b"],
        &["Host: a,b"],
        &["Host: a/b"],
        &["Host: http://a"],
        &["Host: user@a"],
        &["Host: a?b"],
        &["Host: a#b"],
        &["Host: a\\b"],
        &["Host: \u{e4}"],
        &["Host: <script>"],
    ] {
        check(&server, authorized(LINE, hosts), "400 invalid_request");
    }
}

#[test]
fn a_request_is_answered_also_when_its_sender_has_finished_sending() {
    let server = Installation::with_ana().serve();
    let body = json!({
        "workflow": "controlled-operation", "title": "Grow the volume",
        "payload": {"purpose": "p", "operation": "o", "risk": "low", "rollback_plan": "r"},
    })
    .to_string();
    let length = format!("Content-Length: {}", body.len());
    let head = authorized("POST /v1/items HTTP/1.1", &["Host: a", "Content-Type: application/json", &length]);
    let mut wire = server.wire();
    wire.send(format!("{head}{body}").as_bytes());
    wire.finish_sending();
    assert_eq!(wire.response().map(|response| response.verdict()), Some("201".into()));
    assert!(wire.response().is_none());
}

#[test]
fn http_1_0_is_served_with_or_without_a_host_and_the_connection_ends() {
    let server = Installation::with_ana().serve();
    for hosts in [&[][..], &["Host: pilot.example"]] {
        let mut wire = server.wire();
        wire.send(authorized("GET /v1/session HTTP/1.0", hosts).as_bytes());
        assert_eq!(wire.response().unwrap().status, 200);
        assert!(wire.rest().is_empty(), "closed after the answer");
    }
    check(&server, "GET /v1/session HTTP/1.0\r\n\r\n", "401 credential_required");
    check(&server, authorized("GET /v1/session HTTP/1.0", &["Host: a", "Host: a"]), "400 invalid_request");
    check(
        &server,
        authorized("GET /v1/session HTTP/1.0", &["Transfer-Encoding: chunked"]) + "0\r\n\r\n",
        "400 invalid_request",
    );
    let mut wire = server.wire();
    for _ in 0..2 {
        wire.send(authorized("GET /v1/session HTTP/1.0", &["Connection: keep-alive"]).as_bytes());
        assert_eq!(wire.response().unwrap().status, 200);
    }
}

#[test]
fn a_target_may_be_a_whole_url() {
    let server = Installation::with_ana().serve();
    check(&server, authorized("GET http://pilot.example/v1/session HTTP/1.1", &["Host: pilot.example"]), "200");
    check(&server, authorized("GET http://pilot.example/v1/session HTTP/1.1", &[]), "400 invalid_request");
    check(&server, authorized("GET http://pilot.example HTTP/1.1", &["Host: pilot.example"]), "200");
    check(&server, authorized("GET http://Pilot.Example/v1/session HTTP/1.1", &["Host: pilot.example"]), "200");
    check(
        &server,
        authorized("GET http://other.example/v1/session HTTP/1.1", &["Host: pilot.example"]),
        "400 invalid_request",
    );
    check(
        &server,
        "GET http://pilot.example/v1/session HTTP/1.1\r\nHost: pilot.example\r\n\r\n",
        "401 credential_required",
    );
    check(&server, authorized("CONNECT pilot.example:443 HTTP/1.1", &["Host: pilot.example"]), "404 not_found");
    check(&server, authorized("OPTIONS * HTTP/1.1", &["Host: pilot.example"]), "404 not_found");
    check(&server, authorized("GET v1/session HTTP/1.1", &["Host: a"]), "400 invalid_request");
}

#[test]
fn a_body_has_one_length_or_one_chunked_coding() {
    let server = Installation::with_ana().serve();
    let post =
        |headers: &[&str], body: &str| authorized("GET /v1/session HTTP/1.1", &[&["Host: a"], headers].concat()) + body;
    check(&server, post(&["Content-Length: 0"], ""), "200");
    check(&server, post(&["Content-Length: 4"], "body"), "200");
    check(&server, post(&["Transfer-Encoding: chunked"], "4\r\nbody\r\n0\r\n\r\n"), "200");
    check(&server, post(&["Transfer-Encoding: Chunked"], "0\r\n\r\n"), "200");
    let chunks = "0\r\n\r\n";
    for headers in [
        &["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"][..],
        &["Transfer-Encoding: chunked, chunked"],
        &["Transfer-Encoding: gzip, chunked"],
        &["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"],
        &["Transfer-Encoding: identity, chunked"],
    ] {
        check(&server, post(headers, chunks), "400 invalid_request");
    }
    for headers in [
        &["Transfer-Encoding: gzip"][..],
        &["Transfer-Encoding: identity"],
        &["Transfer-Encoding: chunked, gzip"],
        &["Transfer-Encoding: xchunked"],
        &["Transfer-Encoding:"],
        &["Transfer-Encoding : chunked"],
        &["Content-Length: 4", "Content-Length: 5"],
        &["Content-Length: 4, 4"],
        &["Content-Length: +4"],
        &["Content-Length: -1"],
        &["Content-Length: 0x4"],
        &["Content-Length: 4 4"],
        &["Content-Length:"],
        &["Content-Length: 99999999999999999999"],
    ] {
        check(&server, post(headers, chunks), "400 invalid_request");
    }
}

#[test]
fn a_message_with_two_lengths_is_the_last_of_its_connection() {
    let server = Installation::with_ana().serve();
    let smuggled = authorized(LINE, &["Host: a"]);
    for lengths in [
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: gzip, chunked", "X: y"],
    ] {
        let mut wire = server.wire();
        let first = format!("POST /v1/session HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n0\r\n\r\n", lengths.join("\r\n"));
        wire.send((first + &smuggled).as_bytes());
        let answer = wire.response().unwrap();
        assert_eq!(answer.status, 400, "{lengths:?}");
        assert_eq!(answer.header("connection"), Some("close"), "{lengths:?}");
        let rest = wire.rest();
        assert!(rest.is_empty(), "{lengths:?}: {}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn a_connection_on_which_framing_was_wrong_is_closed() {
    let server = Installation::with_ana().serve();
    let next = authorized(LINE, &["Host: a"]);
    for first in [
        authorized(LINE, &[]),
        authorized(LINE, &["Host: a", "Host: b"]),
        authorized(LINE, &["Host: a b"]),
        authorized(LINE, &[&["Host: a"], &vec!["X: y"; 63][..]].concat()),
        authorized(&format!("GET /{} HTTP/1.1", "a".repeat(9 * 1024)), &["Host: a"]),
    ] {
        let mut wire = server.wire();
        wire.send((first + &next).as_bytes());
        let answer = wire.response().unwrap();
        assert!([400, 414, 431].contains(&answer.status), "{answer:?}");
        assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
        assert!(wire.rest().is_empty());
    }
}

#[test]
fn headers_have_at_most_64_fields_and_16_kib_and_a_url_8_kib() {
    let server = Installation::with_ana().serve();
    let with_fields = |count: usize| {
        // Host and Authorization are two of them.
        let more: Vec<String> = (0..count - 2).map(|index| format!("X-{index}: y")).collect();
        let mut headers = vec!["Host: a"];
        headers.extend(more.iter().map(String::as_str));
        authorized(LINE, &headers)
    };
    check(&server, with_fields(64), "200");
    check(&server, with_fields(65), "431 invalid_request");
    check(&server, with_fields(100), "431 invalid_request");
    check(&server, with_fields(500), "431 invalid_request");
    let with_bytes = |bytes: usize| authorized(LINE, &["Host: a", &format!("X: {}", "y".repeat(bytes))]);
    check(&server, with_bytes(15 * 1024), "200");
    check(&server, with_bytes(16 * 1024), "431 invalid_request");
    check(&server, with_bytes(17 * 1024), "431 invalid_request");
    check(&server, with_bytes(64 * 1024), "431 invalid_request");
    let with_url = |bytes: usize| {
        authorized(&format!("GET /v1/session?{} HTTP/1.1", "a".repeat(bytes - "/v1/session?".len())), &["Host: a"])
    };
    check(&server, with_url(8 * 1024), "200");
    check(&server, with_url(8 * 1024 + 1), "414 invalid_request");
    check(&server, with_url(9 * 1024), "414 invalid_request");
}

#[test]
fn problems_of_framing_under_v1_have_the_headers_of_every_answer() {
    let server = Installation::with_ana().serve();
    for request in [authorized(LINE, &[]), authorized(LINE, &[&["Host: a"], &vec!["X: y"; 80][..]].concat())] {
        let answer = server.send(request);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(answer.json()["status"], json!(answer.status));
    }
}

#[test]
fn pipelined_requests_are_answered_in_order_each_for_itself() {
    let other = "another-hand-made-token-of-40-bytes-xxxx";
    let server = Installation::with(&[("ana", "initiator", TOKEN), ("ben", "approver", other)]).serve();
    let mut wire = server.wire();
    let request = |credential: &str| format!("{LINE}\r\nHost: a\r\n{credential}\r\n");
    let good = request(&format!("{}\r\n", bearer(TOKEN)));
    let of_ben = request(&format!("{}\r\n", bearer(other)));
    wire.send([good.as_str(), &request(""), &of_ben, &good].concat().repeat(25).as_bytes());
    for _ in 0..25 {
        let answers: Vec<_> = (0..4).map(|_| wire.response().unwrap()).collect();
        assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 401, 200, 200]);
        assert_eq!(answers[0].json()["actor_id"], "ana");
        assert_eq!(answers[2].json()["actor_id"], "ben");
    }
}

#[test]
fn what_is_no_http_is_answered_400_or_closed_and_the_service_goes_on() {
    let server = Installation::with_ana().serve();
    let long_method = format!("{} /v1/session HTTP/1.1\r\nHost: a\r\n\r\n", "M".repeat(6000));
    let garbage: Vec<u8> = (0..=u8::MAX).cycle().take(5000).collect();
    let requests: &[&[u8]] = &[
        b"\0\0\0\0\r\n\r\n",
        b"GET /v1/session\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /v1/session HTTP/0.9\r\nHost: a\r\n\r\n",
        b"GET /v1/session HTTP/1.2\r\nHost: a\r\n\r\n",
        b"GET /v1/session HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET /v1/session HTTP/3\r\nHost: a\r\n\r\n",
        b"GET /v1/session FTP/1.1\r\nHost: a\r\n\r\n",
        b"GET  /v1/session HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /v1/ session HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /v1/\0session HTTP/1.1\r\nHost: a\r\n\r\n",
        b"G\0T /v1/session HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /v1/session HTTP/1.1\r\nHo\0st: a\r\n\r\n",
        b"GET /v1/session HTTP/1.1\r\nHost: a\0\r\n\r\n",
        b"GET /v1/session HTTP/1.1\r\nHost: a\r\nNoColon\r\n\r\n",
        b"GET /v1/session HTTP/1.1\r\nHost: a\r\n: empty\r\n\r\n",
        b"GET /v1/session HTTP/1.1\r\nHost: a\r\nX: a\r\n folded\r\n\r\n",
        b"GET /v1/session HTTP/1.1\r\n Host: a\r\n\r\n",
        b"GET /v1/session HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
        b"GET /v1/session HTTP/1.1\rHost: a\r\r",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        &garbage,
    ];
    for request in requests {
        let mut wire = server.wire();
        wire.send(request);
        wire.end_of_input();
        let answered = String::from_utf8_lossy(&wire.rest()).into_owned();
        let shown = String::from_utf8_lossy(request);
        assert!(!answered.contains("HTTP/1.1 2") && !answered.contains("HTTP/1.1 5"), "{shown:?}: {answered}");
    }
    check(&server, long_method, "401 credential_required");
    assert_eq!(server.session(TOKEN).status, 200);
    let log = server.stop().expect(0);
    assert!(!log.stderr.contains("panicked"), "{}", log.stderr);
}

#[test]
fn a_request_cut_off_anywhere_is_never_answered_200() {
    let server = Installation::with_ana().serve();
    let request = authorized(LINE, &["Host: a"]);
    for length in 0..request.len() {
        let mut wire = server.wire();
        wire.send(&request.as_bytes()[..length]);
        wire.end_of_input();
        let answered = wire.rest();
        assert!(!answered.starts_with(b"HTTP/1.1 200"), "{length}: {}", String::from_utf8_lossy(&answered));
    }
    assert_eq!(server.send(request).status, 200);
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let server = Installation::with_ana().serve();
    let mut wire = server.wire();
    for byte in authorized(LINE, &["Host: a"]).bytes() {
        wire.send(&[byte]);
    }
    assert_eq!(wire.response().unwrap().status, 200);
}

#[test]
fn an_unread_body_does_not_cost_the_client_its_answer() {
    let server = Installation::with_ana().serve();
    for bytes in [1, 64 * 1024, 1024 * 1024] {
        let head = format!("POST /v1/session HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n");
        let mut wire = server.wire();
        wire.send((head + &"b".repeat(bytes)).as_bytes());
        let answer = wire.response();
        assert_eq!(answer.map(|answer| answer.status), Some(401), "{bytes} bytes");
    }
}

async fn http2(server: &Server) -> hyper::client::conn::http2::SendRequest<Empty<Bytes>> {
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    sender
}

fn on_http2(server: &Server, path: &str, credential: Option<&str>) -> Request<Empty<Bytes>> {
    let mut request = Request::get(format!("{}{path}", server.url())).version(Version::HTTP_2);
    if let Some(token) = credential {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.body(Empty::new()).unwrap()
}

#[test]
fn http_2_and_http_1_share_the_port_and_the_rules() {
    let server = Installation::with_ana().serve();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let sender = http2(&server).await;
        let calls: Vec<_> = (0..100)
            .map(|index| {
                let mut sender = sender.clone();
                let (path, credential, expected) = match index % 4 {
                    0 => ("/v1/nothing", Some(TOKEN), 404),
                    1 => ("/v1/session", None, 401),
                    2 => ("/v1/session?t=0123456789abcdef0123456789abcdef", Some(TOKEN), 400),
                    _ => ("/v1/session", Some(TOKEN), 200),
                };
                let request = on_http2(&server, path, credential);
                tokio::spawn(async move {
                    let answer = sender.send_request(request).await.unwrap();
                    assert_eq!(answer.status().as_u16(), expected);
                    assert_eq!(answer.headers().get("cache-control").unwrap(), "no-store");
                    let body = answer.into_body().collect().await.unwrap().to_bytes();
                    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
                    assert!(expected != 200 || body == json!({"actor_id": "ana", "role": "initiator"}));
                })
            })
            .collect();
        // While they are under way, HTTP/1.1 on the same port.
        assert_eq!(server.session(TOKEN).status, 200);
        for call in calls {
            call.await.unwrap();
        }
    });
}

#[test]
fn http_2_without_one_clear_authority_is_refused() {
    let server = Installation::with_ana().serve();
    let token = format!("Bearer {TOKEN}");
    let head = [(":method", "GET"), (":scheme", "http"), (":path", "/v1/session"), ("authorization", token.as_str())];
    for (more, expected) in [
        (&[(":authority", "a")][..], "200"),
        (&[(":authority", "a"), ("host", "a")], "200"),
        (&[("host", "a")], "200"),
        (&[], "400"),
        (&[(":authority", "a"), ("host", "b")], "400"),
        (&[("host", "a"), ("host", "a")], "400"),
        (&[("host", "a b")], "400"),
    ] {
        // Pseudo-fields come first.
        let (pseudo, plain): (Vec<_>, Vec<_>) =
            head.iter().chain(more).copied().partition(|(name, _)| name.starts_with(':'));
        let mut wire = server.wire();
        wire.send(HTTP2_HELLO);
        wire.send(&headers_frame(1, &[pseudo, plain].concat()));
        assert_eq!(wire.http2_status(), Some(expected.to_owned()), "{more:?}");
    }
}

#[test]
fn no_request_changes_the_protocol() {
    let server = Installation::with_ana().serve();
    for headers in [
        &["Host: a", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"][..],
        &["Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
        &["Host: a", "Expect: 100-continue"],
        &["Host: a", "Expect: nonsense"],
    ] {
        let answer = server.send(authorized(LINE, headers));
        assert_eq!((answer.status, answer.header("upgrade")), (200, None), "{headers:?}");
    }
}

#[test]
fn the_service_listens_on_ipv6_too() {
    let installation = Installation::with_ana();
    installation.write("pilot.toml", "listen = \"[::1]:0\"\n");
    let server = installation.serve();
    assert!(server.url().starts_with("http://[::1]:"), "{}", server.url());
    let mut wire = Wire::connect(server.address);
    wire.send(authorized(LINE, &["Host: [::1]"]).as_bytes());
    assert_eq!(wire.response().unwrap().status, 200);
    installation.pilot_as(TOKEN, &["session", "--url", &server.url()]).expect(0);
}
