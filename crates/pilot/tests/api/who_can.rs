//! A refusal for role, separation of duties or ownership says who can.

use serde_json::json;

use crate::support::team::{installation_of, payload, person, submitted, team};

/// What the service says to this person, and who can according to it.
#[track_caller]
fn said(answer: &crate::support::wire::Response, words: &str, actors: &[&str], others: usize) {
    let body = answer.json();
    let detail = body["detail"].as_str().unwrap();
    assert!(detail.ends_with(words), "{detail:?} does not end with {words:?}");
    assert_eq!(body["who_can"], json!({"actors": actors, "others": others}), "{body}");
}

#[test]
fn a_refusal_for_role_separation_or_ownership_names_those_who_can() {
    let installation = team();
    let server = installation.serve();
    let id = submitted(&server, "high");
    let digest = person(&server, "ben").item(&id)["content_digest"].clone();
    let approve = json!({"action": "approve", "content_digest": digest});
    let refused = person(&server, "ana").acts(&id, &approve);
    assert_eq!(refused.verdict(), "403 role_forbidden");
    said(&refused, "; bea, ben and bob can", &["bea", "ben", "bob"], 0);
    // Those who have voted cannot vote again.
    person(&server, "ben").must(&id, &approve);
    said(&person(&server, "eli").acts(&id, &approve), "; bea and bob can", &["bea", "bob"], 0);
    let withdraw = person(&server, "amy").acts(&id, &json!({"action": "withdraw"}));
    assert_eq!(withdraw.verdict(), "403 not_owner");
    said(&withdraw, "; ana can", &["ana"], 0);
    let edit = person(&server, "amy").call(
        &format!("PATCH /v1/items/{id}"),
        &[crate::support::team::JSON],
        br#"{"title":"x"}"#,
    );
    said(&edit, "; nobody can now: the item can be edited only in draft and returned; it is submitted", &[], 0);
}

#[test]
fn if_nobody_can_the_refusal_says_what_that_means() {
    let people = [("ana", "initiator"), ("sol", "security_admin"), ("eli", "executor")];
    let installation = installation_of(&people);
    let server = installation.serve();
    let id = submitted(&server, "low");
    let approve = json!({"action": "approve"});
    let refused = person(&server, "sol").acts(&id, &approve);
    said(
        &refused,
        "; nobody can: the rules allow it to no actor there is, so it needs one more, in the right role",
        &[],
        0,
    );
    let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
    let start = person(&server, "sol").acts(&id, &json!({"action": "start"}));
    said(&start, "; nobody can now: start is possible only in cleared; this item is draft", &[], 0);
}

#[test]
fn five_are_named_and_the_others_counted_and_no_other_refusal_names_anybody() {
    let names: Vec<_> = (0..12).map(|number| format!("ben-{number:02}")).collect();
    let approvers = names.iter().map(|name| (name.as_str(), "approver"));
    let people: Vec<_> = [("ana", "initiator"), ("eli", "executor")].into_iter().chain(approvers).collect();
    let installation = installation_of(&people);
    let server = installation.serve();
    let id = submitted(&server, "low");
    let refused = person(&server, "eli").acts(&id, &json!({"action": "approve"}));
    said(&refused, "ben-03, ben-04 and 7 others can", &["ben-00", "ben-01", "ben-02", "ben-03", "ben-04"], 7);
    let conflict = person(&server, "eli").acts(&id, &json!({"action": "roll_back"}));
    assert_eq!((conflict.status, conflict.json().get("who_can").cloned()), (409, None));
    let stranger = server.request(&format!("POST /v1/items/{id}/transitions HTTP/1.1"), &["Content-Length: 0"]);
    assert_eq!(stranger.status, 401);
    assert!(!stranger.text().contains("ben-0"), "{}", stranger.text());
}
