//! The permit as the service hands it out: to whom, when, and what it holds.

use std::fs;

use pilot_evidence::permit::Permit;
use pilot_evidence::policy::Policy;
use serde_json::{Value, json};

use crate::operations::second_place::verifier_key;
use crate::support::harness::{Installation, Server};
use crate::support::team::{TEAM, cleared, payload, person, team, with_times};

/// An item with this operation that eli has started.
pub fn started(server: &Server, operation: &Value) -> String {
    let mut proposed = payload("low");
    proposed["operation"] = operation.clone();
    let mut ana = person(server, "ana");
    let id = ana.creates("controlled-operation", &proposed);
    ana.must(&id, &json!({"action": "submit"}));
    person(server, "ben").decides(&id, "approve");
    let digest = ana.item(&id)["content_digest"].clone();
    let inputs = with_times(&json!({"not_after": "in an hour"}), &id);
    person(server, "sol").must(&id, &json!({"action": "clear", "content_digest": digest, "inputs": inputs}));
    assert_eq!(person(server, "eli").decides(&id, "start").status, 201);
    id
}

/// The permit as eli downloads it.
#[track_caller]
pub fn permit(server: &Server, id: &str) -> Vec<u8> {
    let answer = person(server, "eli").get(&format!("/v1/items/{id}/permit"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.body
}

pub fn policy(installation: &Installation) -> String {
    format!("log {}\nquorum none\n", verifier_key(installation))
}

fn opened(installation: &Installation, bytes: &[u8]) -> Permit {
    Permit::open(bytes, &Policy::parse(policy(installation).as_bytes()).unwrap()).unwrap()
}

#[test]
fn only_the_holder_of_the_lease_gets_a_permit_and_only_while_the_effect_is_under_way() {
    let installation = team();
    let server = installation.serve();
    let id = cleared(&server);
    let path = format!("/v1/items/{id}/permit");
    let asks = |who: &str| person(&server, who).get(&path).verdict();
    assert_eq!(asks("eli"), "409 state_conflict");
    person(&server, "eli").decides(&id, "start");
    for (who, role) in TEAM {
        let expected = match (who, role) {
            ("eli", _) => "200",
            (_, "executor") => "403 not_owner",
            _ => "403 role_forbidden",
        };
        assert!(asks(who).starts_with(expected), "{who}: {}", asks(who));
    }
    let missing = path.replace(&id[..8], "00000000");
    assert_eq!(person(&server, "eli").get(&missing).verdict(), "404 not_found");
    assert_eq!(person(&server, "eli").get(&format!("{path}?documents=none")).verdict(), "422 invalid_request");
    person(&server, "sol").must(&id, &json!({"action": "hold", "comment": "wait"}));
    assert_eq!(asks("eli"), "409 item_held");
    person(&server, "sol").must(&id, &json!({"action": "release", "comment": "go on"}));
    assert_eq!(asks("eli"), "200");
    person(&server, "eli").must(&id, &json!({"action": "fail"}));
    assert_eq!(asks("eli"), "409 state_conflict");
    server.stop().expect(0);
}

#[test]
fn a_permit_is_the_evidence_as_of_the_start_and_of_each_later_attempt() {
    let installation = team();
    let server = installation.serve();
    let id = started(&server, &json!({"argv": ["/bin/true"]}));
    let mut eli = person(&server, "eli");
    for _ in 0..3 {
        eli.must(&id, &json!({"action": "heartbeat"}));
    }
    eli.post(&format!("/v1/items/{id}/comments"), &json!({"text": "half way"}));
    let first = opened(&installation, &permit(&server, &id));
    assert_eq!((&*first.begun.action, &*first.item.state, first.item.attempts), ("start", "executing", 1));
    assert_eq!(first.item.version, 5, "nothing after the start belongs to it");
    assert!(first.begun.is_attempt && first.begun.entry < first.size);
    let item = eli.item(&id);
    assert_eq!(item["entered_at"], first.begun.at.to_string());
    assert_eq!(item["content_digest"], first.item.content_digest.to_string());
    eli.must(&id, &json!({"action": "fail"}));
    eli.decides(&id, "retry");
    let second = opened(&installation, &permit(&server, &id));
    assert_eq!((&*second.begun.action, second.item.attempts), ("retry", 2));
    assert!(second.begun.entry > first.begun.entry);
    eli.must(&id, &json!({"action": "fail"}));
    eli.must(&id, &json!({"action": "roll_back"}));
    let third = opened(&installation, &permit(&server, &id));
    assert_eq!((&*third.begun.action, &*third.item.state), ("roll_back", "rolling_back"));
    assert!(!third.begun.is_attempt);
    server.stop().expect(0);
}

#[test]
fn a_permit_is_also_evidence_for_auditors_and_has_no_report() {
    let installation = team();
    let server = installation.serve();
    let id = started(&server, &json!({"argv": ["/bin/true"]}));
    let answer = person(&server, "eli").get(&format!("/v1/items/{id}/permit"));
    assert_eq!(answer.header("content-type"), Some("application/zip"));
    let name = format!("attachment; filename=\"permit-{id}.zip\"");
    assert_eq!(answer.header("content-disposition"), Some(&*name));
    fs::write(installation.path("permit.zip"), &answer.body).unwrap();
    let key = verifier_key(&installation).to_string();
    let verified = installation.pilot(&["evidence", "verify", "permit.zip", "--key", &key]).expect(0);
    assert!(verified.stdout.contains("executing v5"), "{verified:#?}");
    assert!(!answer.body.windows(11).any(|window| window == b"report.html"));
    server.stop().expect(0);
}

#[test]
fn an_executor_who_asks_for_another_ones_permit_is_recorded() {
    let installation = team();
    let server = installation.serve();
    let id = started(&server, &json!({"argv": ["/bin/true"]}));
    assert_eq!(person(&server, "eva").get(&format!("/v1/items/{id}/permit")).verdict(), "403 not_owner");
    server.stop().expect(0);
    let server = installation.serve();
    let events = person(&server, "ada").get("/v1/events").json();
    let refused = events["events"].as_array().unwrap().iter().find(|event| event["type"] == "access.refused").unwrap();
    assert_eq!((&refused["action"], &refused["actor_id"]), (&json!("permit"), &json!("eva")), "{refused}");
    server.stop().expect(0);
}
