//! A service with one workflow, in memory. It can be cut off at any request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pilot_mcp::{Answer, Method, Request, Service, Unreachable};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
const TIME: &str = "2026-11-18T00:00:00.000000Z";

#[derive(Clone)]
pub struct Fake(Arc<Inside>);

struct Inside {
    ledger: Mutex<Ledger>,
    /// One permit for each request that may be answered.
    gate: Semaphore,
    signs: Mutex<Vec<mpsc::Sender<()>>>,
}

#[derive(Default)]
struct Ledger {
    items: Vec<Value>,
    keys: HashMap<String, Value>,
    /// Requests whose line ends like this are cut off: before they arrive, or after.
    cuts: Vec<(&'static str, Cut)>,
    requests: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Before,
    After,
}

impl Fake {
    pub fn new() -> Fake {
        let gate = Semaphore::new(Semaphore::MAX_PERMITS);
        Fake(Arc::new(Inside { ledger: Mutex::default(), gate, signs: Mutex::default() }))
    }

    /// A service that does not answer until it is let.
    pub fn silent() -> Fake {
        Fake(Arc::new(Inside { ledger: Mutex::default(), gate: Semaphore::new(0), signs: Mutex::default() }))
    }

    pub fn let_answer(&self, count: usize) {
        self.0.gate.add_permits(count);
    }

    /// The next request whose line ends like this is cut off.
    pub fn cut(&self, line: &'static str, cut: Cut) {
        self.0.ledger.lock().unwrap().cuts.push((line, cut));
    }

    pub fn forget_keys(&self) {
        self.0.ledger.lock().unwrap().keys.clear();
    }

    /// Others have moved an item.
    pub fn moved(&self, position: usize, state: &str) {
        let mut ledger = self.0.ledger.lock().unwrap();
        ledger.items[position] = item(&ledger.items[position], state);
        drop(ledger);
        self.0.signs.lock().unwrap().retain(|signs| signs.try_send(()).is_ok());
    }

    pub fn items(&self) -> usize {
        self.0.ledger.lock().unwrap().items.len()
    }

    pub fn requests(&self) -> Vec<String> {
        self.0.ledger.lock().unwrap().requests.clone()
    }
}

impl Service for Fake {
    async fn send(&self, request: Request) -> Result<Answer, Unreachable> {
        self.0.gate.acquire().await.unwrap().forget();
        let mut ledger = self.0.ledger.lock().unwrap();
        let path = request.path.split('?').next().unwrap().to_owned();
        let line = format!("{:?} {path}", request.method);
        let cut = ledger.cuts.iter().position(|(end, _)| line.ends_with(end));
        ledger.requests.push(line);
        let cut = cut.map(|position| ledger.cuts.remove(position).1);
        if cut == Some(Cut::Before) {
            return Err(Unreachable("cut off".into()));
        }
        let answer = ledger.answer(&request, &path);
        if cut == Some(Cut::After) { Err(Unreachable("cut off".into())) } else { Ok(answer) }
    }

    fn follow(&self, _item: &str) -> mpsc::Receiver<()> {
        let (sender, receiver) = mpsc::channel(8);
        self.0.signs.lock().unwrap().push(sender);
        receiver
    }

    fn link(&self, item: &str) -> String {
        format!("https://pilot.example/console/items/{item}")
    }
}

impl Ledger {
    fn answer(&mut self, request: &Request, path: &str) -> Answer {
        let key = request.idempotency_key.as_ref().map(|key| format!("{path} {key}"));
        if let Some(body) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return Answer { status: 201, body: body.clone() };
        }
        let body = request.body.clone().unwrap_or_default();
        let parts: Vec<_> = path.trim_start_matches("/v1/").split('/').collect();
        let made = match (request.method, parts.as_slice()) {
            (Method::Get, ["session"]) => json!({"actor_id": "ana", "role": "initiator"}),
            (Method::Get, ["workflows", _]) => workflow(),
            (Method::Get, ["items"]) => json!({"items": self.items.iter().rev().collect::<Vec<_>>(), "next": null}),
            (Method::Get, ["items", id]) => self.find(id).clone(),
            (Method::Get, ["items", _, "history"]) => json!({"history": [], "next": null}),
            (Method::Post, ["items"]) => {
                self.items.push(new(self.items.len(), &body));
                self.items.last().unwrap().clone()
            }
            (Method::Post, ["items", id, "transitions"]) => {
                assert_eq!(body["action"], "submit", "no tool of an initiator sends anything else here");
                let found = self.find(id);
                *found = item(found, "submitted");
                json!({"item_id": id, "version": 2, "action": "submit", "from": "draft", "to": "submitted",
                    "actor_id": "ana", "role": "initiator", "at": TIME, "comment": null, "inputs": null, "entry": 1})
            }
            (method, parts) => panic!("{method:?} {parts:?}"),
        };
        if let Some(key) = key {
            self.keys.insert(key, made.clone());
        }
        Answer { status: 200, body: made }
    }

    fn find(&mut self, id: &str) -> &mut Value {
        self.items.iter_mut().find(|item| item["id"] == id).unwrap()
    }
}

fn workflow() -> Value {
    json!({"name": "w", "version": 1, "digest": DIGEST, "title": "W", "description": "", "initial": "draft",
        "states": [], "transitions": [], "timers": [], "hold": null,
        "payload_schema": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}})
}

fn new(number: usize, body: &Value) -> Value {
    let draft = json!({
        "id": format!("01890a5d-ac96-774b-bcce-{number:012x}"), "workflow": {"name": "w", "version": 1, "digest": DIGEST},
        "title": body["title"], "payload": body["payload"], "version": 0, "content_digest": DIGEST,
        "created_at": TIME, "created_by": {"actor_id": "ana", "role": "initiator"}, "updated_at": TIME, "entered_at": TIME,
        "held": false, "window": null, "lease": null, "votes": null, "attempts": 0, "due_at": null,
        "content_nonce": null, "blocked": [], "seen": null, "hold": null,
    });
    item(&draft, "draft")
}

/// The item in this state.
fn item(before: &Value, state: &str) -> Value {
    let mut item = before.clone();
    let withdraw = json!({"to": ["withdrawn"], "moves": true, "ends": true, "vote": null});
    let submit = json!({"to": ["submitted"], "moves": true, "ends": false, "vote": null});
    let (actions, effects, waits) = match state {
        "draft" | "returned" => {
            (json!(["edit", "submit", "withdraw"]), json!({"submit": submit, "withdraw": withdraw}), "initiator")
        }
        "submitted" => (json!(["withdraw"]), json!({"withdraw": withdraw}), "approver"),
        _ => (json!([]), json!({}), ""),
    };
    let is_finished = waits.is_empty();
    item["state"] = state.into();
    item["version"] = (before["version"].as_u64().unwrap() + 1).into();
    (item["actions"], item["effects"]) = (actions, effects);
    item["waits_for"] = if is_finished { json!([]) } else { json!([waits]) };
    let waiting = json!({"action": "approve", "role": "approver", "actors": ["ben", "bea"], "others": 0, "needed": 2});
    item["waiting"] = if is_finished { json!([]) } else { json!([waiting]) };
    item
}
