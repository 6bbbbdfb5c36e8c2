//! The life of a credential in production: used, expired, revoked, refused, and each of it in the ledger.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pilot_ledger::clock::Clock;
use serde_json::{Value, json};

use crate::support::authority::{IDENTITY, MESH, ROLE_MAP, configure};
use crate::support::harness::{
    Installation, PATIENCE, Port, Server, bearer, credential_file, digest, expiring_credential_file, now, role_map,
};

const MANY: &str =
    "[rate_limits]\nreads_per_minute = 1000000\nwrites_per_minute = 1000000\nfailed_per_minute = 1000000\n";
const FAR: &str = "2090-01-01T00:00:00Z";
const ANA: &str = "ana-ana-ana-ana-ana-ana-ana-ana-ana-1";
const ANA_NEW: &str = "ana-ana-ana-ana-ana-ana-ana-ana-ana-2";
const SAM: &str = "sam-sam-sam-sam-sam-sam-sam-sam-sam-1";
const ADA: &str = "ada-ada-ada-ada-ada-ada-ada-ada-ada-1";
const TEAM: [(&str, &str, &str); 3] =
    [("ana", "initiator", ANA), ("sam", "security_admin", SAM), ("ada", "auditor", ADA)];

/// Ana, an initiator; sam, a security_admin; ada, an auditor; each with one credential until then.
fn installation(expires_at: &str) -> Installation {
    let installation = Installation::with(&[]);
    installation.write("credentials.json", &expiring_credential_file(&TEAM, expires_at));
    installation
        .write("role-map.json", &role_map(&[("ana", "initiator"), ("sam", "security_admin"), ("ada", "auditor")]));
    configure(&installation, "production", &[MESH, ROLE_MAP, MANY, IDENTITY]);
    installation
}

fn entry(id: &str, actor: &str, role: &str, token: &str, not_before: &str, expires_at: &str) -> Value {
    json!({"credential_id": id, "actor_id": actor, "roles": [role], "token_sha3_256": digest(token.as_bytes()),
        "not_before": not_before, "expires_at": expires_at})
}

fn credentials(entries: &[Value]) -> String {
    json!({"schema_version": 2, "credentials": entries}).to_string()
}

fn revoke(server: &Server, token: &str, id: &str, body: &str) -> (String, Value) {
    revoke_with(server, token, id, body, "Accept: */*")
}

fn revoke_with(server: &Server, token: &str, id: &str, body: &str, header: &str) -> (String, Value) {
    let line = format!("POST /v1/credentials/{id}/revocation");
    let length = format!("Content-Length: {}", body.len());
    let mut wire = server.wire();
    let head = [&*bearer(token), "Content-Type: application/json", &length, header].join("\r\n");
    wire.send(format!("{line} HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n{body}").as_bytes());
    let response = wire.response().unwrap();
    (response.verdict(), response.json())
}

/// What ada finds in the ledger about credentials: the type, whose, and what else is told.
fn ledger(server: &Server) -> Vec<String> {
    let events = server.get("/v1/events?limit=200", &[&bearer(ADA)]).json();
    let about = |event: &&Value| event["type"].as_str().unwrap().starts_with("credential.");
    let told = |event: &Value| {
        let (kind, details) = (event["type"].as_str().unwrap(), &event["details"]);
        let why = details["reason"].as_str().or(details["cause"].as_str()).unwrap_or("");
        let by = event["actor_id"].as_str().unwrap_or("nobody");
        let id = &details["credential"]["credential_id"];
        format!("{kind} {} {why} by {by}", id.as_str().unwrap()).replace("  ", " ")
    };
    events["events"].as_array().unwrap().iter().filter(about).map(told).collect()
}

/// Polls until the ledger has this line.
fn await_in_ledger(server: &Server, line: &str) -> Vec<String> {
    let end = now() + PATIENCE;
    loop {
        let lines = ledger(server);
        if lines.iter().any(|found| found == line) {
            return lines;
        }
        assert!(now() < end, "{line} is not in the ledger: {lines:#?}");
    }
}

fn open_feed(server: &Server, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET /v1/events HTTP/1.1\r\nHost: a\r\n{}\r\nAccept: text/event-stream\r\n\r\n", bearer(token));
    stream.write_all(head.as_bytes()).unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(": connected") {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..length]);
    }
    stream
}

/// Reads until the chunk that says that nothing more will come.
fn read_to_the_last_chunk(mut stream: TcpStream) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"0\r\n\r\n") {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).expect("the feed must end by itself");
        assert!(length > 0, "the feed ends in order: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..length]);
    }
}

fn in_seconds(seconds: u64) -> String {
    Clock::System.now().plus(Duration::from_secs(seconds)).to_string()
}

#[test]
fn a_revoked_credential_is_refused_at_once_ends_its_feeds_and_no_restart_and_no_other_name_brings_it_back() {
    let installation = installation(FAR);
    let server = installation.serve();
    let feed = open_feed(&server, ANA);
    assert_eq!(server.session(ANA).status, 200);
    let keyed = || revoke_with(&server, SAM, "ana-1", "{\"comment\":\"the laptop is gone\"}", "Idempotency-Key: k");
    let (verdict, revocation) = keyed();
    assert_eq!(verdict, "201");
    assert_eq!(keyed(), ("201".to_owned(), revocation.clone()), "by the key");
    assert_eq!(
        (&revocation["credential_id"], &revocation["actor_id"], &revocation["revoked_by"]["actor_id"]),
        (&json!("ana-1"), &json!("ana"), &json!("sam"))
    );
    assert_eq!(server.session(ANA).verdict(), "401 credential_required");
    read_to_the_last_chunk(feed);
    assert_eq!(revoke(&server, SAM, "ana-1", ""), ("201".into(), revocation.clone()), "once is enough");
    assert_eq!(server.session(SAM).status, 200);
    let lines = await_in_ledger(&server, "credential.refused ana-1 revoked by nobody");
    assert_eq!(lines.iter().filter(|line| line.starts_with("credential.revoked")).count(), 1, "{lines:#?}");
    assert!(lines.contains(&"credential.revoked ana-1 asked by sam".to_owned()), "{lines:#?}");
    server.stop().expect(0);

    let server = installation.serve();
    assert_eq!(server.session(ANA).status, 401);
    assert_eq!(revoke(&server, SAM, "ana-1", "{}").1["entry"], revocation["entry"]);
    server.stop().expect(0);
    let renamed = installation.read("credentials.json").replace("ana-1", "ana-again");
    installation.write("credentials.json", &renamed);
    let server = installation.serve();
    assert_eq!(server.session(ANA).status, 401, "the same token by another name");
    server.stop().expect(0);
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
}

#[test]
fn revocation_is_for_the_security_admin_and_for_credentials_there_are() {
    let installation = installation(FAR);
    let server = installation.serve();
    for (token, id, body, expected) in [
        (ANA, "sam-1", "{}", "403 role_forbidden"),
        (ADA, "sam-1", "{}", "403 role_forbidden"),
        ("nobody-nobody-nobody-nobody-nobody-nobody", "sam-1", "{}", "401 credential_required"),
        (SAM, "eve-1", "{}", "404 not_found"),
        (SAM, "%20", "{}", "404 not_found"),
        (SAM, "ana-1", "[]", "422 invalid_request"),
        (SAM, "ana-1", "{\"actor_id\":\"x\"}", "422 invalid_request"),
        (SAM, "ana-1", "{\"comment\":\" \"}", "422 invalid_request"),
    ] {
        assert_eq!(revoke(&server, token, id, body).0, expected, "{id} {body}");
    }
    assert_eq!(server.session(ANA).status, 200, "nothing of it moved anything");
    // Someone else's token in content is known to a stranger, like one in a URL.
    let exposing = format!("{{\"comment\":\"{ANA}\"}}");
    assert_eq!(revoke(&server, SAM, "eve-1", &exposing).0, "422 token_in_content");
    assert_eq!(server.session(ANA).status, 401);
    await_in_ledger(&server, "credential.revoked ana-1 token_in_content by nobody");
    let (verdict, _) = revoke(&server, SAM, "sam-1", "{}");
    assert_eq!(verdict, "201", "anyone may always move towards less right");
    assert_eq!(server.session(SAM).status, 401);
}

#[test]
fn a_request_whose_body_comes_after_the_revocation_is_refused() {
    let installation = installation(FAR);
    let server = installation.serve();
    let body = "{\"workflow\":\"controlled-operation\",\"title\":\"late\",\"payload\":{}}";
    let head = format!(
        "POST /v1/items HTTP/1.1\r\nHost: a\r\n{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        bearer(ANA),
        body.len()
    );
    let (early, late) = body.split_at(10);
    let mut wire = server.wire();
    wire.send(format!("{head}{early}").as_bytes());
    await_in_ledger(&server, "credential.first_used ana-1 by ana");
    assert_eq!(revoke(&server, SAM, "ana-1", "").0, "201");
    wire.send(late.as_bytes());
    assert_eq!(wire.response().unwrap().verdict(), "401 credential_required");
    let items = server.get("/v1/items", &[&bearer(ADA)]).json();
    assert_eq!(items["items"], json!([]), "nothing was moved by a credential that had ended");
}

#[test]
fn a_credential_expires_by_itself_also_under_an_open_feed_and_never_revives() {
    let installation = installation(FAR);
    let until = in_seconds(3);
    let of_ana = entry("ana-1", "ana", "initiator", ANA, "2020-01-01T00:00:00Z", &until);
    let ada = entry("ada-1", "ada", "auditor", ADA, "2020-01-01T00:00:00Z", FAR);
    let of_sam = entry("sam-1", "sam", "security_admin", SAM, "2089-01-01T00:00:00Z", FAR);
    installation.write("credentials.json", &credentials(&[of_ana, ada.clone(), of_sam.clone()]));
    let server = installation.serve();
    let feed = open_feed(&server, ANA);
    assert_eq!(server.session(SAM).status, 401, "its time has not come");
    let session = server.session(ANA);
    assert_eq!((session.status, session.header("credential-expires-at")), (200, Some(until.as_str())));
    server.wait_for_log("a credential of `ana` expires in 0 hours");
    read_to_the_last_chunk(feed);
    assert_eq!(server.session(ANA).verdict(), "401 credential_required");
    let lines = await_in_ledger(&server, "credential.refused ana-1 expired by nobody");
    assert!(lines.contains(&"credential.expired ana-1 by nobody".to_owned()), "{lines:#?}");
    let states = server.get("/v1/credentials", &[&bearer(ADA)]);
    let shown: Vec<_> = states.json()["credentials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|credential| format!("{} {}", credential["credential_id"], credential["state"]).replace('"', ""))
        .collect();
    assert_eq!(shown, ["ana-1 expired", "ada-1 live", "sam-1 not_yet"]);
    assert!(!states.text().contains(&digest(ANA.as_bytes())));
    server.stop().expect(0);

    let longer = entry("ana-1", "ana", "initiator", ANA, "2020-01-01T00:00:00Z", FAR);
    installation.write("credentials.json", &credentials(&[longer, ada, of_sam]));
    let server = installation.serve();
    assert_eq!(server.session(ANA).status, 401, "what has expired stays so; a new token is needed");
    let expired = ledger(&server).iter().filter(|line| line.starts_with("credential.expired")).count();
    assert_eq!(expired, 1);
}

#[test]
fn a_live_token_in_a_url_is_revoked_by_the_service_itself() {
    let installation = installation(FAR);
    let server = installation.serve();
    let refused = server.get(&format!("/v1/session?token={ANA}"), &[]);
    assert_eq!(refused.verdict(), "400 token_in_url");
    assert!(refused.text().contains("was revoked"), "{}", refused.text());
    assert_eq!(server.session(ANA).status, 401);
    await_in_ledger(&server, "credential.revoked ana-1 token_in_url by nobody");
    assert_eq!(server.get(&format!("/v1/session?token={ANA}"), &[]).status, 400);
    assert_eq!(ledger(&server).iter().filter(|line| line.starts_with("credential.revoked")).count(), 1);
    server.stop().expect(0);
    assert_eq!(installation.serve().session(ANA).status, 401);
}

#[test]
fn a_rotation_leaves_its_evidence_in_the_ledger() {
    let installation = installation(FAR);
    let [old, new] = [("ana-1", ANA), ("ana-2", ANA_NEW)]
        .map(|(id, token)| entry(id, "ana", "initiator", token, "2020-01-01T00:00:00Z", FAR));
    let others = [("sam", "security_admin", SAM), ("ada", "auditor", ADA)]
        .map(|(actor, role, token)| entry(&format!("{actor}-1"), actor, role, token, "2020-01-01T00:00:00Z", FAR));
    for (entries, shown) in [
        (vec![old.clone()], vec![ANA]),
        (vec![old, new.clone()], vec![ANA, ANA_NEW]),
        (vec![new], vec![ANA_NEW, ANA, ANA, ANA_NEW]),
    ] {
        installation.write("credentials.json", &credentials(&[&entries[..], &others].concat()));
        let server = installation.serve();
        for token in shown {
            server.session(token);
        }
        server.stop().expect(0);
    }
    let server = installation.serve();
    let lines: Vec<_> = ledger(&server).into_iter().filter(|line| line.contains("ana-")).collect();
    assert_eq!(
        lines,
        [
            "credential.first_used ana-1 by ana",
            "credential.first_used ana-2 by ana",
            "credential.refused ana-1 removed by nobody"
        ]
    );
    let events = server.get("/v1/events?limit=200", &[&bearer(ADA)]).json();
    let changes: Vec<_> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "service.started")
        .map(|event| &event["details"]["credentials"])
        .map(|changes| (changes["added"].as_array().unwrap().len(), changes["removed"].as_array().unwrap().len()))
        .collect();
    assert_eq!(changes, [(3, 0), (1, 0), (0, 1), (0, 0)]);
    let for_ana = server.get("/v1/events?limit=200", &[&bearer(ANA_NEW)]).text();
    assert!(!for_ana.contains("credential."), "not for an initiator: {for_ana}");
}

#[test]
fn the_pilot_profile_writes_none_of_it_and_revokes_nothing_by_itself() {
    let installation = Installation::with(&TEAM);
    let server = installation.serve();
    assert_eq!(server.session(ANA).json(), json!({"actor_id": "ana", "role": "initiator"}));
    assert_eq!(server.get(&format!("/v1/session?token={ANA}"), &[]).verdict(), "400 token_in_url");
    assert_eq!(server.session(ANA).status, 200, "the operator rotates it");
    server.stop().expect(0);
    let server = installation.serve();
    assert_eq!(ledger(&server), [""; 0]);
}

#[test]
fn what_will_expire_soon_is_counted_for_the_monitoring() {
    let installation = installation(&in_seconds(3600));
    let port = Port::reserve();
    let ops = format!("[ops]\nlisten = '{}'\n", port.address());
    configure(&installation, "production", &[MESH, ROLE_MAP, MANY, IDENTITY, &ops]);
    let server = installation.serve();
    server.wait_for_log("a credential of `sam` expires in 0 hours; rotate it before");
    let text = port.metrics();
    assert!(text.contains("\npilot_credentials_expiring 3\n"), "{text}");
    assert!(text.contains("\npilot_credentials_next_expiry_seconds "), "{text}");
    assert_eq!(revoke(&server, SAM, "ana-1", "").0, "201");
    let text = port.metrics();
    assert!(text.contains("\npilot_credentials_expiring 2\n"), "what has ended needs no rotation: {text}");
}

#[test]
fn a_credential_that_is_valid_for_longer_than_the_configuration_allows_stops_the_start() {
    let installation = installation("2021-01-01T00:00:00Z");
    let allow = |days: u16| {
        let section = format!("[credentials]\nrole_map = 'role-map.json'\nlifetime_days_max = {days}\n");
        configure(&installation, "production", &[MESH, &section, MANY, IDENTITY]);
    };
    allow(366);
    installation.serve().stop().expect(0);
    allow(365);
    let refusal = "is valid for more than the 365 day(s) of credentials.lifetime_days_max";
    installation.serve_in_vain().expect(2).says(&["/credentials/0", refusal]);
    configure(&installation, "production", &[MESH, "[credentials]\nlifetime_days_max = 0\n", MANY, IDENTITY]);
    installation.serve_in_vain().expect(2).says(&["must be from 1 to 3650"]);
}

#[test]
fn the_wrong_version_of_the_file_and_faults_in_it_stop_the_start() {
    let installation = installation(FAR);
    let plain = credential_file(&TEAM);
    for (text, words) in [
        (plain, &["/schema_version: must be the integer 2"][..]),
        (
            credentials(&[entry("x y", "ana", "initiator", ANA, "2020", FAR)]),
            &["/credentials/0/credential_id", "/credentials/0/not_before"],
        ),
        (credentials(&[entry(ANA, "ana", "initiator", ANA, "2020-01-01T00:00:00Z", FAR)]), &["is a token"]),
    ] {
        installation.write("credentials.json", &text);
        let finished = installation.serve_in_vain().expect(2);
        finished.says(words);
        finished.never_says(ANA);
        installation.pilot(&["check-config"]).expect(2).never_says(ANA);
    }
}

#[test]
fn why_a_credential_was_revoked_is_in_the_evidence_which_verifies() {
    let installation = installation("2190-01-01T00:00:00Z");
    let server = installation.serve();
    let (verdict, _) = revoke(&server, SAM, "ana-1", r#"{"comment":"left the company"}"#);
    assert_eq!(verdict, "201", "{}", server.last_lines());
    let (url, period) = (server.url(), ["--from", "2026-01-01T00:00:00Z", "--to", "2190-01-01T00:00:00Z"]);
    let export = [&["evidence", "export", "--out", "all.zip", "--url", &url], &period[..]].concat();
    installation.pilot_as(ADA, &export).expect(0);
    server.stop().expect(0);
    let key = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0);
    installation.pilot(&["evidence", "verify", "all.zip", "--key", key.stdout.trim()]).expect(0);
}
