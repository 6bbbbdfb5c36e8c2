//! A few items in different states, so that everyone in the demo has something to look at and something to do.

use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::role::Role;
use pilot_core::token::Token;
use pilot_ledger::clock::Clock;
use serde::Deserialize;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::exit::Failure;
use crate::output::note;

/// Title, risk, what is executed, and the steps it takes beyond the draft.
const SAMPLES: [(&str, &str, &str, &[Step]); 5] = [
    ("Delete the staging database of 2024", "low", "dropdb staging_2024", &[]),
    (
        "Rotate the root certificate of the payment gateway",
        "high",
        "rotate-ca --gateway payments --overlap 30d",
        &[Step::Submit],
    ),
    (
        "Open port 5432 from the reporting subnet",
        "medium",
        "firewall allow reporting -> warehouse:5432",
        &[Step::Submit, Step::Approve],
    ),
    (
        "Restart the billing workers",
        "low",
        "systemctl restart billing-worker@*",
        &[Step::Submit, Step::Approve, Step::Clear],
    ),
    (
        "Raise the daily transfer limit for the year-end run",
        "medium",
        "limits set transfer.daily 5000000",
        &[Step::Submit, Step::Approve, Step::Clear, Step::Start, Step::Succeed, Step::Accept],
    ),
];

#[derive(Clone, Copy)]
enum Step {
    Submit,
    Approve,
    Clear,
    Start,
    Succeed,
    Accept,
}

impl Step {
    fn role(self) -> Role {
        match self {
            Step::Submit => Role::Initiator,
            Step::Approve | Step::Accept => Role::Approver,
            Step::Clear => Role::SecurityAdmin,
            Step::Start | Step::Succeed => Role::Executor,
        }
    }

    fn request(self, content_digest: &str) -> Value {
        let tonight = Clock::System.now().plus(Duration::from_hours(8));
        match self {
            Step::Submit => json!({ "action": "submit" }),
            Step::Approve => json!({ "action": "approve", "content_digest": content_digest }),
            Step::Clear => {
                json!({ "action": "clear", "content_digest": content_digest, "inputs": { "not_after": tonight } })
            }
            Step::Start => json!({ "action": "start", "content_digest": content_digest }),
            Step::Succeed => json!({ "action": "succeed", "inputs": { "result": "done, checked twice" } }),
            Step::Accept => json!({ "action": "accept", "comment": "figures agree with the request" }),
        }
    }
}

/// A demo without samples is still a demo, so a failure is only mentioned.
pub(super) fn make(url: &str, tokens: Vec<(Actor, Zeroizing<String>)>) {
    if let Err(failure) = make_all(url, tokens) {
        let _ = note(&format!("not all sample items could be created: {failure:?}"));
    }
}

fn make_all(url: &str, tokens: Vec<(Actor, Zeroizing<String>)>) -> Result<(), Failure> {
    let mut clients = Vec::new();
    for (actor, token) in tokens {
        let token = Token::parse(token).map_err(|error| Failure::Usage(error.to_string()))?;
        clients.push((actor.role, Client::with_token(url, token)?));
    }
    let client = |role: Role| clients.iter().find(|(known, _)| *known == role).map(|(_, client)| client);
    for (title, risk, operation, steps) in SAMPLES {
        let Some(initiator) = client(Role::Initiator) else { return Ok(()) };
        let item: Item = initiator.post("/v1/items", &new_item(title, risk, operation))?.read()?;
        for step in steps {
            let Some(client) = client(step.role()) else { return Ok(()) };
            let path = format!("/v1/items/{}/transitions", item.id);
            client.post(&path, &step.request(&item.content_digest))?.read::<Value>()?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Item {
    id: String,
    content_digest: String,
}

fn new_item(title: &str, risk: &str, operation: &str) -> Value {
    json!({
        "workflow": "controlled-operation",
        "title": title,
        "payload": {
            "purpose": "A sample, so that there is something to look at.",
            "operation": operation,
            "risk": risk,
            "rollback_plan": "Undo it by hand and tell the owner.",
            "targets": ["demo"],
        },
    })
}
