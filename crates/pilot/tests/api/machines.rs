//! Machines over HTTP: they and the people who operate them are one person, and they cannot flood anybody.

use serde_json::{Value, json};

use crate::support::authority::{IDENTITY, MESH, ROLE_MAP, configure};
use crate::support::harness::{Installation, Server, expiring_credential_file};
use crate::support::team::{JSON, installation_of, payload, person, token};

const PEOPLE: [(&str, &str); 7] = [
    ("ana", "approver"),
    ("ben", "approver"),
    ("sol", "security_admin"),
    ("eve", "executor"),
    ("ada", "auditor"),
    ("bot", "initiator"),
    ("run", "executor"),
];

/// `bot` proposes and is ana's, who approves; `run` executes and is eve's.
fn map(bot: &Value) -> String {
    let human = |(name, role): &(&str, &str)| json!({"actor_id": name, "role": role});
    let mut actors: Vec<_> = PEOPLE[..5].iter().map(human).collect();
    actors.push(bot.clone());
    actors.push(json!({"actor_id": "run", "role": "executor", "kind": "machine", "operated_by": "eve"}));
    json!({"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": actors}).to_string()
}

fn bot() -> Value {
    json!({"actor_id": "bot", "role": "initiator", "kind": "machine", "operated_by": "ana"})
}

fn house(bot: &Value) -> Installation {
    let installation = installation_of(&PEOPLE);
    installation.write("role-map.json", &map(bot));
    installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\n[credentials]\nrole_map = 'role-map.json'\n");
    installation
}

fn proposed(server: &Server) -> (String, Value) {
    let mut bot = person(server, "bot");
    let id = bot.creates("controlled-operation", &payload("low"));
    bot.must(&id, &json!({"action": "submit"}));
    let digest = bot.item(&id)["content_digest"].clone();
    (id, digest)
}

#[test]
fn who_operates_the_machine_that_proposed_cannot_approve_and_the_refusal_says_who_can() {
    let installation = house(&bot());
    let server = installation.serve();
    let (id, digest) = proposed(&server);
    let approve = json!({"action": "approve", "content_digest": digest});
    let mut ana = person(&server, "ana");
    let refused = ana.acts(&id, &approve);
    assert_eq!(refused.verdict(), "403 separation_of_duties");
    assert_eq!(
        refused.json()["detail"],
        "ana took part in this item as initiator through bot, so ana cannot act on it as approver; ben can"
    );
    let item = ana.item(&id);
    assert!(item["actions"].as_array().unwrap().iter().all(|action| action != "approve"), "{item}");
    assert_eq!(item["created_by"], json!({"actor_id": "bot", "role": "initiator", "operated_by": "ana"}));
    person(&server, "ben").must(&id, &approve);
}

#[test]
fn what_a_machine_did_is_in_the_ledger_with_its_operator_and_the_evidence_holds() {
    let installation = house(&bot());
    let server = installation.serve();
    let (id, digest) = proposed(&server);
    person(&server, "ben").must(&id, &json!({"action": "approve", "content_digest": digest}));
    let history = person(&server, "ada").get(&format!("/v1/items/{id}/history")).json();
    let operated: Vec<_> = history["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["action"].clone(), line["operated_by"].clone()))
        .collect();
    let by_ana = |action: &str| (json!(action), json!("ana"));
    assert_eq!(operated, [by_ana("create"), by_ana("submit"), (json!("approve"), Value::Null)]);
    let actors = person(&server, "ada").get("/v1/actors").json();
    let find = |name: &str| actors["actors"].as_array().unwrap().iter().find(|one| one["actor_id"] == name).cloned();
    assert_eq!(find("run").unwrap()["operated_by"], "eve");
    assert_eq!(find("ana").unwrap().get("operated_by"), None);
    // The body of a session is exactly what was always promised.
    assert_eq!(server.session(&token("bot")).json(), json!({"actor_id": "bot", "role": "initiator"}));
    let url = server.url();
    let export = ["evidence", "export", "--url", &url, "--item", &id, "--out", "item.zip"];
    installation.pilot_as(&token("ada"), &export).expect(0);
    server.stop().expect(0);
    let key = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    let verify = ["evidence", "verify", "item.zip", "--key", key.trim(), "--output", "json"];
    let verified = installation.pilot(&verify).expect(0);
    let people = &verified.json()["items"][0]["people"];
    assert_eq!(people[1], json!({"actor_id": "bot", "role": "initiator", "operated_by": "ana"}), "{people}");
    installation.pilot(&["log", "fsck"]).expect(0);
}

#[test]
fn of_many_that_a_machine_proposes_at_once_exactly_the_allowed_number_is_accepted() {
    let installation = house(&json!({"actor_id": "bot", "role": "initiator", "kind": "machine", "operated_by": "ana",
        "max_open_items": 3}));
    let server = installation.serve();
    let body = json!({"workflow": "controlled-operation", "title": "t", "payload": payload("low")}).to_string();
    let mut connections: Vec<_> = (0..32).map(|_| person(&server, "bot")).collect();
    for connection in &mut connections {
        connection.send("POST /v1/items", &[JSON], body.as_bytes());
    }
    let answers: Vec<_> = connections.iter_mut().map(|connection| connection.answer()).collect();
    let created: Vec<_> = answers.iter().filter(|answer| answer.status == 201).map(|answer| answer.json()).collect();
    let refused = answers.iter().filter(|answer| answer.verdict() == "409 too_many_open").count();
    assert_eq!((created.len(), refused), (3, 29));
    // One that ends makes room for exactly one more.
    let mut bot = person(&server, "bot");
    bot.must(created[0]["id"].as_str().unwrap(), &json!({"action": "withdraw"}));
    assert_eq!(bot.call("POST /v1/items", &[JSON], body.as_bytes()).status, 201);
    let refused = bot.call("POST /v1/items", &[JSON], body.as_bytes());
    assert_eq!(
        refused.json()["detail"],
        "bot is a machine and has 3 items that have not ended; one of them must end first"
    );
}

#[test]
fn a_machine_that_decides_or_that_nobody_answers_for_is_warned_of_in_a_pilot_and_refused_in_production() {
    let loose = json!({"actor_id": "bot", "role": "approver", "kind": "machine"});
    let people: Vec<_> =
        PEOPLE.iter().map(|(name, role)| if *name == "bot" { ("bot", "approver") } else { (*name, *role) }).collect();
    let installation = installation_of(&people);
    installation.write("role-map.json", &map(&loose));
    installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\n[credentials]\nrole_map = 'role-map.json'\n");
    let server = installation.serve();
    server.wait_for_log("/actors/5/role: is approver, but a machine cannot decide for people");
    server.wait_for_log("/actors/5/operated_by: is missing: name the person in this map who answers for this machine");
    drop(server);
    let tokens: Vec<_> = people.iter().map(|(name, _)| token(name)).collect();
    let entries: Vec<_> = people.iter().zip(&tokens).map(|((name, role), token)| (*name, *role, &**token)).collect();
    installation.write("credentials.json", &expiring_credential_file(&entries, "2090-01-01T00:00:00Z"));
    configure(&installation, "production", &[MESH, ROLE_MAP, "[rate_limits]\n", IDENTITY]);
    let refused = installation.serve_in_vain().expect(2);
    refused.says(&["/actors/5/role: is approver", "/actors/5/operated_by: is missing"]);
}
