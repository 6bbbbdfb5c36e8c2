//! People at work. Each has a node of their own, and repeats a write that was not acknowledged at the next one, with the
//! same key, until it is.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::{millis, pause};
use crate::journal::{Acknowledged, Journal, NODES};
use crate::wire::{Answer, Connection, Request};

/// How long a writer goes on with its last write when everything ends.
const LAST_WRITE_MILLIS: u64 = 90_000;
/// Between two writes: the cluster shares a machine, and a fault is no better for more of them.
const PAUSE_MILLIS: u64 = 100;
/// One in so many writes is repeated although it was acknowledged.
const REPEATED: u64 = 16;

pub(crate) struct Writer {
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) approver: (String, String),
    pub(crate) home: usize,
    pub(crate) journal: Arc<Journal>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) repeats: Vec<Connection>,
}

/// The item that a writer is working on.
struct Item {
    id: String,
    digest: String,
}

impl Writer {
    pub(crate) fn connections(addresses: &[SocketAddr]) -> Vec<Connection> {
        addresses.iter().map(|address| Connection::to(*address)).collect()
    }

    pub(crate) fn run(mut self) {
        let mut count = 0;
        while !self.journal.is_stopping() {
            pause(PAUSE_MILLIS);
            if self.one_item(&mut count).is_none() {
                return;
            }
        }
    }

    /// From its creation to its end.
    fn one_item(&mut self, count: &mut u64) -> Option<()> {
        let payload = json!({"purpose": "p", "operation": "o", "risk": "low", "rollback_plan": "r"});
        let title = format!("{} {count}", self.name);
        let body = json!({"workflow": "controlled-operation", "title": title, "payload": payload});
        let (name, token) = (self.name.clone(), self.token.clone());
        let made = self.settle((&name, &token), "/v1/items", &body, count)?;
        let text = |name: &str| made.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let item = Item { id: text("id"), digest: text("content_digest") };
        let (approver, approver_token) = self.approver.clone();
        for (actor, token, body) in [
            (&name, &token, json!({"action": "submit"})),
            (&approver, &approver_token, json!({"action": "approve", "content_digest": item.digest})),
            (&approver, &approver_token, json!({"action": "revoke_approval", "comment": "One more look"})),
            (&name, &token, json!({"action": "withdraw"})),
        ] {
            if self.journal.is_stopping() {
                return None;
            }
            pause(PAUSE_MILLIS);
            self.settle((actor, token), &format!("/v1/items/{}/transitions", item.id), &body, count)?;
        }
        Some(())
    }

    /// The same request, at one node after the other, until it is acknowledged.
    fn settle(&mut self, (actor, token): (&str, &str), path: &str, body: &Value, count: &mut u64) -> Option<Value> {
        *count += 1;
        let request = Request::post(path, token, format!("{}-{count}", self.name), body.to_string());
        let begun = millis();
        let mut stopped_at = None;
        for attempt in 0.. {
            let node = (self.home + attempt) % NODES;
            let sent = millis();
            match self.connections.get_mut(node)?.ask(&request) {
                Ok(answer) if answer.status == 201 => {
                    let shown: Value = serde_json::from_slice(&answer.body).ok()?;
                    let (actor, at) = (actor.to_owned(), millis());
                    let acknowledged = Acknowledged { actor, answer: shown.clone(), node, at, attempts: attempt + 1 };
                    self.journal.acknowledge(acknowledged, sent);
                    if attempt > 0 || count.is_multiple_of(REPEATED) {
                        self.repeat(&request, &answer, node + 1);
                    }
                    return Some(shown);
                }
                Ok(answer) if answer.status == 503 => self.journal.unavailable(),
                Ok(answer) => {
                    let (status, text) = (answer.status, answer.text());
                    self.journal.violate(format!(
                        "node{} answered {status} at attempt {attempt}, sent at {sent} ms, begun at {begun} ms, to \
                         {request:?}: {text}",
                        node + 1
                    ));
                    return None;
                }
                Err(_) => self.journal.unknown(),
            }
            if self.journal.is_stopping() && millis() - *stopped_at.get_or_insert_with(millis) > LAST_WRITE_MILLIS {
                self.journal.violate(format!("a write was not acknowledged in the end: {request:?}"));
                return None;
            }
            pause(100);
        }
        None
    }

    /// Another node gives the same answer, byte for byte, or none.
    fn repeat(&mut self, request: &Request, first: &Answer, node: usize) {
        let node = node % NODES;
        let Some(Ok(second)) = self.repeats.get_mut(node).map(|connection| connection.ask(request)) else { return };
        if second.status != 503 && (second.status != first.status || second.body != first.body) {
            let (status, before, after) = (second.status, first.text(), second.text());
            self.journal.violate(format!(
                "repeated at node{}, {request:?} was answered {status} {after}, and before 201 {before}",
                node + 1
            ));
        }
    }
}
