//! Items as the service shows them, with the definition they move by and what has happened to them.

use pilot_api::events::EventsPage;
use pilot_api::items::{HistoryPage, ItemView, ItemsPage, TransitionView};
use pilot_api::outlook::OutlookView;
use pilot_api::workflows::WorkflowView;
use pilot_core::item::ItemId;
use pilot_core::time::Time;
use serde::Deserialize as _;
use serde_json::Value;

use crate::client::query::{encode, path_with};
use crate::client::repeat::{Tries, is_lost};
use crate::client::{Ask, Client};
use crate::exit::Failure;

/// More than any item can have without comments, and more than anyone reads.
const HISTORY_PAGES_MAX: usize = 25;

pub(crate) struct FoundItem {
    pub view: ItemView<'static>,
    /// None from a service that is older than this program, and says nothing about it.
    pub outlook: Option<OutlookView>,
    /// Everything the service said, also what this program does not know.
    pub value: Value,
    /// The service's time.
    pub now: Option<Time>,
}

pub(crate) async fn item(client: &Client, id: &ItemId) -> Result<FoundItem, Failure> {
    let (path, mut tries) = (format!("/v1/items/{id}"), Tries::default());
    loop {
        let (outcome, now) = match client.ask_dated(Ask::get(&path)).await {
            Ok((reply, now)) => (Ok(reply), now),
            Err(failure) => (Err(failure), None),
        };
        if !is_lost(&outcome) || !tries.again().await? {
            return found(outcome?.read()?, now);
        }
    }
}

pub(crate) fn found(value: Value, now: Option<Time>) -> Result<FoundItem, Failure> {
    let view = serde_json::from_value(value.clone())
        .map_err(|error| Failure::environment("the item is not what a pilot service sends", error))?;
    let outlook = OutlookView::deserialize(&value).ok();
    Ok(FoundItem { view, outlook, value, now })
}

/// The definition that the item was created under, and keeps.
pub(crate) async fn definition(client: &Client, item: &ItemView<'_>) -> Result<WorkflowView, Failure> {
    let path = format!("/v1/workflows/{}", encode(&item.workflow.name));
    client.insist(Ask::get(&path_with(&path, &[("digest", Some(&item.workflow.digest))]))).await?.read()
}

/// The definition in force.
pub(crate) async fn definition_named(client: &Client, name: &str) -> Result<WorkflowView, Failure> {
    client.insist(Ask::get(&format!("/v1/workflows/{}", encode(name)))).await?.read()
}

/// What happened to an item, oldest first: everything, or its moves.
pub(crate) async fn history(client: &Client, id: &ItemId) -> Result<Vec<TransitionView<'static>>, Failure> {
    entries(client, &format!("/v1/items/{id}/history")).await
}

pub(crate) async fn moves(client: &Client, id: &ItemId) -> Result<Vec<TransitionView<'static>>, Failure> {
    entries(client, &format!("/v1/items/{id}/transitions")).await
}

async fn entries(client: &Client, path: &str) -> Result<Vec<TransitionView<'static>>, Failure> {
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..HISTORY_PAGES_MAX {
        let page = client.insist(Ask::get(&path_with(path, &[("cursor", cursor.as_deref())]))).await?;
        let HistoryPage { transitions, next } = page.read()?;
        all.extend(transitions);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(all)
}

/// One page of a list; its items also as the service sent them.
pub(crate) async fn page(client: &Client, path: &str) -> Result<(Vec<Value>, ItemsPage), Failure> {
    let reply = client.insist(Ask::get(path)).await?;
    let value: Value = reply.read()?;
    let values = value.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok((values, reply.read()?))
}

/// How many entries the ledger has, as of its newest checkpoint. Those that follow come with the feed.
pub(crate) async fn ledger_size(client: &Client) -> Result<u64, Failure> {
    let text = client.insist(Ask::get("/v1/log/checkpoint")).await?.text()?;
    let size = text.lines().nth(1).and_then(|line| line.parse().ok());
    size.ok_or_else(|| Failure::Environment("the checkpoint is not what a pilot service sends".into()))
}

/// The digest of the item's content after this entry.
pub(crate) async fn content_after(client: &Client, entry: u64) -> Result<Option<String>, Failure> {
    let after = entry.checked_sub(1).map(|before| before.to_string());
    let path = path_with("/v1/events", &[("after", after.as_deref()), ("limit", Some("1"))]);
    let page: EventsPage = client.insist(Ask::get(&path)).await?.read()?;
    Ok(page.events.into_iter().find(|event| event.index == entry).and_then(|event| event.content))
}
