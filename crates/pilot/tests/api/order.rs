//! A request with two faults is told the earlier one, in the order the interface promises: framing, credential, route,
//! role of the operation, body, item, action, role, separation and ownership, what the action needs, and only then
//! what stands in the way of it.

use serde_json::json;

use crate::support::harness::Server;
use crate::support::team::{JSON, TEAM, cleared, installation_of, payload, person, submitted, team, token};

const NOWHERE: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// Who, request line, headers and body, and what they are told.
type Row<'r> = (&'r str, String, &'r [&'r str], String, &'r str);

#[track_caller]
fn check(server: &Server, rows: &[Row<'_>]) {
    for (who, line, headers, body, expected) in rows {
        let answer = person(server, who).call(line, headers, body.as_bytes());
        let shown: String = body.chars().take(80).collect();
        assert_eq!(answer.verdict(), *expected, "{who}: {line} {headers:?} {shown}");
    }
}

#[test]
fn a_broken_message_comes_before_a_missing_credential_and_that_before_the_route() {
    let server = team().serve();
    let ana = crate::support::harness::bearer(&token("ana"));
    let exposed = token("ana");
    for (bytes, expected) in [
        ("GET /v1/session HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), "400 invalid_request"),
        (format!("GET /v1/items?t={exposed} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), "400 invalid_request"),
        (format!("GET /v1/items?t={exposed} HTTP/1.1\r\nHost: a\r\n\r\n"), "400 token_in_url"),
        (format!("GET /v1/none?t={exposed} HTTP/1.1\r\nHost: a\r\n{ana}\r\n\r\n"), "400 token_in_url"),
        ("GET /v1/none HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "401 credential_required"),
        ("DELETE /v1/items HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "401 credential_required"),
        ("POST /v1/items HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n{".to_owned(), "401 credential_required"),
        (format!("GET /v1/items/{NOWHERE} HTTP/1.1\r\nHost: a\r\n\r\n"), "401 credential_required"),
    ] {
        assert_eq!(server.send(&bytes).verdict(), expected, "{bytes}");
    }
}

#[test]
fn route_and_method_come_before_role_role_before_body_and_body_before_item() {
    let server = team().serve();
    let large = format!("{{\"title\":\"{}\"}}", "x".repeat(1024 * 1024));
    let items = || "POST /v1/items".to_owned();
    let at = |method: &str, id: &str, rest: &str| format!("{method} /v1/items/{id}{rest}");
    let bad = || "{".to_owned();
    let mut rows: Vec<Row<'_>> = vec![
        ("ada", "DELETE /v1/items".into(), &[], String::new(), "405 method_not_allowed"),
        ("ada", "PUT /v1/items".into(), &[], bad(), "405 method_not_allowed"),
        ("ana", "POST /v1/actors".into(), &[], bad(), "405 method_not_allowed"),
        ("ada", "POST /v1/item".into(), &[], bad(), "404 not_found"),
        ("ada", "POST /v1/items/".into(), &[], bad(), "404 not_found"),
        ("ada", items(), &[], bad(), "403 role_forbidden"),
        ("ben", items(), &[JSON], large.clone(), "403 role_forbidden"),
        ("ben", at("PATCH", NOWHERE, ""), &[], bad(), "403 role_forbidden"),
        ("ben", at("PATCH", "x", ""), &[], bad(), "403 role_forbidden"),
        ("ana", "GET /v1/actors?x=1".into(), &[], String::new(), "403 role_forbidden"),
        ("ana", "GET /v1/log/tile/entries/nonsense".into(), &[], String::new(), "403 role_forbidden"),
    ];
    // An id that is none is looked for as late as one that nobody has.
    for id in [NOWHERE, "x"] {
        for (method, rest) in [("PATCH", ""), ("POST", "/transitions"), ("POST", "/comments")] {
            rows.push((
                "ana",
                at(method, id, rest),
                &["Content-Type: text/plain"],
                bad(),
                "415 unsupported_media_type",
            ));
            rows.push(("ana", at(method, id, rest), &[JSON], bad(), "422 invalid_request"));
            rows.push(("ana", at(method, id, rest), &[JSON], "{\"actor_id\":\"ben\"}".into(), "422 invalid_request"));
            rows.push(("ana", at(method, id, rest), &[JSON], large.clone(), "413 body_too_large"));
        }
        let twice: &[&str] = &[JSON, "If-Match: \"1\"", "If-Match: \"2\""];
        rows.push(("ana", at("PATCH", id, ""), twice, "{\"title\":\"t\"}".into(), "404 not_found"));
        let key: &[&str] = &[JSON, "Idempotency-Key: a b"];
        rows.push(("ana", at("POST", id, "/comments"), key, "{\"text\":\"t\"}".into(), "422 invalid_request"));
        rows.push(("ana", at("PATCH", id, ""), &[JSON], "{\"title\":\"t\"}".into(), "404 not_found"));
        rows.push(("ana", at("POST", id, "/comments"), &[JSON], "{\"text\":\"t\"}".into(), "404 not_found"));
        rows.push(("ada", at("POST", id, "/transitions"), &[JSON], "{\"action\":\"dance\"}".into(), "404 not_found"));
    }
    check(&server, &rows);
}

#[test]
fn action_role_ownership_needs_state_hold_window_version_and_content_come_in_this_order() {
    let server = team().serve();
    let mut ana = person(&server, "ana");
    let draft = ana.creates("controlled-operation", &payload("low"));
    let waiting = submitted(&server, "low");
    let ready = cleared(&server);
    let held = cleared(&server);
    person(&server, "sol").must(&held, &json!({"action": "hold", "comment": "wait"}));
    let digest = |id: &str| person(&server, "ada").item(id)["content_digest"].as_str().unwrap().to_owned();
    let other = format!("sha256:{}", "0".repeat(64));
    let long = "x".repeat(4001);
    let to = |id: &str| format!("POST /v1/items/{id}/transitions");
    let with = |action: &str, digest: &str| json!({"action": action, "content_digest": digest}).to_string();
    let stale: &[&str] = &[JSON, "If-Match: \"99\""];
    let rows: Vec<Row<'_>> = vec![
        // Action before role, and before what it needs.
        ("ada", to(&draft), &[JSON], json!({"action": "dance", "inputs": 5}).to_string(), "422 unknown_action"),
        ("ada", to(&draft), &[JSON], json!({"action": "dance", "comment": long}).to_string(), "422 unknown_action"),
        ("ana", to(&draft), &[JSON], json!({"action": "timer"}).to_string(), "422 unknown_action"),
        ("ana", to(&draft), &[JSON], json!({"action": "edit"}).to_string(), "422 unknown_action"),
        ("ana", to(&draft), &[JSON], json!({"action": "create"}).to_string(), "422 unknown_action"),
        // Role before what is needed and before the state.
        ("ana", to(&draft), stale, json!({"action": "approve"}).to_string(), "403 role_forbidden"),
        ("ada", to(&draft), stale, json!({"action": "reject", "inputs": []}).to_string(), "403 role_forbidden"),
        // Ownership before what is needed and before the state.
        ("amy", to(&draft), stale, json!({"action": "submit", "inputs": {"x": 1}}).to_string(), "403 not_owner"),
        ("amy", to(&waiting), stale, json!({"action": "submit"}).to_string(), "403 not_owner"),
        ("bob", to(&ready), stale, json!({"action": "revoke_approval"}).to_string(), "403 not_owner"),
        // Needs before state, hold, version and content.
        ("ben", to(&draft), stale, json!({"action": "approve"}).to_string(), "422 invalid_request"),
        ("ben", to(&draft), stale, json!({"action": "reject"}).to_string(), "422 invalid_request"),
        ("sol", to(&held), stale, json!({"action": "revoke"}).to_string(), "422 invalid_request"),
        ("eli", to(&held), stale, json!({"action": "start"}).to_string(), "422 invalid_request"),
        ("eli", to(&held), stale, with("start", "sha256:0"), "422 invalid_request"),
        // State before hold, version and content.
        ("ben", to(&draft), stale, with("approve", &other), "409 state_conflict"),
        ("ana", to(&held), stale, json!({"action": "submit"}).to_string(), "409 state_conflict"),
        // Hold before version and content, version before content.
        ("eli", to(&held), stale, with("start", &other), "409 item_held"),
        ("ben", to(&waiting), stale, with("approve", &other), "412 version_mismatch"),
        ("ben", to(&waiting), stale, with("approve", &digest(&waiting)), "412 version_mismatch"),
        ("ben", to(&waiting), &[JSON, "If-Match: \"2\""], with("approve", &other), "409 content_changed"),
        ("ben", to(&waiting), &[JSON], with("approve", &other), "409 content_changed"),
    ];
    check(&server, &rows);
}

#[test]
fn a_hold_comes_before_the_window_and_the_window_before_the_version() {
    let server = team().serve();
    let id = submitted(&server, "low");
    person(&server, "ben").decides(&id, "approve");
    let digest = person(&server, "ada").item(&id)["content_digest"].clone();
    let inputs = json!({"not_before": "in an hour", "not_after": "in two hours"});
    let inputs = crate::support::team::with_times(&inputs, &id);
    person(&server, "sol").must(&id, &json!({"action": "clear", "content_digest": digest, "inputs": inputs}));
    let other = format!("sha256:{}", "0".repeat(64));
    let start = json!({"action": "start", "content_digest": other}).to_string();
    let line = format!("POST /v1/items/{id}/transitions");
    let stale: &[&str] = &[JSON, "If-Match: \"99\""];
    check(&server, &[("eli", line.clone(), stale, start.clone(), "409 outside_window")]);
    person(&server, "sol").must(&id, &json!({"action": "hold", "comment": "wait"}));
    check(&server, &[("eli", line, stale, start, "409 item_held")]);
}

#[test]
fn who_took_part_in_one_role_never_acts_in_another_and_hears_that_before_anything_about_the_item() {
    let installation = team();
    let server = installation.serve();
    let id = submitted(&server, "low");
    let draft = person(&server, "ana").creates("controlled-operation", &payload("low"));
    server.stop().expect(0);
    let moved = TEAM.iter().map(|(name, role)| if *name == "ana" { ("ana", "approver") } else { (*name, *role) });
    let moved: Vec<_> = moved.collect();
    let file = std::fs::read_to_string(installation_of(&moved).path("credentials.json")).unwrap();
    installation.write("credentials.json", &file);
    let server = installation.serve();
    let line = format!("POST /v1/items/{id}/transitions");
    let to_draft = format!("POST /v1/items/{draft}/transitions");
    let stale: &[&str] = &[JSON, "If-Match: \"99\""];
    check(
        &server,
        &[
            ("ana", line.clone(), stale, json!({"action": "clear"}).to_string(), "403 role_forbidden"),
            ("ana", line.clone(), stale, json!({"action": "approve"}).to_string(), "403 separation_of_duties"),
            ("ana", line.clone(), stale, json!({"action": "reject"}).to_string(), "403 separation_of_duties"),
            ("ana", to_draft, stale, json!({"action": "hold"}).to_string(), "403 separation_of_duties"),
            ("ana", line, stale, json!({"action": "withdraw"}).to_string(), "403 role_forbidden"),
        ],
    );
    assert_eq!(person(&server, "ana").item(&id)["actions"], json!([]), "so there is nothing for ana to do");
    // Saying something is no part in the item.
    let comment = person(&server, "ana").post(&format!("/v1/items/{id}/comments"), &json!({"text": "mine once"}));
    assert_eq!(comment.status, 201);
}

#[test]
fn an_edit_is_checked_in_the_same_order() {
    let server = team().serve();
    let mut ana = person(&server, "ana");
    let draft = ana.creates("controlled-operation", &payload("low"));
    let waiting = submitted(&server, "low");
    let held = ana.creates("controlled-operation", &payload("low"));
    person(&server, "sol").must(&held, &json!({"action": "hold", "comment": "wait"}));
    let at = |id: &str| format!("PATCH /v1/items/{id}");
    let stale: &[&str] = &[JSON, "If-Match: \"99\""];
    check(
        &server,
        &[
            ("amy", at(&waiting), stale, json!({"title": ""}).to_string(), "403 not_owner"),
            ("ana", at(&waiting), stale, json!({"title": ""}).to_string(), "422 invalid_request"),
            ("ana", at(&waiting), stale, json!({"title": "t"}).to_string(), "409 state_conflict"),
            ("ana", at(&held), stale, json!({"title": "t"}).to_string(), "409 item_held"),
            ("ana", at(&draft), stale, json!({}).to_string(), "422 invalid_request"),
            ("ana", at(&draft), stale, json!({"title": "t"}).to_string(), "412 version_mismatch"),
            ("ana", at(&draft), &[JSON, "If-Match: \"1\""], json!({"title": "t"}).to_string(), "200"),
        ],
    );
}
