//! A team with one person or more in each role, and what each of them says to the service.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::harness::{Installation, Server, bearer};
use crate::support::wire::{Response, Wire};

pub const TEAM: [(&str, &str); 10] = [
    ("ana", "initiator"),
    ("amy", "initiator"),
    ("ben", "approver"),
    ("bob", "approver"),
    ("bea", "approver"),
    ("sol", "security_admin"),
    ("sia", "security_admin"),
    ("eli", "executor"),
    ("eva", "executor"),
    ("ada", "auditor"),
];

/// Everyone's token, made of the name so that a test need not carry it around.
pub fn token(name: &str) -> String {
    format!("{name}.hand-made-token-for-the-tests-of-the-interface")
}

/// An installation whose credential file has these people.
pub fn installation_of(people: &[(&str, &str)]) -> Installation {
    let tokens: Vec<_> = people.iter().map(|(name, _)| token(name)).collect();
    let entries: Vec<_> = people.iter().zip(&tokens).map(|((name, role), token)| (*name, *role, &**token)).collect();
    Installation::with(&entries)
}

pub fn team() -> Installation {
    installation_of(&TEAM)
}

/// One person's connection, used for one request after the other.
pub struct Person {
    wire: Wire,
    authorization: String,
}

pub const JSON: &str = "Content-Type: application/json";

pub fn person(server: &Server, name: &str) -> Person {
    Person { wire: server.wire(), authorization: bearer(&token(name)) }
}

impl Person {
    #[track_caller]
    pub fn call(&mut self, line: &str, headers: &[&str], body: &[u8]) -> Response {
        self.send(line, headers, body);
        self.wire.response().expect("an answer")
    }

    /// Sends without waiting for the answer.
    pub fn send(&mut self, line: &str, headers: &[&str], body: &[u8]) {
        let mut head = format!("{line} HTTP/1.1\r\nHost: pilot.example\r\n{}\r\n", self.authorization);
        for header in headers {
            let _ = write!(head, "{header}\r\n");
        }
        let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
        self.wire.send(&[head.as_bytes(), body].concat());
    }

    #[track_caller]
    pub fn answer(&mut self) -> Response {
        self.wire.response().expect("an answer")
    }

    #[track_caller]
    pub fn get(&mut self, path: &str) -> Response {
        self.call(&format!("GET {path}"), &[], b"")
    }

    #[track_caller]
    pub fn post(&mut self, path: &str, body: &Value) -> Response {
        self.call(&format!("POST {path}"), &[JSON], body.to_string().as_bytes())
    }

    #[track_caller]
    pub fn item(&mut self, id: &str) -> Value {
        let answer = self.get(&format!("/v1/items/{id}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let item = answer.json();
        assert_eq!(answer.header("etag"), Some(&*format!("\"{}\"", item["version"])), "the ETag is the version");
        item
    }

    /// A new item of `workflow`; gives its id.
    #[track_caller]
    pub fn creates(&mut self, workflow: &str, payload: &Value) -> String {
        let body = json!({"workflow": workflow, "title": "Rotate the signing key", "payload": payload});
        let answer = self.post("/v1/items", &body);
        assert_eq!(answer.status, 201, "{}", answer.text());
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(answer.header("location"), Some(&*format!("/v1/items/{id}")));
        assert_eq!(answer.header("etag"), Some("\"1\""));
        id
    }

    #[track_caller]
    pub fn acts(&mut self, id: &str, body: &Value) -> Response {
        self.post(&format!("/v1/items/{id}/transitions"), body)
    }

    /// An action that decides on the present content.
    #[track_caller]
    pub fn decides(&mut self, id: &str, action: &str) -> Response {
        let digest = self.item(id)["content_digest"].clone();
        self.acts(id, &json!({"action": action, "content_digest": digest}))
    }

    #[track_caller]
    pub fn must(&mut self, id: &str, body: &Value) -> Value {
        let answer = self.acts(id, body);
        assert_eq!(answer.status, 201, "{body}: {}", answer.text());
        answer.json()
    }
}

/// A payload that may be submitted.
pub fn payload(risk: &str) -> Value {
    json!({"purpose": "the key is a year old", "operation": "rotate", "risk": risk, "rollback_plan": "the old key"})
}

pub fn emergency() -> Value {
    let mut payload = payload("high");
    payload["incident"] = "INC-7".into();
    payload
}

/// An item of `ana`'s that waits for approval.
pub fn submitted(server: &Server, risk: &str) -> String {
    let mut ana = person(server, "ana");
    let id = ana.creates("controlled-operation", &payload(risk));
    ana.must(&id, &json!({"action": "submit"}));
    id
}

/// An item that `eli` or `eva` may start.
pub fn cleared(server: &Server) -> String {
    let id = submitted(server, "low");
    let digest = person(server, "ben").item(&id)["content_digest"].clone();
    person(server, "ben").must(&id, &json!({"action": "approve", "content_digest": digest}));
    let inputs = json!({"not_after": "in an hour"});
    let body = json!({"action": "clear", "content_digest": digest, "inputs": with_times(&inputs, &id)});
    person(server, "sol").must(&id, &body);
    id
}

/// Replaces "in an hour" and its like by a time: that of the id, which begins with it, and an hour.
pub fn with_times(inputs: &Value, id: &str) -> Value {
    let millis = u64::from_str_radix(&id.replace('-', "")[..12], 16).unwrap();
    let at = |seconds: u64| {
        let micros = i64::try_from((millis + seconds * 1000) * 1000).unwrap();
        Value::String(pilot_core::time::Time::from_unix_micros(micros).to_string())
    };
    let mut inputs = inputs.clone();
    for value in inputs.as_object_mut().unwrap().values_mut() {
        match value.as_str() {
            Some("in 2 seconds") => *value = at(2),
            Some("in 3 seconds") => *value = at(3),
            Some("in an hour") => *value = at(3600),
            Some("in two hours") => *value = at(7200),
            Some("in 5 hours") => *value = at(5 * 3600),
            Some("in 31 days") => *value = at(31 * 86400),
            _ => {}
        }
    }
    inputs
}
