//! Idempotency keys: a reply that was lost is asked for again, and the same thing happens once.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::harness::{Installation, Server};
use crate::support::team::{JSON, Person, payload, person, team};
use crate::support::wire::Response;

const ROUNDS: usize = 200;
const RETRIES: usize = 4;

fn new_item() -> Value {
    json!({"workflow": "controlled-operation", "title": "t", "payload": payload("low")})
}

fn keyed(person: &mut Person, line: &str, key: &str, body: &Value) -> Response {
    person.call(line, &[JSON, &format!("Idempotency-Key: {key}")], body.to_string().as_bytes())
}

/// Everything of an answer but what is each request's own.
fn essence(answer: &Response) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let own = ["date", "x-request-id"];
    let headers = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str())).cloned().collect();
    (answer.status, headers, answer.body.clone())
}

fn entries(server: &Server) -> u64 {
    let checkpoint = person(server, "ada").get("/v1/log/checkpoint");
    String::from_utf8(checkpoint.body).unwrap().lines().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_request_whose_reply_was_lost_is_retried_and_recorded_once() {
    let server = team().serve();
    let mut retrying: Vec<_> = (0..RETRIES).map(|_| person(&server, "ana")).collect();
    let before = entries(&server);
    let mut id = String::new();
    for round in 0..ROUNDS {
        for (line, body) in [
            ("POST /v1/items", new_item()),
            ("POST /v1/items/ID/comments", json!({"text": "c"})),
            ("POST /v1/items/ID/transitions", json!({"action": "submit"})),
        ] {
            let line = line.replace("ID", &id);
            let key = format!("Idempotency-Key: round-{round}");
            let body = body.to_string();
            // The first asks and goes away without listening; the others ask at the same time.
            person(&server, "ana").send(&line, &[JSON, &key], body.as_bytes());
            for person in &mut retrying {
                person.send(&line, &[JSON, &key], body.as_bytes());
            }
            let answers: Vec<_> = retrying.iter_mut().map(Person::answer).collect();
            assert_eq!(answers[0].status, 201, "{}", answers[0].text());
            assert!(answers.iter().all(|answer| essence(answer) == essence(&answers[0])), "round {round}: {answers:?}");
            if line == "POST /v1/items" {
                id = answers[0].json()["id"].as_str().unwrap().to_owned();
            }
        }
    }
    assert_eq!(entries(&server) - before, 3 * ROUNDS as u64, "one entry each");
    println!("{} requests, {} entries", ROUNDS * 3 * (RETRIES + 1), ROUNDS * 3);
}

#[test]
fn the_same_key_gives_the_same_answer_after_a_restart_and_after_a_crash() {
    let installation: Installation = team();
    let server = installation.serve();
    let created = keyed(&mut person(&server, "ana"), "POST /v1/items", "one", &new_item());
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let comments = format!("POST /v1/items/{id}/comments");
    let commented = keyed(&mut person(&server, "ana"), &comments, "one", &json!({"text": "c"}));
    let transitions = format!("POST /v1/items/{id}/transitions");
    let submitted = keyed(&mut person(&server, "ana"), &transitions, "one", &json!({"action": "submit"}));
    let first = [essence(&created), essence(&commented), essence(&submitted)];
    assert!(first.iter().all(|(status, ..)| *status == 201));
    let again = |server: &Server| {
        let mut ana = person(server, "ana");
        [
            essence(&keyed(&mut ana, "POST /v1/items", "one", &new_item())),
            essence(&keyed(&mut ana, &comments, "one", &json!({"text": "c"}))),
            // The item has moved on since, and yet it is the same answer.
            essence(&keyed(&mut ana, &transitions, "one", &json!({"action": "submit"}))),
        ]
    };
    assert_eq!(again(&server), first);
    server.stop().expect(0);
    let server = installation.serve();
    assert_eq!(again(&server), first);
    server.signal(Signal::KILL);
    server.ends();
    let server = installation.serve();
    assert_eq!(again(&server), first);
    assert_eq!(person(&server, "ana").item(&id)["version"], 2);
}

#[test]
fn an_answer_that_an_older_program_kept_is_given_again_as_it_is() {
    let installation: Installation = team();
    let server = installation.serve();
    assert_eq!(keyed(&mut person(&server, "ana"), "POST /v1/items", "one", &new_item()).status, 201);
    server.stop().expect(0);
    let store = rusqlite::Connection::open(installation.path("data/pilot.db")).unwrap();
    let kept = b"201 7 /v1/items/x\n{\"as\":\"before\"}".to_vec();
    assert_eq!(store.execute("UPDATE idempotency SET answer = ?1", [kept]).unwrap(), 1);
    drop(store);
    let server = installation.serve();
    let again = keyed(&mut person(&server, "ana"), "POST /v1/items", "one", &new_item());
    assert_eq!((again.status, again.body.as_slice()), (201, b"{\"as\":\"before\"}".as_slice()));
    assert_eq!((again.header("etag"), again.header("location")), (Some("\"7\""), Some("/v1/items/x")));
}

#[test]
fn another_body_is_refused_and_another_actor_path_or_method_is_another_key() {
    let server = team().serve();
    let (mut ana, mut amy) = (person(&server, "ana"), person(&server, "amy"));
    let first = keyed(&mut ana, "POST /v1/items", "k", &new_item());
    let id = first.json()["id"].as_str().unwrap().to_owned();
    let mut other = new_item();
    other["title"] = "another".into();
    assert_eq!(keyed(&mut ana, "POST /v1/items", "k", &other).verdict(), "422 idempotency_key_reused");
    // The same members in another order, or one more space, are another body.
    let spaced = new_item().to_string().replace(':', ": ");
    let answer = ana.call("POST /v1/items", &[JSON, "Idempotency-Key: k"], spaced.as_bytes());
    assert_eq!(answer.verdict(), "422 idempotency_key_reused");
    let hers = keyed(&mut amy, "POST /v1/items", "k", &new_item());
    assert_eq!(hers.status, 201);
    assert_ne!(hers.json()["id"], first.json()["id"], "never another actor's answer");
    let comment = keyed(&mut ana, &format!("POST /v1/items/{id}/comments"), "k", &json!({"text": "c"}));
    assert_eq!(comment.status, 201);
    let submitted = keyed(&mut ana, &format!("POST /v1/items/{id}/transitions"), "k", &json!({"action": "submit"}));
    assert_eq!(submitted.status, 201);
    let same = keyed(&mut ana, "POST /v1/items", "k", &new_item());
    assert_eq!(essence(&same), essence(&first), "the refusals above changed nothing");
}

#[test]
fn a_refused_request_leaves_its_key_free() {
    let server = team().serve();
    let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
    let line = format!("POST /v1/items/{id}/transitions");
    let mut sol = person(&server, "sol");
    assert_eq!(keyed(&mut sol, &line, "k", &json!({"action": "hold"})).verdict(), "422 invalid_request");
    assert_eq!(keyed(&mut sol, &line, "k", &json!({"action": "hold", "comment": "wait"})).status, 201);
}

#[test]
fn a_key_is_1_to_255_visible_characters_bare_or_quoted() {
    let server = team().serve();
    let mut ana = person(&server, "ana");
    let mut create = |key: &str| keyed(&mut ana, "POST /v1/items", key, &new_item());
    for right in ["k", "!~", &"k".repeat(255), "8e03978e-40d5-43e8-bc93-6894a57f9324"] {
        let bare = create(right);
        assert_eq!(bare.status, 201, "{right}");
        assert_eq!(essence(&create(&format!("\"{right}\""))), essence(&bare), "{right} in quotes is the same key");
    }
    for wrong in ["", "\"\"", "a b", "\"a b\"", &"k".repeat(256), &format!("\"{}\"", "k".repeat(256)), "\u{e9}", "a\tb"]
    {
        let answer = create(wrong);
        assert_eq!(answer.verdict(), "422 invalid_request", "{wrong}");
        assert_eq!(answer.json()["errors"][0]["pointer"], "/headers/Idempotency-Key");
    }
    let twice = ["Idempotency-Key: a", "Idempotency-Key: a", JSON];
    let answer = ana.call("POST /v1/items", &twice, new_item().to_string().as_bytes());
    assert_eq!(answer.verdict(), "422 invalid_request");
}
