//! Earlier contents of an item.

use pilot_core::document::{ContentDigest, Document};
use serde_json::json;

use crate::support::team::{JSON, payload, person, team};

#[test]
fn a_content_that_an_item_had_is_found_by_its_digest_and_no_other_is() {
    let installation = team();
    let server = installation.serve();
    let mut ana = person(&server, "ana");
    let id = ana.creates("controlled-operation", &payload("low"));
    let first = ana.item(&id)["content_digest"].as_str().unwrap().to_owned();
    for number in 0..20 {
        let body = json!({"title": format!("Title {number}")}).to_string();
        assert_eq!(ana.call(&format!("PATCH /v1/items/{id}"), &[JSON], body.as_bytes()).status, 200);
    }
    let last = ana.item(&id)["content_digest"].as_str().unwrap().to_owned();
    let mut ben = person(&server, "ben");
    for (digest, title) in [(&first, "Rotate the signing key"), (&last, "Title 19")] {
        for written in [digest.clone(), digest.replace(':', "%3A"), digest.replace(':', "%3a")] {
            let answer = ben.get(&format!("/v1/items/{id}/contents/{written}"));
            assert_eq!(answer.status, 200, "{}", answer.text());
            let mut found = answer.json();
            let nonce = found.as_object_mut().unwrap().remove("nonce").unwrap();
            assert_eq!(found, json!({"content_digest": digest, "title": title, "payload": payload("low")}));
            let computed = ContentDigest::of(title, &payload("low"), nonce.as_str().unwrap());
            assert_eq!(computed.as_str(), digest.as_str(), "the digest of what is shown");
        }
    }
    let other = ana.creates("controlled-operation", &payload("low"));
    let missing = format!("sha256:{}", "0".repeat(64));
    for path in [
        format!("/v1/items/{other}/contents/{first}"),
        format!("/v1/items/{id}/contents/{missing}"),
        format!("/v1/items/{id}/contents/nonsense"),
        format!("/v1/items/{id}/contents/{}", first.replace(':', "%3")),
        format!("/v1/items/{id}/contents/{}", first.replace(':', "%253A")),
        format!("/v1/items/nonsense/contents/{first}"),
    ] {
        assert_eq!(ben.get(&path).verdict(), "404 not_found", "{path}");
    }
    assert_eq!(server.get(&format!("/v1/items/{id}/contents/{first}"), &[]).status, 401);
}

#[test]
fn digests_in_entries_can_be_computed_from_what_the_history_shows() {
    let installation = team();
    let server = installation.serve();
    let (mut ana, mut ben, mut ada) = (person(&server, "ana"), person(&server, "ben"), person(&server, "ada"));
    let id = ana.creates("controlled-operation", &payload("low"));
    let digest = ana.item(&id)["content_digest"].clone();
    ana.must(&id, &json!({"action": "submit"}));
    let path = format!("POST /v1/items/{id}/transitions");
    let body = json!({"action": "return", "content_digest": digest, "comment": "name the host"}).to_string();
    let key = "Idempotency-Key: return-once";
    let first = ben.call(&path, &[JSON, key], body.as_bytes());
    assert_eq!(first.status, 201, "{}", first.text());
    let again = ben.call(&path, &[JSON, key], body.as_bytes());
    assert_eq!(first.json(), again.json(), "a repeated request gets the same answer");
    let comment = json!({"text": "which one?"}).to_string();
    assert_eq!(ana.call(&format!("POST /v1/items/{id}/comments"), &[JSON], comment.as_bytes()).status, 201);
    let history = ada.get(&format!("/v1/items/{id}/history")).json();
    let events = ada.get("/v1/events").json();
    let lines = history["history"].as_array().unwrap();
    assert_eq!(lines[2], first.json(), "what was answered is what is listed");
    for line in lines {
        let of_line = |event: &&serde_json::Value| event["index"] == line["entry"];
        let entry = events["events"].as_array().unwrap().iter().find(of_line).unwrap();
        assert_eq!(line["content_digest"], entry["content"], "{line}");
        let computed = line["comment"].as_str().map(|text| {
            let nonce = line["comment_nonce"].as_str().expect("a comment comes with its nonce");
            json!(Document::comment(text, nonce).digest)
        });
        assert_eq!(computed.unwrap_or_default(), entry["comment"], "{line}");
    }
}
