//! Items in every state, so that everyone in the demo has something to look at and something to do.

use std::time::Duration;

use http::header::IF_MATCH;
use pilot_core::actor::Actor;
use pilot_core::token::Token;
use pilot_ledger::clock::Clock;
use serde::Deserialize;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::stories::{PLANNED, Story, URGENT};
use crate::client::{Ask, Client};
use crate::exit::Failure;
use crate::output::note;

/// A window that people have time to use.
const TONIGHT: Duration = Duration::from_hours(3);
/// A window that ends while the demo is being looked at.
const MOMENT: Duration = Duration::from_secs(2);

/// A demo without samples is still a demo, so a failure is only mentioned.
pub(super) fn make(url: &str, tokens: Vec<(Actor, Zeroizing<String>)>) {
    let made = People::new(url, tokens).and_then(|people| people.make_all());
    if let Err(failure) = made {
        let _ = note(&format!("not all sample items could be created: {failure:?}"));
    }
}

struct People(Vec<(String, Client)>);

#[derive(Deserialize)]
struct Item {
    id: String,
    version: u64,
    content_digest: String,
}

impl People {
    fn new(url: &str, tokens: Vec<(Actor, Zeroizing<String>)>) -> Result<People, Failure> {
        let mut people = Vec::new();
        for (actor, token) in tokens {
            let token = Token::parse(token).map_err(|error| Failure::Usage(error.to_string()))?;
            people.push((actor.actor_id.to_string(), Client::with_token(url, token)?));
        }
        Ok(People(people))
    }

    fn make_all(&self) -> Result<(), Failure> {
        // One after another: its creator can have only one that is open.
        for story in URGENT {
            let item = self.create("emergency-operation", story)?;
            self.tell(story, item)?;
        }
        // The first story is created last and told first: it is the first in a list of the newest items, and the first
        // by deadline.
        let mut items = Vec::new();
        for story in PLANNED.iter().rev() {
            items.push((story, self.create("controlled-operation", story)?));
        }
        for (story, item) in items.into_iter().rev() {
            self.tell(story, item)?;
        }
        Ok(())
    }

    fn client(&self, name: &str) -> Result<&Client, Failure> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, client)| client).ok_or_else(|| Failure::Usage(format!("the demo has no actor {name}")))
    }

    fn create(&self, workflow: &str, story: &Story) -> Result<Item, Failure> {
        let body = json!({ "workflow": workflow, "title": story.title, "payload": story.payload() });
        self.client("ana")?.post("/v1/items", &body)?.read()
    }

    fn tell(&self, story: &Story, mut item: Item) -> Result<(), Failure> {
        for (name, action, words) in story.steps {
            let client = self.client(name)?;
            match *action {
                "edit" => item = edit(client, &item, words)?,
                "comment" => {
                    client
                        .post(&format!("/v1/items/{}/comments", item.id), &json!({ "text": words }))?
                        .read::<Value>()?;
                }
                action => {
                    let path = format!("/v1/items/{}/transitions", item.id);
                    client.post(&path, &request(action, words, &item.content_digest))?.read::<Value>()?;
                }
            }
        }
        Ok(())
    }
}

/// Changes what is executed; whoever decides next decides on the new content.
fn edit(client: &Client, item: &Item, operation: &str) -> Result<Item, Failure> {
    let path = format!("/v1/items/{}", item.id);
    let now: Item = client.get(&path)?.read()?;
    let body = json!({ "payload": { "operation": operation } });
    client.send(Ask::patch(&path, &body).header(IF_MATCH, format!("\"{}\"", now.version)))?.read()
}

/// `words` are the comment, or what the action takes instead of one.
fn request(action: &str, words: &str, content_digest: &str) -> Value {
    let until = |span| Clock::System.now().plus(span);
    match action {
        "approve" | "start" | "retry" => json!({ "action": action, "content_digest": content_digest }),
        "clear" => {
            let not_after = until(if words == "for a moment" { MOMENT } else { TONIGHT });
            json!({ "action": action, "content_digest": content_digest, "inputs": { "not_after": not_after } })
        }
        "succeed" | "fail" => json!({ "action": action, "inputs": { "result": words } }),
        "heartbeat" => json!({ "action": action, "inputs": { "progress": words } }),
        "submit" | "roll_back" | "withdraw" => json!({ "action": action }),
        _ => json!({ "action": action, "comment": words }),
    }
}
