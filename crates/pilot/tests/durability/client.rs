//! People at work: they create items, submit and approve them, and remember every answer they were given.

use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::support::harness::{Installation, PATIENCE, bearer, now};
use crate::support::wire::{Response, Wire};

pub const WRITERS: usize = 8;
pub const AUDITOR: &str = "auditor-token-0123456789abcdef0123456789";
const APPROVER: &str = "approver-token-0123456789abcdef0123456789";

pub const OVERSEERS: [(&str, &str, &str); 2] = [("ben", "approver", APPROVER), ("uma", "auditor", AUDITOR)];

pub fn writer_token(number: usize) -> String {
    format!("initiator-{number}-token-0123456789abcdef0123456789")
}

/// Eight initiators, an approver and an auditor.
pub fn installation() -> Installation {
    let tokens: Vec<_> = (0..WRITERS).map(|number| (format!("ini{number}"), writer_token(number))).collect();
    let mut entries = OVERSEERS.to_vec();
    entries.extend(tokens.iter().map(|(name, token)| (name.as_str(), "initiator", token.as_str())));
    Installation::with(&entries)
}

/// A write that was answered with 201: the item, its version afterwards, and for a transition its place in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Acknowledged {
    pub item: String,
    pub version: u64,
    pub index: Option<u64>,
}

/// A request, to be sent again with the same key until it is answered.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub token: String,
    pub key: String,
    pub body: String,
}

/// What came of a request.
pub enum Answered {
    Done(Acknowledged, Value),
    /// 503: not acknowledged, to be tried again.
    Unavailable,
    /// The connection broke: it may or may not have been recorded.
    Unknown,
}

pub struct Client {
    wire: Option<Wire>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        Client { wire: TcpStream::connect(address).ok().map(Wire::over) }
    }

    pub fn get(&mut self, path: &str, token: &str) -> Option<Response> {
        let wire = self.wire.as_mut()?;
        wire.request(&format!("GET {path} HTTP/1.1"), &[&bearer(token)]);
        wire.try_response(false).ok()
    }

    /// What an auditor is shown. On a busy machine a 503 may come first.
    pub fn read(&mut self, path: &str) -> Response {
        let began = now();
        loop {
            let response = self.get(path, AUDITOR).unwrap();
            if response.status != 503 || began.elapsed() > PATIENCE {
                return response;
            }
        }
    }

    pub fn ask(&mut self, asked: &Asked) -> Answered {
        let Some(wire) = self.wire.as_mut() else { return Answered::Unknown };
        let Asked { path, token, key, body } = asked;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: pilot.example\r\n{}\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n{body}",
            bearer(token),
            body.len()
        );
        wire.send(head.as_bytes());
        let Ok(response) = wire.try_response(false) else {
            self.wire = None;
            return Answered::Unknown;
        };
        match response.status {
            201 => {
                let body = response.json();
                let item = body["item_id"].as_str().or(body["id"].as_str()).unwrap().to_owned();
                let version = body["version"].as_u64().unwrap();
                Answered::Done(Acknowledged { item, version, index: body["entry"].as_u64() }, body)
            }
            503 => Answered::Unavailable,
            _ => panic!("{asked:?} was answered {response:?}"),
        }
    }
}

/// One person's endless work: each answer says what to ask for next.
pub struct Work {
    token: String,
    name: String,
    count: u64,
    pub next: Asked,
}

impl Work {
    pub fn new(number: usize, name: &str) -> Work {
        let token = writer_token(number);
        let next = creation(&token, name, 0);
        Work { token, name: name.to_owned(), count: 0, next }
    }

    /// What follows an answer: create, submit, approve, and on to the next item.
    pub fn advance(&mut self, acknowledged: &Acknowledged, answer: &Value) {
        self.count += 1;
        let key = format!("{}-{}", self.name, self.count);
        let path = format!("/v1/items/{}/transitions", acknowledged.item);
        let act = |token: &str, body: Value| Asked {
            path: path.clone(),
            token: token.to_owned(),
            key,
            body: body.to_string(),
        };
        self.next = match acknowledged.version {
            1 => {
                let digest = answer["content_digest"].as_str().unwrap().to_owned();
                let mut submit = act(&self.token, json!({"action": "submit"}));
                // The digest is what the approver decides on; it travels in the path of memory, not of the request.
                submit.key = format!("{}#{digest}", submit.key);
                submit
            }
            2 => {
                let digest = self.next.key.split_once('#').unwrap().1;
                act(APPROVER, json!({"action": "approve", "content_digest": digest}))
            }
            _ => creation(&self.token, &self.name, self.count),
        };
    }
}

fn creation(token: &str, name: &str, count: u64) -> Asked {
    let payload = json!({"purpose": "p", "operation": "o", "risk": "low", "rollback_plan": "r"});
    let body = json!({"workflow": "controlled-operation", "title": format!("{name} {count}"), "payload": payload});
    Asked { path: "/v1/items".into(), token: token.to_owned(), key: format!("{name}-{count}"), body: body.to_string() }
}
