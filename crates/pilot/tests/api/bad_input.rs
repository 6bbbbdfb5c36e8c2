//! Whatever a client sends, the answer is a refusal that points to the place, never a failure of the service and never
//! an item made of something else than was meant.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use crate::support::harness::Server;
use crate::support::team::{JSON, Person, payload, person, submitted, team, token};
use crate::support::wire::Response;

/// Every operation that takes a body, with a body it would take.
fn operations(id: &str) -> Vec<(String, Value)> {
    vec![
        ("POST /v1/items".into(), json!({"workflow": "controlled-operation", "title": "t", "payload": {}})),
        (format!("PATCH /v1/items/{id}"), json!({"title": "t", "payload": {}})),
        (format!("POST /v1/items/{id}/transitions"), json!({"action": "submit", "comment": "c", "inputs": {}})),
        (format!("POST /v1/items/{id}/comments"), json!({"text": "t"})),
    ]
}

/// The verdict and the places it points to.
fn told(answer: &Response) -> String {
    let mut told = answer.verdict();
    if answer.status >= 400 {
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let body = answer.json();
        assert_eq!(body["status"], answer.status);
        assert!(body["request_id"].is_string() && body["detail"].is_string() && body["title"].is_string());
        if answer.status == 422 {
            let errors = body["errors"].as_array().cloned().unwrap_or_default();
            for error in &errors {
                let _ = write!(told, " {:?}", error["pointer"].as_str().unwrap());
            }
        }
    }
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    told
}

pub fn draft(server: &Server) -> String {
    person(server, "ana").creates("controlled-operation", &payload("low"))
}

#[test]
fn a_body_that_is_no_plain_json_object_is_refused_by_every_operation() {
    let server = team().serve();
    let id = draft(&server);
    let bodies: &[&[u8]] = &[
        b"",
        b" ",
        b"null",
        b"true",
        b"5",
        b"\"text\"",
        b"[]",
        b"[{}]",
        b"{",
        b"{}{}",
        b"{} x",
        b"{'title':'t'}",
        b"{\"title\":}",
        b"{\"title\":\"t\",}",
        b"// c\n{}",
        b"\xef\xbb\xbf{\"title\":\"t\"}",
        b"{\"title\":\"\xff\"}",
        b"{\"title\":\"\xc0\xaf\"}",
        b"{\"title\":\"\xed\xa0\x80\"}",
        b"{\"title\":\"a\nb\"}",
        b"{\"title\":\"a\0b\"}",
        b"{\"title\":\"\\ud800\"}",
        b"{\"title\":\"\\udc00\\ud800\"}",
        b"{\"title\":\"\\u00\"}",
        b"{\"title\":NaN}",
        b"{\"title\":1e999}",
        b"\0",
    ];
    for (line, _) in operations(&id) {
        for body in bodies {
            let answer = person(&server, "ana").call(&line, &[JSON], body);
            let verdict = told(&answer);
            assert!(verdict.starts_with("422 invalid_request"), "{line} {}: {verdict}", String::from_utf8_lossy(body));
        }
    }
    assert_eq!(person(&server, "ana").item(&id)["version"], 1);
}

#[test]
fn members_a_request_does_not_have_are_refused_with_their_place() {
    let server = team().serve();
    let id = draft(&server);
    for (line, body) in operations(&id) {
        for name in ["actor_id", "role", "at", "created_by", "id", "state", "version", "held", "votes", "Title", ""] {
            let mut body = body.clone();
            body[name] = "ben".into();
            let answer = person(&server, "ana").call(&line, &[JSON], body.to_string().as_bytes());
            assert_eq!(told(&answer), format!("422 invalid_request {:?}", format!("/{name}")), "{line}");
        }
    }
}

#[test]
fn a_key_given_twice_an_integer_no_reader_agrees_on_and_a_body_nested_too_deep_are_refused_at_their_place() {
    let server = team().serve();
    let id = draft(&server);
    let nested = |levels: usize| format!("{{\"payload\":{}1{}}}", "{\"a\":".repeat(levels), "}".repeat(levels));
    for (line, body) in operations(&id) {
        let text = body.to_string();
        let twice = text.replacen('{', "{\"title\":\"a\",\"title\":\"b\",", 1);
        for body in [
            twice,
            "{\"payload\":{\"a\":{\"b\":1,\"b\":1}}}".into(),
            "{\"payload\":{\"a\":9007199254740992}}".into(),
            "{\"payload\":{\"a\":-9007199254740992}}".into(),
            "{\"payload\":[18446744073709551616]}".into(),
            "{\"payload\":1e16}".into(),
            nested(40),
            nested(200),
            nested(5_000),
        ] {
            let answer = person(&server, "ana").call(&line, &[JSON], body.as_bytes());
            let verdict = told(&answer);
            let shown: String = body.chars().take(60).collect();
            assert!(verdict.starts_with("422 invalid_request"), "{line} {shown}: {verdict}");
        }
    }
}

#[test]
fn values_of_the_wrong_type_are_refused_at_their_place() {
    let server = team().serve();
    let id = draft(&server);
    let mut seen = String::new();
    for (line, body) in operations(&id) {
        for name in body.as_object().unwrap().keys() {
            for value in [json!(null), json!(5), json!(true), json!([]), json!("x"), json!({"x": 1})] {
                let mut body = body.clone();
                body[name] = value.clone();
                let mut ana = person(&server, "ana");
                let answer = ana.call(&line, &[JSON], body.to_string().as_bytes());
                assert!(answer.status < 500);
                let line = line.replace(&id, "ID");
                let verdict = told(&answer);
                if verdict != "200" {
                    let _ = writeln!(seen, "{line} {name}: {value} → {verdict}");
                }
            }
        }
    }
    expect![[r#"
        POST /v1/items payload: null → 422 invalid_request "/payload"
        POST /v1/items payload: 5 → 422 invalid_request "/payload"
        POST /v1/items payload: true → 422 invalid_request "/payload"
        POST /v1/items payload: [] → 422 invalid_request "/payload"
        POST /v1/items payload: "x" → 422 invalid_request "/payload"
        POST /v1/items payload: {"x":1} → 201
        POST /v1/items title: null → 422 invalid_request "/title"
        POST /v1/items title: 5 → 422 invalid_request "/title"
        POST /v1/items title: true → 422 invalid_request "/title"
        POST /v1/items title: [] → 422 invalid_request "/title"
        POST /v1/items title: "x" → 201
        POST /v1/items title: {"x":1} → 422 invalid_request "/title"
        POST /v1/items workflow: null → 422 invalid_request "/workflow"
        POST /v1/items workflow: 5 → 422 invalid_request "/workflow"
        POST /v1/items workflow: true → 422 invalid_request "/workflow"
        POST /v1/items workflow: [] → 422 invalid_request "/workflow"
        POST /v1/items workflow: "x" → 422 invalid_request "/workflow"
        POST /v1/items workflow: {"x":1} → 422 invalid_request "/workflow"
        PATCH /v1/items/ID payload: null → 422 invalid_request "/payload"
        PATCH /v1/items/ID payload: 5 → 422 invalid_request "/payload"
        PATCH /v1/items/ID payload: true → 422 invalid_request "/payload"
        PATCH /v1/items/ID payload: [] → 422 invalid_request "/payload"
        PATCH /v1/items/ID payload: "x" → 422 invalid_request "/payload"
        PATCH /v1/items/ID title: null → 422 invalid_request "/title"
        PATCH /v1/items/ID title: 5 → 422 invalid_request "/title"
        PATCH /v1/items/ID title: true → 422 invalid_request "/title"
        PATCH /v1/items/ID title: [] → 422 invalid_request "/title"
        PATCH /v1/items/ID title: {"x":1} → 422 invalid_request "/title"
        POST /v1/items/ID/transitions action: null → 422 invalid_request "/action"
        POST /v1/items/ID/transitions action: 5 → 422 invalid_request "/action"
        POST /v1/items/ID/transitions action: true → 422 invalid_request "/action"
        POST /v1/items/ID/transitions action: [] → 422 invalid_request "/action"
        POST /v1/items/ID/transitions action: "x" → 422 unknown_action "/action"
        POST /v1/items/ID/transitions action: {"x":1} → 422 invalid_request "/action"
        POST /v1/items/ID/transitions comment: null → 422 invalid_request "/comment"
        POST /v1/items/ID/transitions comment: 5 → 422 invalid_request "/comment"
        POST /v1/items/ID/transitions comment: true → 422 invalid_request "/comment"
        POST /v1/items/ID/transitions comment: [] → 422 invalid_request "/comment"
        POST /v1/items/ID/transitions comment: "x" → 201
        POST /v1/items/ID/transitions comment: {"x":1} → 422 invalid_request "/comment"
        POST /v1/items/ID/transitions inputs: null → 422 invalid_request "/inputs"
        POST /v1/items/ID/transitions inputs: 5 → 422 invalid_request "/inputs"
        POST /v1/items/ID/transitions inputs: true → 422 invalid_request "/inputs"
        POST /v1/items/ID/transitions inputs: [] → 422 invalid_request "/inputs"
        POST /v1/items/ID/transitions inputs: "x" → 422 invalid_request "/inputs"
        POST /v1/items/ID/transitions inputs: {"x":1} → 422 invalid_request "/inputs/x"
        POST /v1/items/ID/comments text: null → 422 invalid_request "/text"
        POST /v1/items/ID/comments text: 5 → 422 invalid_request "/text"
        POST /v1/items/ID/comments text: true → 422 invalid_request "/text"
        POST /v1/items/ID/comments text: [] → 422 invalid_request "/text"
        POST /v1/items/ID/comments text: "x" → 201
        POST /v1/items/ID/comments text: {"x":1} → 422 invalid_request "/text"
    "#]]
    .assert_eq(&seen);
}

#[test]
fn only_the_media_types_an_operation_names_are_read() {
    let server = team().serve();
    let id = draft(&server);
    let merge = "Content-Type: application/merge-patch+json";
    for (line, body) in operations(&id) {
        let body = body.to_string();
        let call = |headers: &[&str]| person(&server, "ana").call(&line, headers, body.as_bytes());
        for wrong in [
            "Accept: application/json",
            "Content-Type:",
            "Content-Type: text/plain",
            "Content-Type: text/json",
            "Content-Type: application/x-www-form-urlencoded",
            "Content-Type: multipart/form-data; boundary=x",
            "Content-Type: application/jsonp",
            "Content-Type: application",
            "Content-Type: application/json, text/plain",
            "Content-Type: \u{e9}",
        ] {
            assert_eq!(told(&call(&[wrong])), "415 unsupported_media_type", "{line} {wrong}");
        }
        assert_eq!(
            told(&call(&[JSON, "Content-Type: text/plain"])),
            "415 unsupported_media_type",
            "{line}, two of them"
        );
        if !line.starts_with("PATCH") {
            assert_eq!(told(&call(&[merge])), "415 unsupported_media_type", "{line}");
        }
    }
    let mut ana = person(&server, "ana");
    let edit = format!("PATCH /v1/items/{id}");
    for right in [merge, JSON, "Content-Type: APPLICATION/JSON; charset=utf-8", "content-type:application/json"] {
        assert_eq!(ana.call(&edit, &[right], b"{\"title\":\"t\"}").status, 200, "{right}");
    }
}

#[test]
fn one_byte_over_the_limit_of_an_operation_is_too_large_with_and_without_a_length() {
    let server = team().serve();
    let id = draft(&server);
    let fill = |bytes: usize| format!("{{\"x\":\"{}\"}}", "y".repeat(bytes - 8));
    for ((line, _), limit) in operations(&id).into_iter().zip([128, 128, 256, 32].map(|limit| limit * 1024)) {
        let mut ana = person(&server, "ana");
        assert_eq!(told(&ana.call(&line, &[JSON], fill(limit).as_bytes())), "422 invalid_request \"/x\"", "{line}");
        let answer = person(&server, "ana").call(&line, &[JSON], fill(limit + 1).as_bytes());
        assert_eq!(told(&answer), "413 body_too_large", "{line}");
        let mut wire = server.wire();
        let head =
            format!("{line} HTTP/1.1\r\nHost: a\r\n{JSON}\r\n{}\r\n", crate::support::harness::bearer(&token("ana")));
        wire.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", limit + 1).as_bytes());
        wire.send(" ".repeat(limit + 1).as_bytes());
        assert_eq!(told(&wire.response().unwrap()), "413 body_too_large", "{line} in chunks");
    }
}

#[test]
fn lengths_are_counted_in_characters_and_end_where_the_limits_say() {
    let server = team().serve();
    let mut ana = person(&server, "ana");
    let mut create = |title: &str, payload: Value| {
        told(&ana.post("/v1/items", &json!({"workflow": "controlled-operation", "title": title, "payload": payload})))
    };
    for (title, expected) in [
        ("", "422 invalid_request \"/title\""),
        (" \t\n", "422 invalid_request \"/title\""),
        ("t", "201"),
        (&"ü".repeat(200), "201"),
        (&"🦀".repeat(200), "201"),
        (&"ü".repeat(201), "422 invalid_request \"/title\""),
        (&"x".repeat(100_000), "422 invalid_request \"/title\""),
    ] {
        assert_eq!(create(title, json!({})), expected, "{} characters", title.chars().count());
    }
    // {"a":"…"} has eight characters besides the text.
    assert_eq!(create("t", json!({"a": "x".repeat(64 * 1024 - 8)})), "201");
    assert_eq!(create("t", json!({"a": "x".repeat(64 * 1024 - 7)})), "422 invalid_request \"/payload\"");
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    assert_eq!(create("t", nested(32)), "201");
    assert_eq!(create("t", nested(33)), "422 invalid_request \"/payload\"");
    let id = draft(&server);
    for (length, expected) in [
        (0, "422 invalid_request \"/text\""),
        (4_000, "201"),
        (4_001, "422 invalid_request \"/text\""),
        (15_000, "422 invalid_request \"/text\""),
    ] {
        let body = json!({"text": "ä".repeat(length)});
        assert_eq!(told(&ana.post(&format!("/v1/items/{id}/comments"), &body)), expected, "{length}");
    }
    let mut sol = person(&server, "sol");
    let hold = |length: usize| json!({"action": "hold", "comment": "ä".repeat(length)});
    assert_eq!(told(&sol.acts(&id, &hold(4_001))), "422 invalid_request \"/comment\"");
    assert_eq!(told(&sol.acts(&id, &hold(4_000))), "201");
    let long = json!({"action": "x".repeat(200_000)});
    assert_eq!(told(&sol.acts(&id, &long)), "422 unknown_action \"/action\"");
}

#[test]
fn what_people_wrote_comes_back_as_they_wrote_it() {
    let server = team().serve();
    let mut ana = person(&server, "ana");
    let shown = "\u{202e}\u{feff}\u{fffe}\u{10ffff}e\u{301}<script>'\";--%_\\🦀";
    let odd = &format!("\u{1}\u{1b}[31m\u{7f}\u{85}{shown}");
    let payload = json!({"purpose": odd, (odd.as_str()): [odd], "n": [0.1, 1e-7, 9_007_199_254_740_991_u64]});
    let body = json!({"workflow": "controlled-operation", "title": shown, "payload": payload});
    let created = ana.post("/v1/items", &body);
    assert_eq!(created.status, 201, "{}", created.text());
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let item = ana.item(&id);
    assert_eq!((&item["title"], &item["payload"]), (&body["title"], &body["payload"]));
    let comment = ana.post(&format!("/v1/items/{id}/comments"), &json!({"text": odd}));
    assert_eq!(comment.json()["comment"], *odd);
    let history = ana.get(&format!("/v1/items/{id}/history")).json();
    assert_eq!(history["history"][1]["comment"], *odd);
    let listed = ana.get("/v1/items").json();
    assert_eq!(listed["items"][0]["title"], shown);
    // A part of a title is searched for as it stands, not as a pattern.
    for (q, found) in [("%25_%5C", 1), ("%25%25", 0), ("_", 1), ("__", 0), ("%27%22;--", 1), ("SCRIPT", 1)] {
        let list = ana.get(&format!("/v1/items?q={q}")).json();
        assert_eq!(list["items"].as_array().unwrap().len(), found, "{q}");
    }
}

#[test]
fn a_token_is_refused_wherever_it_is_put_and_never_repeated() {
    let server = team().serve();
    let id = draft(&server);
    let waiting = submitted(&server, "low");
    let (secret, generated) = (token("ben"), generated());
    let mut seen = String::new();
    for (name, secret) in [("live", &secret), ("generated", &generated)] {
        let glued = format!("see {secret}, please");
        let artifact = |text: &str| json!([{"name": text, "sha256": "0".repeat(64), "bytes": 1, "uri": text}]);
        let places: Vec<(&str, String, Value)> = vec![
            ("ana", "POST /v1/items".into(), json!({"workflow": "controlled-operation", "title": glued})),
            ("ana", "POST /v1/items".into(), json!({"workflow": secret, "title": "t"})),
            (
                "ana",
                "POST /v1/items".into(),
                json!({"workflow": "controlled-operation", "title": "t", "payload": {"a": [{"b": glued}]}}),
            ),
            (
                "ana",
                "POST /v1/items".into(),
                json!({"workflow": "controlled-operation", "title": "t", "payload": {"a": {(secret): 1}}}),
            ),
            ("ana", "POST /v1/items".into(), json!({"workflow": "controlled-operation", "title": "t", (secret): 1})),
            ("ana", format!("PATCH /v1/items/{id}"), json!({"title": glued})),
            ("ana", format!("PATCH /v1/items/{id}"), json!({"payload": {"purpose": secret}})),
            ("ana", format!("POST /v1/items/{id}/comments"), json!({"text": glued})),
            ("ben", format!("POST /v1/items/{waiting}/transitions"), json!({"action": secret})),
            ("ben", format!("POST /v1/items/{waiting}/transitions"), json!({"action": "reject", "comment": glued})),
            (
                "ben",
                format!("POST /v1/items/{waiting}/transitions"),
                json!({"action": "approve", "content_digest": secret}),
            ),
            (
                "eli",
                format!("POST /v1/items/{waiting}/transitions"),
                json!({"action": "succeed", "inputs": {"result": glued}}),
            ),
            (
                "eli",
                format!("POST /v1/items/{waiting}/transitions"),
                json!({"action": "succeed", "inputs": {"artifacts": artifact(&glued)}}),
            ),
        ];
        for (who, line, body) in places {
            let answer = person(&server, who).call(&line, &[JSON], body.to_string().as_bytes());
            assert!(!answer.text().contains(secret.as_str()), "{}", answer.text());
            let line = line.replace(&id, "ID").replace(&waiting, "ID");
            let _ = writeln!(seen, "{name} {line} → {}", told(&answer));
        }
        let key = format!("Idempotency-Key: {secret}");
        let answer = person(&server, "ana").call(
            "POST /v1/items",
            &[JSON, &key],
            b"{\"workflow\":\"controlled-operation\",\"title\":\"t\"}",
        );
        assert!(!answer.text().contains(secret.as_str()), "{}", answer.text());
        let _ = writeln!(seen, "{name} key → {}", told(&answer));
    }
    expect![[r#"
        live POST /v1/items → 422 token_in_content "/title"
        live POST /v1/items → 422 token_in_content "/workflow"
        live POST /v1/items → 422 token_in_content "/payload/a/0/b"
        live POST /v1/items → 422 token_in_content "/payload/a"
        live POST /v1/items → 422 token_in_content ""
        live PATCH /v1/items/ID → 422 token_in_content "/title"
        live PATCH /v1/items/ID → 422 token_in_content "/payload/purpose"
        live POST /v1/items/ID/comments → 422 token_in_content "/text"
        live POST /v1/items/ID/transitions → 422 token_in_content "/action"
        live POST /v1/items/ID/transitions → 422 token_in_content "/comment"
        live POST /v1/items/ID/transitions → 422 token_in_content "/content_digest"
        live POST /v1/items/ID/transitions → 422 token_in_content "/inputs/result"
        live POST /v1/items/ID/transitions → 422 token_in_content "/inputs/artifacts/0/name" "/inputs/artifacts/0/uri"
        live key → 422 token_in_content "/headers/Idempotency-Key"
        generated POST /v1/items → 422 token_in_content "/title"
        generated POST /v1/items → 422 token_in_content "/workflow"
        generated POST /v1/items → 422 token_in_content "/payload/a/0/b"
        generated POST /v1/items → 422 token_in_content "/payload/a"
        generated POST /v1/items → 422 token_in_content ""
        generated PATCH /v1/items/ID → 422 token_in_content "/title"
        generated PATCH /v1/items/ID → 422 token_in_content "/payload/purpose"
        generated POST /v1/items/ID/comments → 422 token_in_content "/text"
        generated POST /v1/items/ID/transitions → 422 token_in_content "/action"
        generated POST /v1/items/ID/transitions → 422 token_in_content "/comment"
        generated POST /v1/items/ID/transitions → 422 token_in_content "/content_digest"
        generated POST /v1/items/ID/transitions → 422 token_in_content "/inputs/result"
        generated POST /v1/items/ID/transitions → 422 token_in_content "/inputs/artifacts/0/name" "/inputs/artifacts/0/uri"
        generated key → 422 token_in_content "/headers/Idempotency-Key"
    "#]].assert_eq(&seen);
    let entries = person(&server, "ada").get("/v1/events?limit=200").text();
    assert!(!entries.contains(&secret) && !entries.contains(&generated));
}

/// A token as `pilot credential new` makes them; nobody holds it.
fn generated() -> String {
    pilot_core::token::Token::generate(&[7; 32]).hand_over().to_string()
}

#[test]
fn query_parameters_are_known_given_once_and_in_range() {
    let server = team().serve();
    let mut ana = person(&server, "ana");
    let mut seen = String::new();
    for path in [
        "/v1/items?limit=0",
        "/v1/items?limit=1",
        "/v1/items?limit=200",
        "/v1/items?limit=201",
        "/v1/items?limit=-1",
        "/v1/items?limit=%2B1",
        "/v1/items?limit=abc",
        "/v1/items?limit=",
        "/v1/items?limit",
        "/v1/items?limit=1.0",
        "/v1/items?limit=18446744073709551616",
        "/v1/items?limit=1&limit=1",
        "/v1/items?limit=1&%6Cimit=1",
        "/v1/items?cursor=",
        "/v1/items?cursor=abc",
        "/v1/items?cursor=%00",
        "/v1/items?cursor=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        // As older versions issued them: an item's id in base64.
        "/v1/items?cursor=MDE5OWYzYTEtN2MxZS03ZDQzLThmMjUtMDEyMzQ1Njc4OWFi",
        "/v1/items?waiting_for=ben",
        "/v1/items?waiting_for=",
        "/v1/items?state=none",
        "/v1/items?q=%",
        "/v1/items?q=%4",
        "/v1/items?q=%zz",
        "/v1/items?q=%2-",
        "/v1/items?q=%ff",
        "/v1/items?q=%00",
        "/v1/items?Limit=1",
        "/v1/items?actor_id=ben",
        "/v1/items?&&&",
        "/v1/items?",
        "/v1/events?after=-1",
        "/v1/events?after=9007199254740991",
        "/v1/events?after=9007199254740992",
        "/v1/events?after=x",
        "/v1/events?limit=0",
        "/v1/events?limit=201",
        "/v1/events?since=1",
    ] {
        let answer = ana.get(path);
        let _ = writeln!(seen, "{path} → {}", told(&answer));
    }
    expect![[r#"
        /v1/items?limit=0 → 422 invalid_request "/query/limit"
        /v1/items?limit=1 → 200
        /v1/items?limit=200 → 200
        /v1/items?limit=201 → 422 invalid_request "/query/limit"
        /v1/items?limit=-1 → 422 invalid_request "/query/limit"
        /v1/items?limit=%2B1 → 422 invalid_request "/query/limit"
        /v1/items?limit=abc → 422 invalid_request "/query/limit"
        /v1/items?limit= → 422 invalid_request "/query/limit"
        /v1/items?limit → 422 invalid_request "/query/limit"
        /v1/items?limit=1.0 → 422 invalid_request "/query/limit"
        /v1/items?limit=18446744073709551616 → 422 invalid_request "/query/limit"
        /v1/items?limit=1&limit=1 → 422 invalid_request "/query/limit"
        /v1/items?limit=1&%6Cimit=1 → 422 invalid_request "/query/limit"
        /v1/items?cursor= → 422 invalid_request "/query/cursor"
        /v1/items?cursor=abc → 422 invalid_request "/query/cursor"
        /v1/items?cursor=%00 → 422 invalid_request "/query"
        /v1/items?cursor=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA → 422 invalid_request "/query/cursor"
        /v1/items?cursor=MDE5OWYzYTEtN2MxZS03ZDQzLThmMjUtMDEyMzQ1Njc4OWFi → 422 invalid_request "/query/cursor"
        /v1/items?waiting_for=ben → 422 invalid_request "/query/waiting_for"
        /v1/items?waiting_for= → 422 invalid_request "/query/waiting_for"
        /v1/items?state=none → 200
        /v1/items?q=% → 422 invalid_request "/query"
        /v1/items?q=%4 → 422 invalid_request "/query"
        /v1/items?q=%zz → 422 invalid_request "/query"
        /v1/items?q=%2- → 422 invalid_request "/query"
        /v1/items?q=%ff → 422 invalid_request "/query"
        /v1/items?q=%00 → 422 invalid_request "/query"
        /v1/items?Limit=1 → 422 invalid_request "/query"
        /v1/items?actor_id=ben → 422 invalid_request "/query"
        /v1/items?&&& → 200
        /v1/items? → 200
        /v1/events?after=-1 → 422 invalid_request "/query/after"
        /v1/events?after=9007199254740991 → 200
        /v1/events?after=9007199254740992 → 422 invalid_request "/query/after"
        /v1/events?after=x → 422 invalid_request "/query/after"
        /v1/events?limit=0 → 422 invalid_request "/query/limit"
        /v1/events?limit=201 → 422 invalid_request "/query/limit"
        /v1/events?since=1 → 422 invalid_request "/query"
    "#]]
    .assert_eq(&seen);
}

#[test]
fn an_id_that_is_none_is_not_found() {
    let server = team().serve();
    let id = draft(&server);
    let mut ana = person(&server, "ana");
    let plain = id.replace('-', "");
    let braces = format!("%7B{id}%7D");
    let cut = &id[..35];
    let zero = "00000000-0000-0000-0000-000000000000";
    for wrong in [&plain, &braces, cut, zero, "x", "%00", "..", "%2e%2e", "'", "1%20OR%201=1", "null", "-1"] {
        for rest in ["", "/transitions", "/history", "/proof"] {
            let answer = ana.get(&format!("/v1/items/{wrong}{rest}"));
            assert_eq!(told(&answer), "404 not_found", "{wrong}{rest}");
        }
    }
    for path in
        ["/v1/items/", "/v1//items", "/v1/items//transitions", "/v1/workflows/none", "/v1/workflows/none/diagram"]
    {
        assert_eq!(told(&ana.get(path)), "404 not_found", "{path}");
    }
    let long = "x".repeat(8000);
    assert_eq!(told(&ana.get(&format!("/v1/items/{long}"))), "404 not_found");
    let (most, more) = ("x".repeat(1000), "x".repeat(1001));
    assert_eq!(told(&ana.get(&format!("/v1/items?q={most}"))), "200");
    assert_eq!(told(&ana.get(&format!("/v1/items?q={more}"))), "422 invalid_request \"/query/q\"");
}

#[test]
fn a_version_that_cannot_be_meant_does_not_match() {
    let server = team().serve();
    let id = draft(&server);
    let mut ana = person(&server, "ana");
    let edit = |value: &str, person: &mut Person| {
        let header = format!("If-Match: {value}");
        told(&person.call(&format!("PATCH /v1/items/{id}"), &[JSON, &header], b"{\"title\":\"t\"}"))
    };
    for wrong in
        ["1", "\"01\"", "\"+1\"", "W/\"1\"", "\"\"", "\"x\"", "\"1", "\"99999999999999999999\"", "\"-1\"", "\u{e9}"]
    {
        assert_eq!(edit(wrong, &mut ana), "412 version_mismatch", "{wrong}");
    }
    assert_eq!(edit("\"1\"", &mut ana), "200");
    assert_eq!(edit("*", &mut ana), "200");
    assert_eq!(edit("\"1\"", &mut ana), "412 version_mismatch");
    assert_eq!(edit("\"3\"", &mut ana), "200");
}

#[test]
fn a_comment_meant_for_another_version_is_refused() {
    let server = team().serve();
    let id = draft(&server);
    let mut ana = person(&server, "ana");
    let mut comment =
        |header: &str| told(&ana.call(&format!("POST /v1/items/{id}/comments"), &[JSON, header], b"{\"text\":\"t\"}"));
    assert_eq!(comment("If-Match: \"2\""), "412 version_mismatch");
    assert_eq!(comment("If-Match: \"1\""), "201");
    assert_eq!(comment("If-Match: *"), "201");
}

#[test]
fn every_422_names_a_place_and_none_is_endless() {
    let server = team().serve();
    let id = draft(&server);
    let mut ana = person(&server, "ana");
    let line = format!("POST /v1/items/{id}/transitions");
    assert_eq!(told(&ana.call(&line, &[JSON], b"{\"action\":\"zap\"}")), "422 unknown_action \"/action\"");
    let comments = format!("POST /v1/items/{id}/comments");
    for (text, expected) in [("one", "201"), ("two", "422 idempotency_key_reused \"/headers/Idempotency-Key\"")] {
        let body = format!("{{\"text\":\"{text}\"}}");
        assert_eq!(told(&ana.call(&comments, &[JSON, "Idempotency-Key: k"], body.as_bytes())), expected);
    }
    let many: Vec<_> = (0..4_000).map(|number| format!("\"unknown{number}\":1")).collect();
    let answer = ana.call(&line, &[JSON], format!("{{{}}}", many.join(",")).as_bytes());
    assert_eq!(answer.verdict(), "422 invalid_request");
    let errors = answer.json()["errors"].as_array().unwrap().clone();
    assert_eq!((errors.len(), &errors[50]["detail"]), (51, &json!("has 3950 more faults")));
}
