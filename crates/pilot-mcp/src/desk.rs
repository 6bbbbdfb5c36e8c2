//! What every tool works with: the service, who is asking, and what this session has done.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pilot_api::items::{ItemView, TransitionView};
use pilot_api::outlook::{EffectView, OutlookView};
use pilot_api::workflows::WorkflowView;
use pilot_core::actor::Actor;
use pilot_core::document::sha256_of_canonical;
use pilot_core::item::ItemId;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::refusal::{Refusal, waits};
use crate::service::{Answer, Request, Service};

pub(crate) struct Desk<S> {
    pub service: S,
    pub actor: Actor,
    /// A text that no other session has.
    session: String,
    /// Starts that this session has asked for, each with its key.
    started: Mutex<HashMap<ItemId, (Value, String)>>,
    /// One proposal after the other: the second of two equal ones finds the first.
    pub proposing: tokio::sync::Mutex<()>,
    /// One start after the other: the second of two equal ones is told that it is the first.
    pub starting: tokio::sync::Mutex<()>,
    /// True once the agent is gone.
    pub ended: watch::Receiver<bool>,
}

/// An item as the service shows it to the caller.
pub(crate) struct Found {
    pub view: ItemView<'static>,
    pub outlook: OutlookView,
}

impl Found {
    pub(crate) fn can(&self, action: &str) -> bool {
        self.view.actions.iter().any(|known| **known == *action)
    }

    /// Nothing takes it further.
    pub(crate) fn is_finished(&self) -> bool {
        self.outlook.waiting.is_empty() && self.view.waits_for.is_empty()
    }

    /// The action by which the caller sends on what they are still editing: `submit`, or else the only one there is.
    /// Where the content cannot be edited any more, an action that moves the item may be a decision.
    pub(crate) fn submission(&self) -> String {
        let moves = |effect: &EffectView| effect.moves && !effect.ends;
        let forward = self.outlook.effects.iter().filter(|(_, effect)| moves(effect)).map(|(name, _)| name.to_string());
        match forward.collect::<Vec<_>>().as_slice() {
            [only] if self.can("edit") => only.clone(),
            _ => "submit".to_owned(),
        }
    }
}

impl<S: Service> Desk<S> {
    pub(crate) fn new(service: S, actor: Actor, session: String, ended: watch::Receiver<bool>) -> Desk<S> {
        let (started, proposing, starting) = Default::default();
        Desk { service, actor, session, started, proposing, starting, ended }
    }

    pub(crate) fn own_name(&self) -> &str {
        self.actor.actor_id.as_str()
    }

    /// A key that follows from what is asked for and by whom: the same request again gets the same answer.
    pub(crate) fn key(&self, what: &str, arguments: &Value) -> String {
        let text = json!({"actor": self.own_name(), "what": what, "arguments": arguments});
        format!("mcp-{}", sha256_of_canonical(&text).trim_start_matches("sha256:"))
    }

    /// The same for this session only.
    pub(crate) fn session_key(&self, what: &str, arguments: &Value) -> String {
        self.key(what, &json!({"session": self.session, "arguments": arguments}))
    }

    /// Before the request is sent, because its answer may be lost. Gives back what was remembered before.
    pub(crate) fn remember_start(&self, item: &ItemId, asked: Option<(Value, String)>) -> Option<(Value, String)> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        match asked {
            Some(asked) => started.insert(item.clone(), asked),
            None => started.remove(item),
        }
    }

    /// The start of this item that this session has asked for, with its key.
    pub(crate) fn asked_start(&self, item: &ItemId) -> Option<(Value, String)> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).get(item).cloned()
    }

    /// What the service answers, or its refusal.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, request: Request) -> Result<T, Refusal> {
        let answer = self.service.send(request).await?;
        read(answer)
    }

    pub(crate) async fn item(&self, id: &ItemId) -> Result<Found, Refusal> {
        let value =
            self.ask(Request::get(format!("/v1/items/{id}"))).await.map_err(|refusal| refusal.about(id.as_str()))?;
        found(value)
    }

    /// The definition in force.
    pub(crate) async fn workflow(&self, name: &str) -> Result<WorkflowView, Refusal> {
        self.ask(Request::get(format!("/v1/workflows/{}", encoded(name)))).await
    }

    /// The definition that the item was created under, and keeps.
    pub(crate) async fn definition(&self, item: &ItemView<'_>) -> Result<WorkflowView, Refusal> {
        let (name, digest) = (encoded(&item.workflow.name), encoded(&item.workflow.digest));
        self.ask(Request::get(format!("/v1/workflows/{name}?digest={digest}"))).await
    }

    /// Takes an action. A refusal also says who is waited for.
    pub(crate) async fn act(&self, id: &ItemId, body: Value, key: String) -> Result<TransitionView<'static>, Refusal> {
        let taken = self.ask(Request::post(format!("/v1/items/{id}/transitions"), body, key)).await;
        match taken {
            Err(refusal) => Err(self.explained(id, refusal).await),
            taken => taken,
        }
    }

    pub(crate) async fn explained(&self, id: &ItemId, refusal: Refusal) -> Refusal {
        let refusal = refusal.about(id.as_str());
        if !refusal.is_by_service() {
            return refusal;
        }
        let waits = self.item(id).await.ok().and_then(|found| waits(&found.outlook.waiting));
        waits.into_iter().fold(refusal, |refusal, waits| refusal.and(&waits))
    }
}

/// The body of an action, with those members that have a value.
pub(crate) fn action<const N: usize>(name: &str, members: [(&str, Option<Value>); N]) -> Value {
    let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    [("action".to_owned(), name.into())].into_iter().chain(given).collect::<Map<_, _>>().into()
}

pub(crate) fn found(value: Value) -> Result<Found, Refusal> {
    let outlook = serde_json::from_value(value.clone()).map_err(|error| unreadable(&error))?;
    let view = serde_json::from_value(value).map_err(|error| unreadable(&error))?;
    Ok(Found { view, outlook })
}

fn read<T: DeserializeOwned>(answer: Answer) -> Result<T, Refusal> {
    if !answer.is_success() {
        return Err(Refusal::by_service(&answer));
    }
    serde_json::from_value(answer.body).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::new("not_a_pilot_service", format!("The answer is not what a Pilot service sends: {error}."))
}

/// Percent-encoded, for a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
