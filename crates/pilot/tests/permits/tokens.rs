//! Permit tokens: who gets one, what it says, what the ledger says of it, and how targets read it.

use std::{fs, iter};

use data_encoding::BASE64URL_NOPAD;
use pilot_core::time::Time;
use pilot_setup::permit_key::PermitKeys;
use serde_json::{Value, json};

use crate::operations::second_place::verifier_key;
use crate::permits::download::started;
use crate::permits::readers::{Reader, read_by};
use crate::support::harness::{Installation, Port, Server, bearer, mode, set_mode};
use crate::support::team::{JSON, Person, TEAM, cleared, person, team, token};
use crate::support::wire::Response;

const AUDIENCE: &str = "vault.example";

/// A team whose service issues tokens, under an address that its own tests can reach.
fn installation() -> (Installation, Server, Port) {
    let installation = team();
    // The issuer has to be known before the service listens, so its port is reserved for as long as the test runs.
    let port = Port::reserve();
    let address = port.address();
    let permits = format!("[permits]\nissuer = \"http://{address}\"\naudiences = [\"{AUDIENCE}\", \"k8s\"]\n");
    installation.write("pilot.toml", &format!("listen = \"{address}\"\n{permits}"));
    let server = installation.serve();
    (installation, server, port)
}

fn asks(person: &mut Person, id: &str, body: &Value) -> Response {
    person.post(&format!("/v1/items/{id}/permit-token"), body)
}

fn part(token: &str, number: usize) -> Value {
    let part = token.split('.').nth(number).unwrap();
    serde_json::from_slice(&BASE64URL_NOPAD.decode(part.as_bytes()).unwrap()).unwrap()
}

fn seconds(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<Time>().unwrap().unix_micros() / 1_000_000
}

#[test]
fn a_token_says_what_was_approved_and_its_entry_came_first() {
    let (installation, server, _port) = installation();
    let id = started(&server, &json!({"argv": ["/bin/true"]}));
    let mut eli = person(&server, "eli");
    let issued = asks(&mut eli, &id, &json!({"audience": AUDIENCE}));
    assert_eq!(issued.status, 201, "{}", issued.text());
    assert_eq!(issued.header("cache-control"), Some("no-store"));
    let issued = issued.json();
    let token = issued["token"].as_str().unwrap();
    let keys = server.get("/.well-known/jwks.json", &[]).json();
    let header = part(token, 0);
    assert_eq!(header, json!({"alg": "ES256", "kid": keys["keys"][0]["kid"], "typ": "JWT"}));
    let (claims, item) = (part(token, 1), eli.item(&id));
    let entry = issued["entry"].as_u64().unwrap();
    let events = eli.get(&format!("/v1/events?after={}", entry - 1)).json();
    let recorded = &events["events"][0];
    assert_eq!((&recorded["type"], &recorded["item"]), (&json!("permit.issued"), &json!(id)), "{recorded}");
    assert_eq!((&recorded["actor_id"], &recorded["version"]), (&json!("eli"), &item["version"]));
    let details = json!({"audience": AUDIENCE, "expires_at": issued["expires_at"], "jti": issued["jti"], "key_id": header["kid"]});
    assert_eq!(recorded["details"], details);
    let at = seconds(&recorded["at"]);
    let exp = claims["exp"].as_i64().unwrap();
    assert!((599..=600).contains(&(exp - at)), "{claims}");
    assert_eq!(
        claims,
        json!({
            "iss": server.url(), "aud": AUDIENCE, "sub": "workflow:controlled-operation:executor:eli",
            "iat": at, "nbf": at, "exp": seconds(&issued["expires_at"]), "jti": issued["jti"],
            "txn": id, "attempt": 1, "content_digest": item["content_digest"], "executor": "eli",
            "approved_by": ["ben"], "cleared_by": "sol", "entry": entry,
            "authorization_details": [{
                "type": "pilot_operation", "identifier": id, "actions": ["executing"],
                "workflow": "controlled-operation", "content_digest": item["content_digest"],
            }],
        })
    );
    let history = eli.get(&format!("/v1/items/{id}/history")).json();
    let shown = history["history"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&shown["action"], &shown["entry"]), (&json!("permit"), &json!(entry)));
    // Auditors' tools know the entry.
    let bundle = person(&server, "ada").get(&format!("/v1/evidence?item={id}"));
    fs::write(installation.path("bundle.zip"), &bundle.body).unwrap();
    let key = verifier_key(&installation).to_string();
    installation.pilot(&["evidence", "verify", "bundle.zip", "--key", &key]).expect(0);
    let page = installation.pilot(&["evidence", "report", "bundle.zip", "--key", &key]).expect(0).stdout;
    assert!(page.contains("permit token issued"));
    let log = server.stop().expect(0);
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
    // The token is in no file and no log line.
    assert!(!log.stderr.contains(token));
    let signature = token.rsplit('.').next().unwrap().as_bytes();
    for file in installation.files() {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(signature.len()).any(|window| window == signature), "{}", file.display());
    }
    assert_eq!(mode(&installation.path("data/permit.key")), 0o600);
}

#[test]
fn only_the_holder_of_the_lease_gets_a_token_and_only_while_the_effect_is_under_way() {
    let (_installation, server, _port) = installation();
    let id = cleared(&server);
    let body = json!({"audience": AUDIENCE});
    let verdict = |who: &str| asks(&mut person(&server, who), &id, &body).verdict();
    assert_eq!(verdict("eli"), "409 state_conflict");
    person(&server, "eli").decides(&id, "start");
    for (who, role) in TEAM {
        let expected = match (who, role) {
            ("eli", _) => "201",
            (_, "executor") => "403 not_owner",
            _ => "403 role_forbidden",
        };
        assert!(verdict(who).starts_with(expected), "{who}: {}", verdict(who));
    }
    person(&server, "sol").must(&id, &json!({"action": "hold", "comment": "wait"}));
    assert_eq!(verdict("eli"), "409 item_held");
    person(&server, "sol").must(&id, &json!({"action": "release", "comment": "go on"}));
    person(&server, "eli").must(&id, &json!({"action": "succeed"}));
    assert_eq!(verdict("eli"), "409 state_conflict");
    server.stop().expect(0);
}

#[test]
fn a_token_is_for_one_configured_audience_and_for_an_hour_or_the_lease_at_most() {
    let (_installation, server, _port) = installation();
    let id = started(&server, &json!("rotate"));
    let mut eli = person(&server, "eli");
    for (body, expected) in [
        (json!({"audience": "elsewhere"}), "422 invalid_request"),
        (json!({"audience": [AUDIENCE]}), "422 invalid_request"),
        (json!({"audience": ""}), "422 invalid_request"),
        (json!({}), "422 invalid_request"),
        (json!({"audience": AUDIENCE, "expires_in_s": 0}), "422 invalid_request"),
        (json!({"audience": AUDIENCE, "expires_in_s": 3601}), "422 invalid_request"),
        (json!({"audience": AUDIENCE, "expires_in_s": "60"}), "422 invalid_request"),
        (json!({"audience": AUDIENCE, "sub": "root"}), "422 invalid_request"),
    ] {
        assert_eq!(asks(&mut eli, &id, &body).verdict(), expected, "{body}");
    }
    let long = asks(&mut eli, &id, &json!({"audience": "k8s", "expires_in_s": 3600})).json();
    let lease = seconds(&eli.item(&id)["lease"]["expires_at"]);
    assert_eq!(seconds(&long["expires_at"]), lease, "no longer than the lease");
    let short = asks(&mut eli, &id, &json!({"audience": "k8s", "expires_in_s": 5})).json();
    let claims = part(short["token"].as_str().unwrap(), 1);
    assert!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap() <= 5, "{claims}");
    server.stop().expect(0);
}

#[test]
fn a_repeated_request_gets_the_same_claims_for_its_own_caller_and_nothing_once_it_ended() {
    let (_installation, server, _port) = installation();
    let id = started(&server, &json!("rotate"));
    let path = format!("POST /v1/items/{id}/permit-token");
    let body = json!({"audience": AUDIENCE}).to_string();
    let asks =
        |who: &str, body: &str| person(&server, who).call(&path, &[JSON, "Idempotency-Key: once"], body.as_bytes());
    let first = asks("eli", &body).json();
    let again = asks("eli", &body);
    assert_eq!(again.status, 201, "{}", again.text());
    let again = again.json();
    let claims = |answer: &Value| part(answer["token"].as_str().unwrap(), 1);
    assert_eq!(claims(&first), claims(&again), "one entry, one token");
    assert_eq!(first["entry"], again["entry"]);
    assert_eq!(asks("eva", &body).verdict(), "403 not_owner", "a key belongs to its actor");
    let other = json!({"audience": "k8s"}).to_string();
    assert_eq!(asks("eli", &other).verdict(), "422 idempotency_key_reused");
    person(&server, "sol").must(&id, &json!({"action": "hold", "comment": "stop"}));
    assert_eq!(asks("eli", &body).verdict(), "409 item_held");
    person(&server, "sol").must(&id, &json!({"action": "release", "comment": "go"}));
    assert_eq!(asks("eli", &body).status, 201);
    person(&server, "eli").must(&id, &json!({"action": "fail"}));
    assert_eq!(asks("eli", &body).verdict(), "409 state_conflict");
    person(&server, "eli").decides(&id, "retry");
    assert_eq!(
        asks("eli", &body).verdict(),
        "409 state_conflict",
        "the token of an earlier attempt does not come back"
    );
    server.stop().expect(0);
}

#[test]
fn without_permits_configured_there_is_nothing_to_find() {
    let installation = team();
    let server = installation.serve();
    for path in ["/.well-known/openid-configuration", "/.well-known/jwks.json"] {
        assert_eq!(server.get(path, &[]).verdict(), "404 not_found");
    }
    let id = started(&server, &json!("rotate"));
    let refused = asks(&mut person(&server, "eli"), &id, &json!({"audience": AUDIENCE}));
    assert_eq!(refused.verdict(), "404 not_found");
    assert!(!installation.path("data/permit.key").exists());
    server.stop().expect(0);
}

#[test]
fn the_service_itself_never_takes_a_permit_token_for_a_credential_nor_into_content() {
    let (_installation, server, _port) = installation();
    let id = started(&server, &json!("rotate"));
    let mut eli = person(&server, "eli");
    let token = asks(&mut eli, &id, &json!({"audience": AUDIENCE})).json()["token"].as_str().unwrap().to_owned();
    assert_eq!(server.get("/v1/session", &[&bearer(&token)]).verdict(), "401 credential_required");
    let comment = eli.post(&format!("/v1/items/{id}/comments"), &json!({"text": format!("use {token} please")}));
    assert_eq!(comment.verdict(), "422 token_in_content");
    let result = eli.acts(&id, &json!({"action": "succeed", "inputs": {"result": token}}));
    assert_eq!(result.verdict(), "422 token_in_content");
    server.get(&format!("/docs?t={token}"), &[]);
    let log = server.stop().expect(0);
    assert!(!log.stderr.contains(&token), "{}", log.stderr);
}

#[test]
fn other_peoples_libraries_read_a_token_from_the_issuers_address_on() {
    let (_installation, server, _port) = installation();
    let id = started(&server, &json!("rotate"));
    let issued = asks(&mut person(&server, "eli"), &id, &json!({"audience": AUDIENCE})).json();
    let token = issued["token"].as_str().unwrap();
    for reader in [Reader::Jose, Reader::PyJwt] {
        let read = |audience: &str, token: &str| read_by(reader, &server.url(), audience, token);
        let claims = read(AUDIENCE, token).expect(0).json();
        assert_eq!((&claims["txn"], &claims["executor"]), (&json!(id), &json!("eli")), "{reader:?}");
        read("elsewhere", token).expect(1);
        let at = token.len() - 20;
        let other = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
        read(AUDIENCE, &format!("{}{other}{}", &token[..at], &token[at + 1..])).expect(1);
    }
    server.stop().expect(0);
}

#[test]
fn keys_are_rotated_through_two_and_tokens_of_both_are_read() {
    let (installation, server, _port) = installation();
    let id = started(&server, &json!("rotate"));
    let issue = |server: &Server| {
        let issued = asks(&mut person(server, "eli"), &id, &json!({"audience": AUDIENCE})).json();
        (issued["token"].as_str().unwrap().to_owned(), issued["key_id"].as_str().unwrap().to_owned())
    };
    let keys = |arguments: &[&str]| {
        let all = [&["permit", "key"], arguments, &["--config", "pilot.toml", "--output", "json"]].concat();
        installation.pilot(&all)
    };
    let (old_token, old) = issue(&server);
    server.stop().expect(0);
    let listed = keys(&["new"]).expect(0).json();
    assert_eq!(listed["keys"].as_array().unwrap().len(), 2);
    let new = listed["keys"][1]["key_id"].as_str().unwrap().to_owned();
    keys(&["new"]).expect(1).says(&["there are two keys already"]);
    let server = installation.serve();
    assert_eq!(issue(&server).1, old, "a new key is published before it signs");
    server.stop().expect(0);
    keys(&["retire", &old]).expect(1).says(&["signs; let another one sign first"]);
    keys(&["use", &new]).expect(0);
    let server = installation.serve();
    let (new_token, signed_by) = issue(&server);
    assert_eq!(signed_by, new);
    for token in [&old_token, &new_token] {
        read_by(Reader::Jose, &server.url(), AUDIENCE, token).expect(0);
    }
    let started = person(&server, "ada").get("/v1/events?limit=200").json();
    let mut starts = started["events"].as_array().unwrap().iter().filter(|event| event["type"] == "service.started");
    assert_eq!(starts.next_back().unwrap()["details"]["permit_keys"], json!([new, old]));
    server.stop().expect(0);
    keys(&["retire", &old]).expect(0);
    let server = installation.serve();
    read_by(Reader::Jose, &server.url(), AUDIENCE, &old_token).expect(1);
    read_by(Reader::Jose, &server.url(), AUDIENCE, &new_token).expect(0);
    server.stop().expect(0);
}

#[test]
fn a_key_whose_id_begins_with_a_hyphen_can_be_named_in_a_command() {
    let (installation, server, _port) = installation();
    server.stop().expect(0);
    let hyphened =
        || iter::repeat_with(|| PermitKeys::generate().unwrap()).find(|keys| keys.signing_id().starts_with('-'));
    let (first, second) = (hyphened().unwrap(), hyphened().unwrap());
    let text = format!("{}{}\n", *first.to_text(), second.to_text().lines().nth(1).unwrap());
    fs::write(installation.path("data/permit.key"), text).unwrap();
    installation.pilot(&["permit", "key", "use", second.signing_id()]).expect(0);
    installation.pilot(&["permit", "key", "retire", first.signing_id(), "--config", "pilot.toml"]).expect(0);
    let left = installation.pilot(&["permit", "key", "list", "--output", "json"]).expect(0).json();
    assert_eq!(left["keys"], json!([{"key_id": second.signing_id(), "signs": true}]));
    installation.pilot(&["permit", "key", "use", "--confg", "pilot.toml"]).expect(2);
}

#[test]
fn a_token_goes_into_a_file_and_never_onto_the_terminal() {
    let (installation, server, _port) = installation();
    let id = started(&server, &json!("rotate"));
    let url = server.url();
    let arguments = ["permit", "token", &id, "--audience", AUDIENCE, "--out", "token", "--url", &url];
    let done = installation.pilot_as(&token("eli"), &arguments).expect(0);
    let written = installation.read("token");
    assert_eq!((written.split('.').count(), mode(&installation.path("token"))), (3, 0o600));
    done.never_says(&written);
    installation.pilot_as(&token("eva"), &arguments).expect(1).says(&["403 not_owner"]);
    server.stop().expect(0);
}

#[test]
fn a_damaged_or_readable_key_file_stops_the_start_and_so_does_a_faulty_section() {
    let (installation, server, _port) = installation();
    server.stop().expect(0);
    let key = installation.path("data/permit.key");
    set_mode(&key, 0o644);
    installation.serve_in_vain().expect(2).says(&["permit.key", "chmod 600"]);
    set_mode(&key, 0o600);
    fs::write(&key, "pilot permit keys v1\nAAAA\n").unwrap();
    installation.serve_in_vain().expect(2).says(&["permit.key", "these are not permit keys"]);
    for (issuer, audiences, said) in [
        ("http://pilot.example", "[\"a\"]", "http is allowed only for this machine"),
        ("https://pilot.example/", "[\"a\"]", "a slash at the end"),
        ("https://pilot.example?x", "[\"a\"]", "a query"),
        ("https://pilot.example", "[]", "1 to 32 different names"),
        ("https://pilot.example", "[\"a\", \"a\"]", "1 to 32 different names"),
        ("https://pilot.example", "[\"a b\"]", "1 to 32 different names"),
    ] {
        let text = format!("listen = \"127.0.0.1:0\"\n[permits]\nissuer = \"{issuer}\"\naudiences = {audiences}\n");
        installation.write("pilot.toml", &text);
        installation.serve_in_vain().expect(2).says(&[said]);
    }
}
