//! Who comes in: exactly the bearer of one well-formed token on one `Authorization` line, and nobody else.

use serde_json::{Value, json};

use crate::support::harness::{Installation, Server, TOKEN, bearer, credential_file, digest};
use crate::support::wire::Response;

/// The plain challenge, and the one for a credential that was sent and is not valid.
const CHALLENGE: &str = r#"Bearer realm="pilot""#;
const INVALID: &str = r#"Bearer realm="pilot", error="invalid_token""#;

#[track_caller]
fn check_refused(answer: &Response, challenge: &str) {
    assert_eq!(answer.verdict(), "401 credential_required");
    assert_eq!(answer.header("www-authenticate"), Some(challenge));
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    check_headers(answer);
    let mut problem = answer.json();
    let request_id = problem.as_object_mut().unwrap().remove("request_id").unwrap();
    assert_eq!(answer.header("x-request-id"), request_id.as_str());
    // Word for word the same, whatever was wrong.
    let expected = json!({
        "type": "/docs#credential_required",
        "title": "A valid credential is required",
        "status": 401,
        "detail": "Send a valid token as `Authorization: Bearer <token>`.",
        "code": "credential_required",
    });
    assert_eq!(problem, expected);
}

/// What every answer under `/v1` has, and what none ever has.
#[track_caller]
fn check_headers(answer: &Response) {
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{answer:?}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer:?}");
    check_absent_headers(answer);
}

#[track_caller]
fn check_absent_headers(answer: &Response) {
    for (name, _) in &answer.headers {
        let name = name.to_ascii_lowercase();
        let banned = ["server", "set-cookie", "x-powered-by", "via"].contains(&name.as_str());
        assert!(!banned && !name.starts_with("access-control-"), "{answer:?}");
    }
}

#[test]
fn a_digest_in_the_file_is_the_sha3_256_of_the_token() {
    // Computed by another implementation.
    assert_eq!(digest(TOKEN.as_bytes()), "5279051effe434d940425310faa9a7e7e7e675878cf3033374839f0f450c6a30");
    let server = Installation::with_ana().serve();
    assert_eq!(server.session(TOKEN).json(), json!({"actor_id": "ana", "role": "initiator"}));
}

#[test]
fn a_token_has_32_to_256_bytes_even_when_the_file_has_the_digest_of_another() {
    let tokens: Vec<String> = [1, 31, 32, 33, 255, 256, 257, 4096].map(|length| "t".repeat(length)).into();
    let entries: Vec<_> = tokens.iter().map(|token| ("ana", "initiator", token.as_str())).collect();
    let server = Installation::with(&entries).serve();
    for token in &tokens {
        let answer = server.session(token);
        if (32..=256).contains(&token.len()) {
            assert_eq!(answer.status, 200, "{} bytes", token.len());
        } else {
            check_refused(&answer, INVALID);
        }
    }
}

#[test]
fn every_byte_value_in_a_token_is_accepted_if_printable_and_never_otherwise() {
    let token = |byte: u8| [&[b'x'; 20][..], &[byte], &[b'y'; 20]].concat();
    let entries: Vec<Value> = (0..=u8::MAX)
        .map(|byte| json!({"actor_id": "ana", "roles": ["initiator"], "token_sha3_256": digest(&token(byte))}))
        .collect();
    let installation = Installation::with_ana();
    installation.write("credentials.json", &json!({"schema_version": 1, "credentials": entries}).to_string());
    let server = installation.serve();
    let mut refused_by_framing = Vec::new();
    for byte in 0..=u8::MAX {
        let line = [b"Authorization: Bearer ".as_slice(), &token(byte), b"\r\n"].concat();
        let answer = server.send([b"GET /v1/session HTTP/1.1\r\nHost: a\r\n".as_slice(), &line, b"\r\n"].concat());
        match (byte, answer.status) {
            (0x21..=0x7E, 200) => {}
            (0x21..=0x7E, status) => panic!("byte {byte:#04x}: {status}"),
            (_, 400) => refused_by_framing.push(byte),
            (_, 401) => check_refused(&answer, INVALID),
            (_, status) => panic!("byte {byte:#04x}: {status}"),
        }
    }
    // What HTTP cannot carry in a field at all: controls but the tab, and DEL.
    let controls: Vec<u8> = (0..0x20).filter(|byte| *byte != b'\t').chain([0x7F]).collect();
    assert_eq!(refused_by_framing, controls);
}

#[test]
fn one_token_may_hold_every_printable_byte() {
    let token: String = ('!'..='~').collect();
    let server = Installation::with(&[("ana", "initiator", &token)]).serve();
    assert_eq!(server.session(&token).status, 200);
    assert_eq!(server.session(&token.to_lowercase()).status, 401);
}

#[test]
fn the_scheme_has_any_letter_case_and_one_or_more_spaces_follow_it() {
    let server = Installation::with_ana().serve();
    for value in [
        format!("Bearer {TOKEN}"),
        format!("bearer {TOKEN}"),
        format!("BEARER {TOKEN}"),
        format!("bEaReR {TOKEN}"),
        format!("Bearer      {TOKEN}"),
        // White space around a field's value is not part of it (RFC 9110, 5.5).
        format!("  Bearer {TOKEN}  "),
        format!("\tBearer {TOKEN}\t"),
    ] {
        assert_eq!(server.get("/v1/session", &[&format!("Authorization:{value}")]).status, 200, "{value:?}");
    }
    assert_eq!(server.get("/v1/session", &[&format!("aUTHORIZATION: Bearer {TOKEN}")]).status, 200);
}

#[test]
fn anything_else_on_the_authorization_line_is_refused() {
    let server = Installation::with_ana().serve();
    let digest = digest(TOKEN.as_bytes());
    for value in [
        String::new(),
        " ".to_owned(),
        "Bearer".to_owned(),
        TOKEN.to_owned(),
        format!("Bearer{TOKEN}"),
        format!("Bearer\t{TOKEN}"),
        format!("Bearer \t{TOKEN}"),
        format!("Bearer: {TOKEN}"),
        format!("Bearer={TOKEN}"),
        format!("Bearer {TOKEN} x"),
        format!("Bearer {TOKEN},"),
        format!("Bearer {TOKEN}, Bearer {TOKEN}"),
        format!("Bearer \"{TOKEN}\""),
        format!("Bearer token={TOKEN}"),
        format!("Bearer {TOKEN}\u{e9}"),
        format!("Bearer {}", &TOKEN[..31]),
        format!("Bearer {TOKEN}0"),
        format!("Bearer {}", TOKEN.to_uppercase()),
        format!("Bearer Bearer {TOKEN}"),
        format!("Basic {TOKEN}"),
        "Basic MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY6".to_owned(),
        format!("Digest username=\"{TOKEN}\""),
        format!("Negotiate {TOKEN}"),
        // Who has read the credential file has no token.
        format!("Bearer {digest}"),
        format!("Bearer sha3-256:{digest}"),
    ] {
        let answer = server.get("/v1/session", &[&format!("Authorization: {value}")]);
        assert_eq!(answer.status, 401, "{value:?}");
        check_refused(&answer, INVALID);
    }
}

#[test]
fn two_authorization_lines_are_refused_whatever_they_say() {
    let other = "another-hand-made-token-of-40-bytes-xxxx";
    let server = Installation::with(&[("ana", "initiator", TOKEN), ("ben", "approver", other)]).serve();
    let (good, dead, other) = (bearer(TOKEN), bearer(&"z".repeat(40)), bearer(other));
    let empty = "Authorization:".to_owned();
    for (first, second) in
        [(&good, &good), (&good, &other), (&good, &dead), (&dead, &good), (&good, &empty), (&empty, &good)]
    {
        check_refused(&server.get("/v1/session", &[first, second]), INVALID);
    }
    check_refused(&server.get("/v1/session", &[&good, &good.to_lowercase()]), INVALID);
}

#[test]
fn a_token_anywhere_else_is_no_credential() {
    let server = Installation::with_ana().serve();
    for header in [
        "Cookie: token=TOKEN",
        "Cookie: Authorization=Bearer TOKEN",
        "X-Api-Key: TOKEN",
        "X-Auth-Token: TOKEN",
        "X-Authorization: Bearer TOKEN",
        "Proxy-Authorization: Bearer TOKEN",
        "X-Forwarded-Authorization: Bearer TOKEN",
        "Sec-WebSocket-Protocol: bearer, TOKEN",
        "X-Actor-Id: ana",
        "X-Forwarded-User: ana",
    ] {
        check_refused(&server.get("/v1/session", &[&header.replace("TOKEN", TOKEN)]), CHALLENGE);
    }
    let body = format!("access_token={TOKEN}");
    let form = "Content-Type: application/x-www-form-urlencoded";
    for method in ["GET", "POST", "PUT"] {
        let length = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let mut wire = server.wire();
        wire.send(format!("{method} /v1/session HTTP/1.1\r\nHost: a\r\n{form}\r\n{length}").as_bytes());
        check_refused(&wire.response().unwrap(), CHALLENGE);
    }
    // A trailer comes after the decision.
    let chunked = format!(
        "GET /v1/session HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n0\r\n{}\r\n\r\n",
        bearer(TOKEN)
    );
    check_refused(&server.send(chunked), CHALLENGE);
}

#[test]
fn a_live_token_in_the_url_is_refused_as_such_with_or_without_a_credential() {
    let handmade = "correct/horse\"battery\\staple=2026&more?or#less";
    let server = Installation::with(&[("ana", "initiator", TOKEN), ("ben", "approver", handmade)]).serve();
    let encoded = |token: &str| token.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let first_encoded = format!("%{:02x}{}", TOKEN.as_bytes()[0], &TOKEN[1..]);
    let targets = [
        format!("/v1/session?access_token={TOKEN}"),
        format!("/v1/session?{TOKEN}"),
        format!("/v1/session?a=b&c={TOKEN}&d"),
        format!("/v1/{TOKEN}"),
        format!("/v1/session/{TOKEN}/x"),
        format!("/v1/session;t={TOKEN}"),
        format!("/{TOKEN}"),
        format!("/healthz?{TOKEN}"),
        format!("/?t={}", encoded(TOKEN)),
        format!("/v1/session?t={}", encoded(handmade)),
        format!("/v1/{first_encoded}"),
        format!("http://pilot.example/v1/session?t={TOKEN}"),
        format!("http://{TOKEN}@pilot.example/v1/session"),
        format!("http://ana:{TOKEN}@pilot.example/v1/session"),
    ];
    for target in &targets {
        for credential in [&[][..], &[bearer(TOKEN).as_str()]] {
            for method in ["GET", "POST"] {
                let answer = server.request(&format!("{method} {target} HTTP/1.1"), credential);
                assert_eq!(answer.verdict(), "400 token_in_url", "{method} {target}");
                assert_eq!(answer.header("www-authenticate"), None);
                check_absent_headers(&answer);
                assert!(!answer.text().contains(TOKEN));
            }
        }
    }
    let log = server.stop().expect(0);
    log.never_says(TOKEN);
    assert!(log.stderr.contains("was sent in a URL and refused"), "{log:?}");
}

#[test]
fn a_dead_token_in_the_url_is_an_ordinary_unknown_word() {
    let server = Installation::with_ana().serve();
    let dead = "f".repeat(32);
    let halves = format!("{}/{}", &TOKEN[..16], &TOKEN[16..]);
    for word in [dead.as_str(), &TOKEN[..31], &TOKEN.to_uppercase(), &halves, &digest(TOKEN.as_bytes())] {
        check_refused(&server.get(&format!("/v1/session?access_token={word}"), &[]), CHALLENGE);
        check_refused(&server.get(&format!("/v1/{word}"), &[]), CHALLENGE);
        assert_eq!(server.get(&format!("/v1/{word}"), &[&bearer(TOKEN)]).verdict(), "404 not_found");
        assert_eq!(server.get(&format!("/{word}"), &[]).verdict(), "404 not_found");
        assert_eq!(server.get(&format!("/v1/session?t={word}"), &[&bearer(TOKEN)]).status, 200);
    }
}

#[test]
fn an_outsider_learns_no_route_under_v1() {
    let server = Installation::with_ana().serve();
    let paths = [
        "/v1",
        "/v1/",
        "/v1/session",
        "/v1/session/",
        "/v1/nothing",
        "/v1/items",
        "/v1//",
        "/v1/../healthz",
        "/v1/%73ession",
        "/v1?x",
        "/v1/session?x=1",
    ];
    for path in paths {
        for method in ["GET", "POST", "DELETE", "OPTIONS", "PURGE", "get"] {
            check_refused(&server.request(&format!("{method} {path} HTTP/1.1"), &[]), CHALLENGE);
        }
    }
    let same = |path: &str| without_request_id(&server.get(path, &[]));
    assert_eq!(same("/v1/session"), same("/v1/nothing"));
}

fn without_request_id(answer: &Response) -> String {
    let id = answer.header("x-request-id").unwrap();
    answer.text().replace(id, "ID")
}

#[test]
fn a_known_caller_gets_404_and_405_by_path_and_method() {
    let server = Installation::with_ana().serve();
    for path in
        ["/v1", "/v1/", "/v1/session/", "/v1/nothing", "/v1/../healthz", "/v1/%73ession", "/v1/Session", "/v1//session"]
    {
        let answer = server.get(path, &[&bearer(TOKEN)]);
        assert_eq!(answer.verdict(), "404 not_found", "{path}");
        check_headers(&answer);
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE", "get", "Get"] {
        let answer = server.request(&format!("{method} /v1/session HTTP/1.1"), &[&bearer(TOKEN)]);
        assert_eq!(answer.verdict(), "405 method_not_allowed", "{method}");
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
        check_headers(&answer);
    }
    for path in ["/V1/session", "//v1/session", "/v1%2Fsession", "/v10/session", "/v2/session", "/nothing"] {
        assert_eq!(server.get(path, &[&bearer(TOKEN)]).verdict(), "404 not_found", "{path}");
        assert_eq!(server.get(path, &[]).verdict(), "404 not_found", "{path}");
    }
}

#[test]
fn head_is_get_without_its_body() {
    let server = Installation::with_ana().serve();
    let get = server.session(TOKEN);
    let head = server.request("HEAD /v1/session HTTP/1.1", &[&bearer(TOKEN)]);
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), Some(get.body.len().to_string().as_str()));
    check_headers(&head);
    // Nothing follows the head: the next answer on the connection begins right after it.
    let mut wire = server.wire();
    wire.request("HEAD /v1/session HTTP/1.1", &[]);
    let refused = wire.response_without_body().unwrap();
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(CHALLENGE)));
    wire.request("GET /v1/session HTTP/1.1", &[&bearer(TOKEN)]);
    assert_eq!(wire.response().unwrap().json(), get.json());
}

#[test]
fn no_answer_invites_another_site() {
    let server = Installation::with_ana().serve();
    let asking = [
        "Origin: https://evil.example",
        "Access-Control-Request-Method: GET",
        "Access-Control-Request-Headers: authorization",
    ];
    for path in ["/v1/session", "/v1/nothing", "/healthz", "/", "/docs", "/openapi.json", "/nothing", "*"] {
        for method in ["OPTIONS", "GET", "POST"] {
            for credential in [&[][..], &[bearer(TOKEN)]] {
                let mut headers = asking.to_vec();
                headers.extend(credential.iter().map(String::as_str));
                let answer = server.request(&format!("{method} {path} HTTP/1.1"), &headers);
                check_absent_headers(&answer);
                if path.starts_with("/v1") {
                    check_headers(&answer);
                }
            }
        }
    }
}

#[test]
fn open_pages_are_open_and_say_nothing_about_actors() {
    let installation = Installation::with(&[("ana-canary", "initiator", TOKEN)]);
    let server = installation.serve();
    assert_eq!(server.session(TOKEN).status, 200);
    for (path, media_type) in [
        ("/healthz", "application/json"),
        ("/readyz", "application/json"),
        ("/openapi.json", "application/json"),
        ("/docs", "text/html; charset=utf-8"),
        ("/", "text/html; charset=utf-8"),
    ] {
        let answer = server.get(path, &[]);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(media_type)), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(!answer.text().contains("canary") && !answer.text().contains(&digest(TOKEN.as_bytes())));
        // A wrong credential does not close what is open to anyone.
        assert_eq!(server.get(path, &["Authorization: Bearer nonsense"]).status, 200);
    }
    assert_eq!(server.get("/metrics", &[]).status, 404, "metrics are for the operations listener");
}

#[test]
fn a_role_comes_from_the_credential_and_a_request_cannot_supply_one() {
    let server = Installation::with_ana().serve();
    for header in ["X-Role: auditor", "X-Actor-Id: ben", "X-Pilot-Actor: ben", "From: ben", "Forwarded: for=ben"] {
        let path = "/v1/session?actor_id=ben&role=auditor";
        assert_eq!(server.get(path, &[&bearer(TOKEN), header]).json(), json!({"actor_id": "ana", "role": "initiator"}));
    }
}

#[test]
fn two_credentials_of_one_actor_are_one_actor() {
    let other = "another-hand-made-token-of-40-bytes-xxxx";
    let installation = Installation::with_ana();
    installation
        .write("credentials.json", &credential_file(&[("ana", "initiator", TOKEN), ("ana", "initiator", other)]));
    let server: Server = installation.serve();
    assert_eq!(server.session(TOKEN).json(), server.session(other).json());
}
