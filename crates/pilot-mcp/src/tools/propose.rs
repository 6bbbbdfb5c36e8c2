//! `propose`: create and submit, once. The same proposal again finds the item that is there, however far it has come.

use pilot_api::items::{ContentView, HistoryPage, ItemSummaryView};
use pilot_api::workflows::WorkflowView;
use pilot_core::item::ItemId;
use pilot_core::json::{self, Bounds};
use pilot_core::limits::{PAYLOAD_DEPTH_MAX, PAYLOAD_VALUES_MAX};
use pilot_core::workflow::PayloadSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::arguments::Propose;
use crate::bounds::{ATTEMPTS_MAX, COMPARED_MAX, OWN_ITEMS_MAX};
use crate::desk::{Desk, Found, encoded};
use crate::refusal::Refusal;
use crate::service::{Request, Service};
use crate::texts::WARNING;
use crate::tools::Said;
use crate::view::Status;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProposeResult {
    /// True if this very proposal was there before the call, and nothing was created.
    pub already_proposed: bool,
    /// Which attempt at the same proposal this is.
    pub attempt: u32,
    /// The `attempt` with which the same thing can be proposed once more. Null while this one is not finished.
    pub next_attempt: Option<u32>,
    /// What to do next.
    pub next_step: String,
    pub status: Status,
}

pub(crate) async fn propose<S: Service>(desk: &Desk<S>, arguments: Propose) -> Result<Said<ProposeResult>, Refusal> {
    let _turn = desk.proposing.lock().await;
    let proposal = Proposal::read(arguments)?;
    let definition = desk.workflow(&proposal.workflow).await?;
    check(&definition, &proposal.payload)?;
    let earlier = proposal.earlier(desk).await?;
    let (id, is_attached) = match earlier.get(proposal.position()) {
        Some(id) => (id.clone(), true),
        None if !earlier.is_empty() && proposal.position() > earlier.len() => {
            let words = format!("the next attempt at this proposal is {}", earlier.len() + 1);
            return Err(Refusal::argument("/attempt", &words));
        }
        None => {
            not_yet(desk, earlier.last()).await?;
            (proposal.create(desk).await?, false)
        }
    };
    let found = desk.item(&id).await?;
    // A creation whose answer was lost, or was given an hour ago, is answered once more: the item shows how far it is.
    let is_attached = is_attached || found.view.version > 1;
    // Only what was never submitted: what came back to its first state was returned, and is to be revised.
    let is_cut_off = found.view.version == 1 && found.view.state == *definition.initial;
    let found = if is_cut_off { submit(desk, &id, &found).await? } else { found };
    Ok(said(desk, &proposal, &found, is_attached))
}

/// People are asked about the same thing once more only after they have answered.
async fn not_yet<S: Service>(desk: &Desk<S>, last: Option<&ItemId>) -> Result<(), Refusal> {
    let Some(id) = last else { return Ok(()) };
    if desk.item(id).await?.is_finished() {
        return Ok(());
    }
    let words = format!("the attempt before this one, item {id}, is not finished; call `wait`, `revise` or `withdraw`");
    Err(Refusal::argument("/attempt", &words))
}

/// What is proposed.
struct Proposal {
    workflow: String,
    title: String,
    payload: Value,
    attempt: u32,
}

impl Proposal {
    fn read(arguments: Propose) -> Result<Proposal, Refusal> {
        let Propose { workflow, title, payload, attempt } = arguments;
        if !(1..=ATTEMPTS_MAX).contains(&attempt) {
            let words = format!("attempts are counted from 1 to {ATTEMPTS_MAX}; after that, choose another title");
            return Err(Refusal::argument("/attempt", &words));
        }
        Ok(Proposal { workflow, title, payload: as_read(payload)?, attempt })
    }
}

/// A payload as the service would read it: 1.0 is 1, and a number that others would round is a fault.
pub(crate) fn as_read(payload: Map<String, Value>) -> Result<Value, Refusal> {
    let bounds = Bounds { depth: PAYLOAD_DEPTH_MAX, values: PAYLOAD_VALUES_MAX };
    json::parse(Value::Object(payload).to_string().as_bytes(), bounds).map_err(|faults| {
        let placed = faults.into_iter().map(|fault| (format!("/payload{}", fault.pointer), fault.detail));
        Refusal::faults(placed.collect())
    })
}

/// Faults are found before anything is created, so that no unfinished draft is left behind.
pub(crate) fn check(definition: &WorkflowView, payload: &Value) -> Result<(), Refusal> {
    // A schema that this program cannot read is the service's to judge by.
    let Ok(schema) = PayloadSchema::compile(&definition.payload_schema) else { return Ok(()) };
    let faults: Vec<_> = schema.faults(payload).into_iter().map(|fault| (fault.pointer, fault.detail)).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let remedy = format!("Nothing was sent. `workflows` with the name {} shows the payload schema.", definition.name);
    Err(Refusal::faults(faults).and(&remedy))
}

#[derive(Deserialize)]
struct Summaries {
    items: Vec<ItemSummaryView<'static>>,
}

impl Proposal {
    /// The place of this attempt among the items that were proposed like this.
    fn position(&self) -> usize {
        usize::try_from(self.attempt).unwrap_or(usize::MAX).saturating_sub(1)
    }

    fn key<S: Service>(&self, desk: &Desk<S>) -> String {
        let Proposal { workflow, title, payload, attempt } = self;
        let arguments = json!({"workflow": workflow, "title": title, "payload": payload, "attempt": attempt});
        desk.key("propose", &arguments)
    }

    async fn create<S: Service>(&self, desk: &Desk<S>) -> Result<ItemId, Refusal> {
        let body = json!({"workflow": self.workflow, "title": self.title, "payload": self.payload});
        let created: Created = desk.ask(Request::post("/v1/items", body, self.key(desk))).await?;
        Ok(created.id)
    }

    /// The caller's own items that were created with this content, oldest first. The service forgets keys after a day,
    /// but not items.
    async fn earlier<S: Service>(&self, desk: &Desk<S>) -> Result<Vec<ItemId>, Refusal> {
        let (me, workflow) = (encoded(desk.own_name()), encoded(&self.workflow));
        let path = format!("/v1/items?created_by={me}&workflow={workflow}&view=summary&limit={OWN_ITEMS_MAX}");
        let summaries: Summaries = desk.ask(Request::get(path)).await?;
        let alike = summaries.items.into_iter().filter(|item| item.title == self.title).take(COMPARED_MAX);
        let mut earlier = Vec::new();
        for item in alike {
            if self.is_content_of(desk, &item.id).await? {
                earlier.push(item.id.into_owned());
            }
        }
        earlier.reverse();
        Ok(earlier)
    }

    /// Whether the item has this content, or had it when it was created.
    async fn is_content_of<S: Service>(&self, desk: &Desk<S>, id: &ItemId) -> Result<bool, Refusal> {
        let found = desk.item(id).await?;
        if found.view.payload.value() == self.payload {
            return Ok(true);
        }
        let first: HistoryPage = desk.ask(Request::get(format!("/v1/items/{id}/history?limit=1"))).await?;
        let digest = first.transitions.first().and_then(|entry| entry.content_digest.as_ref());
        let Some(digest) = digest.filter(|digest| ***digest != *found.view.content_digest) else { return Ok(false) };
        let path = format!("/v1/items/{id}/contents/{}", encoded(digest.as_str()));
        match desk.ask::<ContentView>(Request::get(path)).await {
            Ok(content) => Ok(content.title == self.title && content.payload == self.payload),
            // Erased: nobody can tell any more.
            Err(refusal) if refusal.code() == "not_found" => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }
}

#[derive(Deserialize)]
struct Created {
    id: ItemId,
}

/// Takes the action with which the definition lets the initiator send an item on.
pub(crate) async fn submit<S: Service>(desk: &Desk<S>, id: &ItemId, found: &Found) -> Result<Found, Refusal> {
    let action = found.submission();
    // With the version, because the same content may be submitted again after it was returned.
    let key = desk.key("submit", &json!({"item": id, "version": found.view.version}));
    let body = json!({"action": action, "content_digest": found.view.content_digest});
    let kept = "The content is kept in the item but was not submitted: `revise` corrects it, `withdraw` ends it.";
    desk.act(id, body, key).await.map_err(|refusal| refusal.and(kept))?;
    desk.item(id).await
}

fn said<S: Service>(desk: &Desk<S>, proposal: &Proposal, found: &Found, already_proposed: bool) -> Said<ProposeResult> {
    let status = Status::new(found, desk.service.link(found.view.id.as_str()));
    let next_attempt = status.finished.then_some(proposal.attempt + 1);
    let next_step = match next_attempt {
        Some(next) => format!(
            "This proposal is over ({}). If the same thing is to be proposed once more, call `propose` with attempt {next}.",
            status.state
        ),
        None if found.can("edit") => "It was returned to you: read `history`, then call `revise`.".to_owned(),
        None => {
            "Call `wait`, or do something else and ask `status` later. Tell the people who are waited for.".to_owned()
        }
    };
    let done = if already_proposed { "This was proposed before; nothing was created." } else { "Proposed." };
    let words = format!("{done} {} {next_step} {WARNING}", status.words());
    let view = ProposeResult { already_proposed, attempt: proposal.attempt, next_attempt, next_step, status };
    Said { words, view }
}
