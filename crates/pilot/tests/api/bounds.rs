//! Bounds of single requests: each refusal names the bound, and where to mend what was sent.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::harness::{bearer, now};
use crate::support::team::{JSON, payload, person, submitted, team, token};
use crate::support::wire::Response;

#[track_caller]
fn refused(answer: &Response, status: u16, code: &str, words: &str) {
    assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)), "{}", answer.text());
    assert!(answer.text().contains(words), "{words:?} is missing in {}", answer.text());
}

#[test]
fn a_body_that_is_too_large_for_its_operation_is_refused_with_the_limit() {
    let installation = team();
    let server = installation.serve();
    let id = submitted(&server, "low");
    let text = |bytes: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(bytes)).into_bytes();
    for (line, limit) in [
        ("POST /v1/items".to_owned(), 128),
        (format!("PATCH /v1/items/{id}"), 128),
        (format!("POST /v1/items/{id}/transitions"), 256),
        (format!("POST /v1/items/{id}/comments"), 32),
    ] {
        let mut ana = person(&server, "ana");
        let answer = ana.call(&line, &[JSON], &text(limit * 1024));
        refused(&answer, 413, "body_too_large", &format!("at most {limit} KiB"));
        // One that fits is read and refused for what is in it.
        assert_eq!(person(&server, "ana").call(&line, &[JSON], &text(limit * 1024 - 100)).status, 422, "{line}");
    }
}

#[test]
fn a_body_with_too_many_values_or_faults_is_refused_and_the_answer_stays_small() {
    let installation = team();
    let server = installation.serve();
    let mut ana = person(&server, "ana");
    let create =
        |payload: &str| format!("{{\"workflow\":\"controlled-operation\",\"title\":\"t\",\"payload\":{payload}}}");
    let many = |value: &str, times: usize| format!("{{\"a\":[{}]}}", vec![value; times].join(","));
    let answer = ana.call("POST /v1/items", &[JSON], create(&many("0", 4_001)).as_bytes());
    refused(&answer, 422, "invalid_request", "has more than 4000 values");
    let answer = ana.call("POST /v1/items", &[JSON], create(&many("0", 6_000)).as_bytes());
    refused(&answer, 422, "invalid_request", "has more than 5000 values");
    assert_eq!(ana.call("POST /v1/items", &[JSON], create(&many("0", 3_990)).as_bytes()).status, 201);
    let name = "n".repeat(20_000);
    let faults = format!("{{\"{name}\":{}}}", many("9007199254740993", 3_000));
    let answer = ana.call("POST /v1/items", &[JSON], create(&faults).as_bytes());
    refused(&answer, 422, "invalid_request", "2950 more faults");
    assert_eq!(answer.json()["errors"].as_array().unwrap().len(), 51);
    assert!(answer.text().len() < 16 * 1024, "{} bytes", answer.text().len());
}

#[test]
fn titles_have_no_control_characters_and_no_text_has_a_zero() {
    let installation = team();
    let server = installation.serve();
    let mut ana = person(&server, "ana");
    let mut create = |title: &str, payload: &str| {
        let body = format!("{{\"workflow\":\"controlled-operation\",\"title\":\"{title}\",\"payload\":{payload}}}");
        ana.call("POST /v1/items", &[JSON], body.as_bytes())
    };
    refused(&create("two\\nlines", "{}"), 422, "invalid_request", "must not contain control characters");
    refused(&create("\\u001b[2J", "{}"), 422, "invalid_request", "must not contain control characters");
    refused(&create("t", "{\"a\":\"\\u0000\"}"), 422, "invalid_request", "U+0000");
    refused(&create("t", "{\"\\u0000\":1}"), 422, "invalid_request", "U+0000");
    assert_eq!(create("t", "{\"a\":\"two\\nlines\"}").status, 201);
}

#[test]
fn if_match_takes_a_list_and_a_tag_that_is_not_ours_matches_nothing() {
    let installation = team();
    let server = installation.serve();
    let mut ana = person(&server, "ana");
    let id = ana.creates("controlled-operation", &payload("low"));
    let mut edit = |tags: &str| {
        let header = format!("If-Match: {tags}");
        ana.call(&format!("PATCH /v1/items/{id}"), &[JSON, &header], b"{\"title\":\"another\"}")
    };
    assert_eq!(edit("\"1\"").status, 200);
    assert_eq!(edit("\"7\", \"2\",W/\"9\"").status, 200);
    assert_eq!(edit("*").status, 200);
    for tags in ["\"1\"", "\"abc\"", "W/\"4\"", "\"04\"", "\"5\", \"6\"", "4", ""] {
        let answer = edit(tags);
        refused(&answer, 412, "version_mismatch", "version 4");
        assert!(!answer.text().contains("18446744073709551615"), "{}", answer.text());
    }
}

#[test]
fn a_compressed_body_is_an_unsupported_media_type() {
    let installation = team();
    let server = installation.serve();
    let mut ana = person(&server, "ana");
    let answer = ana.call("POST /v1/items", &[JSON, "Content-Encoding: gzip"], b"\x1f\x8b\x08");
    refused(&answer, 415, "unsupported_media_type", "without Content-Encoding");
    let body = json!({"workflow": "controlled-operation", "title": "t"}).to_string();
    assert_eq!(ana.call("POST /v1/items", &[JSON, "Content-Encoding: identity"], body.as_bytes()).status, 201);
}

#[test]
fn a_feed_that_begins_beyond_the_end_of_the_ledger_is_refused() {
    let installation = team();
    let server = installation.serve();
    let authorization = bearer(&token("ben"));
    let stream = "Accept: text/event-stream";
    let ask = |path: &str, header: &str| server.get(path, &[&authorization, stream, header]);
    refused(&ask("/v1/events", "Last-Event-ID: 900"), 422, "invalid_request", "ends with entry 0");
    refused(&ask("/v1/events?after=1", "X-A: b"), 422, "invalid_request", "/query/after");
}

#[test]
fn an_actor_has_so_many_feeds_and_closing_one_makes_room() {
    let installation = team();
    let server = installation.serve();
    let open = |name: &str| {
        let mut wire = server.wire();
        wire.request("GET /v1/events HTTP/1.1", &[&bearer(&token(name)), "Accept: text/event-stream"]);
        wire
    };
    let mut feeds: Vec<_> = (0..64).map(|_| open("eli")).collect();
    for feed in &mut feeds {
        assert_eq!(feed.response_without_body().expect("an answer").status, 200);
    }
    let answer = open("eli").response().expect("an answer");
    refused(&answer, 429, "rate_limited", "64 live feeds");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(open("eva").response_without_body().expect("an answer").status, 200, "another actor is not concerned");
    let ready = server.get("/readyz", &[]).json();
    assert_eq!(ready["limits_reached"], json!(["feeds_of_an_actor"]));
    drop(feeds.pop());
    // The service hears of it when it next has something to send.
    let mut tries = 0;
    while open("eli").response_without_body().expect("an answer").status != 200 {
        submitted(&server, "low");
        tries += 1;
        assert!(tries < 1_000, "the place of a feed that was closed is never given back");
    }
}

#[test]
fn a_flood_of_refusals_is_answered_late_and_so_slows_itself_down() {
    let installation = team();
    let server = installation.serve();
    let headers = [&*bearer(&token("eli")), "Accept: text/event-stream"];
    let mut feeds: Vec<_> = (0..64).map(|_| server.wire()).collect();
    for feed in &mut feeds {
        feed.request("GET /v1/events HTTP/1.1", &headers);
        assert_eq!(feed.response_without_body().expect("an answer").status, 200);
    }
    let (began, mut wire) = (now(), server.wire());
    for _ in 0..300 {
        wire.request("GET /v1/events HTTP/1.1", &headers);
    }
    for _ in 0..300 {
        refused(&wire.response().expect("an answer"), 429, "rate_limited", "64 live feeds");
    }
    // Where a machine needs longer than this for all of them, there was no flood.
    assert!(began.elapsed() >= Duration::from_millis(500), "{:?} for 300 refusals", began.elapsed());
    // What is not the caller's own limit is answered at once, also in a flood.
    let (began, health) = (now(), server.get("/healthz", &[]));
    assert_eq!(health.status, 200, "after {:?}", began.elapsed());
}

#[test]
fn another_actors_live_token_in_content_is_an_exposure_and_ones_own_is_not() {
    let installation = team();
    let server = installation.serve();
    let id = submitted(&server, "low");
    let mut ben = person(&server, "ben");
    let comment = |text: &str| json!({"text": format!("look: {text} :here")});
    let path = format!("/v1/items/{id}/comments");
    refused(&ben.post(&path, &comment(&token("ben"))), 422, "token_in_content", "/text");
    refused(&ben.post(&path, &comment(&token("sol"))), 422, "token_in_content", "/text");
    refused(&ben.post(&path, &comment(&token("sol"))), 422, "token_in_content", "/text");
    let events = person(&server, "ada").get("/v1/events?limit=200").json();
    let exposed = |event: &&Value| event["type"] == "access.token_exposed";
    let exposed: Vec<_> = events["events"].as_array().unwrap().iter().filter(exposed).collect();
    assert_eq!(exposed.len(), 1, "{events}");
    assert_eq!((&exposed[0]["actor_id"], &exposed[0]["details"]["code"]), (&json!("sol"), &json!("token_in_content")));
    server.wait_for_log("`ben` sent a live token of `sol` in content");
}

#[test]
fn a_long_history_comes_in_pages_each_entry_once_and_in_order() {
    let installation = team();
    let server = installation.serve();
    let id = submitted(&server, "low");
    let mut ben = person(&server, "ben");
    for number in 0..60 {
        let comment = json!({"text": format!("comment {number}")});
        assert_eq!(ben.post(&format!("/v1/items/{id}/comments"), &comment).status, 201);
    }
    for (list, limit, expected) in [("history", 7, 62), ("history", 200, 62), ("transitions", 1, 1)] {
        let (mut entries, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = ben.get(&format!("/v1/items/{id}/{list}?limit={limit}{cursor}"));
            let page = answer.json();
            let listed = page[list].as_array().unwrap();
            assert!(listed.len() <= limit, "{page}");
            entries.extend(listed.iter().map(|entry| entry["entry"].as_u64().unwrap()));
            let Some(next) = page["next"].as_str() else { break };
            assert!(answer.header("link").unwrap().contains(next), "{:?}", answer.header("link"));
            cursor = format!("&cursor={next}");
        }
        assert_eq!(entries.len(), expected, "{list} {limit}");
        assert!(entries.is_sorted_by(|one, next| one < next), "{entries:?}");
    }
    refused(&ben.get(&format!("/v1/items/{id}/history?cursor=x")), 422, "invalid_request", "/query/cursor");
}
