//! Earlier contents of an item.

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
    let found = |ben: &mut crate::support::team::Person, digest: &str| {
        let answer = ben.get(&format!("/v1/items/{id}/contents/{digest}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let content =
        |digest: &str, title: &str| json!({"content_digest": digest, "title": title, "payload": payload("low")});
    assert_eq!(found(&mut ben, &first), content(&first, "Rotate the signing key"));
    assert_eq!(found(&mut ben, &last), content(&last, "Title 19"));
    let other = ana.creates("controlled-operation", &payload("low"));
    let missing = format!("sha256:{}", "0".repeat(64));
    for path in [
        format!("/v1/items/{other}/contents/{first}"),
        format!("/v1/items/{id}/contents/{missing}"),
        format!("/v1/items/{id}/contents/nonsense"),
        format!("/v1/items/nonsense/contents/{first}"),
    ] {
        assert_eq!(ben.get(&path).verdict(), "404 not_found", "{path}");
    }
    assert_eq!(server.get(&format!("/v1/items/{id}/contents/{first}"), &[]).status, 401);
}
