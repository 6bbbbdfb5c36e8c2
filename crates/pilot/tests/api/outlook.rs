//! What one item says about what its caller can do, what that leads to, who is waited for, and what they have seen.

use pilot_core::document::ContentDigest;
use serde_json::{Value, json};

use crate::support::team::{JSON, Person, cleared, payload, person, submitted, team};

fn look(person: &mut Person, id: &str, digest: &Value) -> u16 {
    let body = json!({ "content_digest": digest }).to_string();
    person.call(&format!("PUT /v1/items/{id}/look"), &[JSON], body.as_bytes()).status
}

fn blocked<'i>(item: &'i Value, action: &str) -> &'i Value {
    let found = item["blocked"].as_array().unwrap().iter().find(|blocked| blocked["action"] == action);
    found.unwrap_or_else(|| panic!("{action} is not blocked: {item}"))
}

#[test]
fn the_effect_of_a_vote_is_told_before_it_is_cast_and_comes_true() {
    let installation = team();
    let server = installation.serve();
    let id = submitted(&server, "high");
    let (mut ben, mut bob) = (person(&server, "ben"), person(&server, "bob"));
    let item = ben.item(&id);
    let digest = item["content_digest"].clone();
    let vote = |count: u32| json!({"count": count, "needed": 2});
    assert_eq!(
        item["effects"]["approve"],
        json!({"to": ["submitted"], "moves": false, "ends": false, "vote": vote(1)})
    );
    assert_eq!(item["effects"]["reject"], json!({"to": ["rejected"], "moves": true, "ends": true, "vote": null}));
    let names: Vec<_> = item["effects"].as_object().unwrap().keys().cloned().collect();
    let mut actions: Vec<_> = item["actions"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    actions.sort_unstable();
    assert_eq!(names, actions);
    let computed =
        ContentDigest::of(item["title"].as_str().unwrap(), &item["payload"], item["content_nonce"].as_str().unwrap());
    assert_eq!(json!(computed), digest, "the digest of what is shown");
    let waiting =
        json!([{"action": "approve", "role": "approver", "actors": ["bea", "ben", "bob"], "others": 0, "needed": 2}]);
    assert_eq!(item["waiting"], waiting);

    let done = ben.must(&id, &json!({"action": "approve", "content_digest": digest}));
    assert_eq!(done["to"], "submitted", "as was told");
    let item = ben.item(&id);
    assert_eq!(blocked(&item, "approve")["code"], "already_decided");
    assert_eq!(item["seen"], json!({"content_digest": digest, "at": done["at"], "how": "decided"}));
    let item = bob.item(&id);
    assert_eq!(item["effects"]["approve"], json!({"to": ["approved"], "moves": true, "ends": false, "vote": vote(2)}));
    assert_eq!((&item["waiting"][0]["actors"], &item["waiting"][0]["needed"]), (&json!(["bea", "bob"]), &json!(1)));
    assert_eq!(item["seen"], Value::Null);
    assert_eq!(bob.must(&id, &json!({"action": "approve", "content_digest": digest}))["to"], "approved");
}

#[test]
fn whatever_stops_the_caller_is_said_with_its_reason() {
    let installation = team();
    let server = installation.serve();
    let mut ana = person(&server, "ana");
    let draft = ana.creates("controlled-operation", &json!({"purpose": "p"}));
    let item = ana.item(&draft);
    let submit = blocked(&item, "submit");
    assert_eq!(submit["code"], "invalid_request");
    let detail = submit["detail"].as_str().unwrap();
    assert!(detail.starts_with("the content is not complete: /payload/"), "{detail}");
    let amys = person(&server, "amy").item(&draft);
    for action in ["edit", "submit", "withdraw"] {
        assert_eq!(blocked(&amys, action)["code"], "not_owner", "{action}");
    }
    assert_eq!(person(&server, "ada").item(&draft)["blocked"], json!([]), "an auditor has nothing to do here");

    let id = cleared(&server);
    let hold = person(&server, "bob").must(&id, &json!({"action": "hold", "comment": "wait for the vendor"}));
    let item = person(&server, "eli").item(&id);
    assert_eq!(blocked(&item, "start")["code"], "item_held");
    let told = json!({"actor_id": "bob", "role": "approver", "at": hold["at"], "comment": "wait for the vendor"});
    assert_eq!(item["hold"], told);
    let waiting =
        json!([{"action": "release", "role": "security_admin", "actors": ["sia", "sol"], "others": 0, "needed": 1}]);
    assert_eq!(item["waiting"], waiting);
    person(&server, "sol").must(&id, &json!({"action": "release", "comment": "they answered"}));
    let item = person(&server, "eli").item(&id);
    assert_eq!((&item["hold"], &item["blocked"]), (&Value::Null, &json!([])));
}

#[test]
fn a_window_that_opens_later_says_when() {
    let installation = team();
    let server = installation.serve();
    let id = submitted(&server, "low");
    let digest = person(&server, "ben").item(&id)["content_digest"].clone();
    person(&server, "ben").must(&id, &json!({"action": "approve", "content_digest": digest}));
    let now: pilot_core::time::Time =
        serde_json::from_value(person(&server, "ben").item(&id)["updated_at"].clone()).unwrap();
    let later = |hours| json!(now.plus(std::time::Duration::from_hours(hours)));
    let inputs = json!({"not_before": later(2), "not_after": later(3)});
    person(&server, "sol").must(&id, &json!({"action": "clear", "content_digest": digest, "inputs": inputs}));
    let item = person(&server, "eli").item(&id);
    let start = blocked(&item, "start");
    assert_eq!((&start["code"], &start["until"]), (&json!("outside_window"), &later(2)));
    assert_eq!(item["waiting"][0]["actors"], json!([]), "nobody can start it yet");
}

#[test]
fn a_look_is_remembered_for_its_actor_until_a_later_decision() {
    let installation = team();
    let server = installation.serve();
    let (mut ana, mut ben) = (person(&server, "ana"), person(&server, "ben"));
    let id = ana.creates("controlled-operation", &payload("low"));
    let first = ana.item(&id)["content_digest"].clone();
    assert_eq!(ana.item(&id)["seen"]["how"], "decided", "a creator knows the content");
    let entries =
        |ben: &mut Person| ben.get(&format!("/v1/items/{id}/history")).json()["history"].as_array().unwrap().len();
    assert_eq!(look(&mut ben, &id, &first), 204);
    let seen = ben.item(&id)["seen"].clone();
    assert_eq!((&seen["content_digest"], &seen["how"]), (&first, &json!("looked")));
    assert_eq!(look(&mut ben, &id, &first), 204);
    assert_eq!(ben.item(&id)["seen"], seen, "the same look again changes nothing");
    assert_eq!(person(&server, "bob").item(&id)["seen"], Value::Null);
    assert_eq!(entries(&mut ben), 1, "a look is not an entry");

    let edited = ana.call(&format!("PATCH /v1/items/{id}"), &[JSON], br#"{"title":"Another"}"#);
    assert_eq!(edited.status, 200, "{}", edited.text());
    let edited = edited.json();
    let second = edited["content_digest"].clone();
    assert_eq!((&edited["seen"]["content_digest"], &edited["seen"]["how"]), (&second, &json!("decided")));
    assert!(edited["content_nonce"].is_string() && edited["effects"]["submit"]["moves"] == true, "{edited}");
    assert_eq!(ben.item(&id)["seen"], seen, "what ben saw, not what there is now");
    let put = |who: &mut Person, id: &str, body: &str| {
        who.call(&format!("PUT /v1/items/{id}/look"), &[JSON], body.as_bytes()).verdict()
    };
    assert_eq!(put(&mut ben, &id, &json!({ "content_digest": first }).to_string()), "409 content_changed");
    assert_eq!(ben.item(&id)["seen"], seen);
    assert_eq!(look(&mut ben, &id, &second), 204);
    assert_eq!(ben.item(&id)["seen"]["content_digest"], second);
    for body in ["{}", r#"{"content_digest":"x"}"#, r#"{"content_digest":1}"#, r#"{"content_digest":"x","at":1}"#] {
        assert_eq!(put(&mut ben, &id, body), "422 invalid_request", "{body}");
    }
    let missing = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert_eq!(put(&mut ben, missing, &json!({ "content_digest": first }).to_string()), "404 not_found");
    for who in ["ana", "sol", "eli", "ada"] {
        assert_eq!(look(&mut person(&server, who), &id, &second), 204, "{who}");
    }
    ana.must(&id, &json!({"action": "submit"}));
    let done = ben.must(&id, &json!({"action": "return", "comment": "no", "content_digest": second}));
    assert_eq!(ben.item(&id)["seen"], json!({"content_digest": second, "at": done["at"], "how": "decided"}));

    server.stop().expect(0);
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
    let server = installation.serve();
    assert_eq!(person(&server, "sol").item(&id)["seen"]["how"], "looked", "a restart forgets nothing");
}

#[test]
fn a_hold_and_a_decision_are_found_behind_many_later_entries() {
    let installation = team();
    let server = installation.serve();
    let id = submitted(&server, "low");
    let (mut bob, mut ada) = (person(&server, "bob"), person(&server, "ada"));
    let hold = bob.must(&id, &json!({"action": "hold", "comment": "wait"}));
    for number in 0..100 {
        let answer = ada.post(&format!("/v1/items/{id}/comments"), &json!({"text": format!("{number}")}));
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let item = bob.item(&id);
    assert_eq!((&item["hold"]["at"], &item["hold"]["comment"]), (&hold["at"], &json!("wait")));
    assert_eq!((&item["seen"]["at"], &item["seen"]["how"]), (&hold["at"], &json!("decided")));
    assert_eq!(ada.item(&id)["seen"], Value::Null, "a comment is about no content");
}
