//! Many people act on one item at the same moment, and exactly as many succeed as there is room for.

use std::sync::{Barrier, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::harness::{Installation, Server};
use crate::support::team::{JSON, Person, payload, person};

const ROUNDS: usize = 50;
const DUELLISTS: usize = 64;

/// One of each role, and 64 more of `role`, named `x0` to `x63`.
fn crowd(role: &'static str) -> Installation {
    let names: Vec<_> = (0..DUELLISTS).map(|number| format!("x{number}")).collect();
    let mut people = vec![
        ("ana", "initiator"),
        ("ben", "approver"),
        ("sol", "security_admin"),
        ("eli", "executor"),
        ("ada", "auditor"),
    ];
    people.extend(names.iter().map(|name| (name.as_str(), role)));
    crate::support::team::installation_of(&people)
}

/// Everyone sends `action` on each item in turn, all at once; the verdicts on each item.
fn duel(server: &Server, action: &str, items: &[(String, Value)]) -> Vec<Vec<String>> {
    let verdicts: Vec<_> = items.iter().map(|_| Mutex::new(Vec::new())).collect();
    let start = Barrier::new(DUELLISTS);
    thread::scope(|scope| {
        for number in 0..DUELLISTS {
            let (verdicts, start) = (&verdicts, &start);
            let mut person: Person = person(server, &format!("x{number}"));
            scope.spawn(move || {
                for ((id, digest), verdicts) in items.iter().zip(verdicts) {
                    start.wait();
                    let answer = person.acts(id, &json!({"action": action, "content_digest": digest}));
                    verdicts.lock().unwrap().push(answer.verdict());
                }
            });
        }
    });
    verdicts.into_iter().map(|verdicts| verdicts.into_inner().unwrap()).collect()
}

fn count(verdicts: &[String], wanted: &str) -> usize {
    verdicts.iter().filter(|verdict| *verdict == wanted).count()
}

fn items(server: &Server, risk: &str) -> Vec<(String, Value)> {
    let mut ana = person(server, "ana");
    let mut item = |_| {
        let id = ana.creates("controlled-operation", &payload(risk));
        ana.must(&id, &json!({"action": "submit"}));
        let digest = ana.item(&id)["content_digest"].clone();
        (id, digest)
    };
    (0..ROUNDS).map(&mut item).collect()
}

#[test]
fn of_64_approvers_at_once_exactly_two_count() {
    let server = crowd("approver").serve_with(&["--log-level", "warn"], &[]);
    let items = items(&server, "high");
    for ((id, _), verdicts) in items.iter().zip(duel(&server, "approve", &items)) {
        assert_eq!(
            (count(&verdicts, "201"), count(&verdicts, "409 state_conflict")),
            (2, DUELLISTS - 2),
            "{verdicts:?}"
        );
        let mut ada = person(&server, "ada");
        let item = ada.item(id);
        assert_eq!((&item["state"], &item["version"]), (&json!("approved"), &json!(4)));
        assert_eq!((&item["votes"]["have"], &item["votes"]["need"]), (&json!(2), &json!(2)));
        let moves = ada.get(&format!("/v1/items/{id}/transitions")).json();
        let moves: Vec<_> = moves["transitions"].as_array().unwrap().iter().map(|one| one["action"].clone()).collect();
        assert_eq!(moves, ["submit", "approve", "approve"]);
    }
    println!("{ROUNDS} rounds of {DUELLISTS}");
}

#[test]
fn of_64_executors_at_once_exactly_one_starts() {
    let server = crowd("executor").serve_with(&["--log-level", "warn"], &[]);
    let items = items(&server, "low");
    let (mut ben, mut sol) = (person(&server, "ben"), person(&server, "sol"));
    for (id, digest) in &items {
        ben.must(id, &json!({"action": "approve", "content_digest": digest}));
        let inputs = crate::support::team::with_times(&json!({"not_after": "in an hour"}), id);
        sol.must(id, &json!({"action": "clear", "content_digest": digest, "inputs": inputs}));
    }
    for ((id, _), verdicts) in items.iter().zip(duel(&server, "start", &items)) {
        assert_eq!(
            (count(&verdicts, "201"), count(&verdicts, "409 state_conflict")),
            (1, DUELLISTS - 1),
            "{verdicts:?}"
        );
        let item = person(&server, "ada").item(id);
        assert_eq!((&item["state"], &item["attempts"]), (&json!("executing"), &json!(1)));
    }
}

/// One person on 64 connections sends the same request on all of them at once; the verdicts.
fn at_once(server: &Server, name: &str, line: &str, headers: &[&str], body: &Value) -> Vec<String> {
    let mut connections: Vec<_> = (0..DUELLISTS).map(|_| person(server, name)).collect();
    for connection in &mut connections {
        connection.send(line, headers, body.to_string().as_bytes());
    }
    connections.iter_mut().map(|connection| connection.answer().verdict()).collect()
}

#[test]
fn one_person_on_64_connections_votes_once_edits_a_version_once_and_opens_one_emergency() {
    let server = crate::support::team::team().serve_with(&["--log-level", "warn"], &[]);
    for _ in 0..10 {
        let id = person(&server, "ana").creates("controlled-operation", &payload("high"));
        let line = format!("PATCH /v1/items/{id}");
        let edits = at_once(&server, "ana", &line, &[JSON, "If-Match: \"1\""], &json!({"title": "mine"}));
        assert_eq!((count(&edits, "200"), count(&edits, "412 version_mismatch")), (1, DUELLISTS - 1), "{edits:?}");
        assert_eq!(person(&server, "ana").must(&id, &json!({"action": "submit"}))["version"], 3);
        let digest = person(&server, "ben").item(&id)["content_digest"].clone();
        let line = format!("POST /v1/items/{id}/transitions");
        let vote = json!({"action": "approve", "content_digest": digest});
        let votes = at_once(&server, "ben", &line, &[JSON], &vote);
        assert_eq!((count(&votes, "201"), count(&votes, "409 already_decided")), (1, DUELLISTS - 1), "{votes:?}");
        assert_eq!(person(&server, "ada").item(&id)["votes"]["have"], 1);
        let body =
            json!({"workflow": "emergency-operation", "title": "now", "payload": crate::support::team::emergency()});
        let opened = at_once(&server, "amy", "POST /v1/items", &[JSON], &body);
        assert_eq!((count(&opened, "201"), count(&opened, "409 state_conflict")), (1, DUELLISTS - 1), "{opened:?}");
        let open = person(&server, "amy").get("/v1/items?created_by=amy&state=draft").json();
        let id = open["items"][0]["id"].as_str().unwrap().to_owned();
        person(&server, "amy").must(&id, &json!({"action": "withdraw"}));
    }
}
