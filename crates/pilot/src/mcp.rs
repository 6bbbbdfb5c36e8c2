//! The way to the service for an AI agent: the client with its token, behind what `pilot-mcp` needs of it.

use std::sync::Arc;
use std::time::Duration;

use http::header::IF_MATCH;
use pilot_api::events::EventView;
use pilot_mcp::{Answer, Method, Request, Unreachable};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::client::follow::{Follower, Heard};
use crate::client::repeat::is_lost;
use crate::client::{Ask, Client, Reply};
use crate::exit::Failure;
use crate::items;
use crate::work::service::Service;

/// For one answer: an agent waits for it, and its client gives up after a minute.
const PATIENCE: Duration = Duration::from_secs(8);
/// Pauses before a request whose answer was lost is sent again.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(1)];

pub(crate) struct Way(pub Arc<Service>);

impl pilot_mcp::Service for Way {
    async fn send(&self, request: Request) -> Result<Answer, Unreachable> {
        let mut reply = insist(&self.0.client(), &request).await;
        if reply.as_ref().is_ok_and(|reply| reply.status() == 401) && self.0.read_token_again().await {
            reply = insist(&self.0.client(), &request).await;
        }
        let reply = reply.map_err(|failure| Unreachable(failure.text().to_owned()))?;
        // What is not JSON is not the service's, and is never shown.
        Ok(Answer { status: reply.status(), body: serde_json::from_slice(reply.bytes()).unwrap_or(Value::Null) })
    }

    fn follow(&self, item: &str) -> mpsc::Receiver<()> {
        let (sender, receiver) = mpsc::channel(1);
        let (client, item) = (self.0.client(), item.to_owned());
        tokio::spawn(async move {
            tokio::select! {
                () = pass_on(&client, &item, &sender) => {}
                () = sender.closed() => {}
            }
        });
        receiver
    }

    fn link(&self, item: &str) -> String {
        self.0.client().console_link(item)
    }
}

/// The request, and once more while its answer is lost, if it is safe to repeat.
async fn insist(client: &Client, request: &Request) -> Result<Reply, Failure> {
    let is_safe = request.method == Method::Get || request.idempotency_key.is_some();
    for pause in PAUSES.into_iter().filter(|_| is_safe) {
        let outcome = client.ask(ask(request)).await;
        if !is_lost(&outcome) {
            return outcome;
        }
        tokio::time::sleep(pause).await;
    }
    client.ask(ask(request)).await
}

fn ask(request: &Request) -> Ask<'_> {
    let (path, body) = (&*request.path, request.body.as_ref().unwrap_or(&Value::Null));
    let mut ask = match request.method {
        Method::Get => Ask::get(path),
        Method::Post => Ask::post(path, body),
        Method::Patch => Ask::patch(path, body),
    };
    if let Some(key) = &request.idempotency_key {
        ask = ask.key(key);
    }
    if let Some(version) = request.if_match {
        ask = ask.header(IF_MATCH, format!("\"{version}\""));
    }
    ask.within(PATIENCE)
}

/// A sign whenever the feed is opened and whenever it says something about the item.
async fn pass_on(client: &Client, item: &str, signs: &mpsc::Sender<()>) {
    let Ok(size) = items::ledger_size(client).await else { return };
    let mut follower = Follower::new(client, size.checked_sub(1));
    while let Ok(heard) = follower.next().await {
        let is_sign = match heard {
            Heard::Opened => true,
            Heard::Event(event) => is_about(&event.data, item),
        };
        if is_sign && signs.send(()).await.is_err() {
            return;
        }
    }
}

fn is_about(data: &str, item: &str) -> bool {
    serde_json::from_str::<EventView>(data).is_ok_and(|event| event.item.as_deref() == Some(item))
}
