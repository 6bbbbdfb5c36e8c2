//! From a decision to the ledger and back to an answer: the one path every write takes.

use std::sync::Arc;

use pilot_core::decide::due_at;
use pilot_core::document::Document;
use pilot_core::entry::Entry;
use pilot_core::item::Item;
use pilot_core::refusal::Refusal;
use pilot_core::workflow::Definition;
use pilot_store::{Key, Outcome, Record, Situation, Standing, StoreError, Subject, Write};
use serde::{Deserialize, Serialize};

use crate::access::Caller;
use crate::api::items::respond;
use crate::api::request::no_such_item;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::routes::Answer;
use crate::workflows::Workflows;

/// An answer as it is kept with its idempotency key: the same request gets the same bytes again.
#[derive(Serialize, Deserialize)]
pub struct StoredAnswer {
    pub status: u16,
    pub location: Option<String>,
    pub version: Option<u64>,
    pub body: String,
}

/// What the store is asked to record about an item.
pub fn record(
    definition: &Definition,
    entry: Entry,
    documents: Vec<Document>,
    item: Item,
    answer: &StoredAnswer,
) -> Record {
    let standing = Standing {
        is_open: !item.is_terminal(definition),
        waits_for: item.waits_for(definition),
        due_at: due_at(definition, &item).map(|deadline| deadline.at),
        item,
    };
    let answer = serde_json::to_vec(answer).unwrap_or_default();
    Record { entry, documents, standing: Some(standing), answer, fact: None }
}

/// The item a write is about, and the definition it keeps.
pub fn subject<'s>(workflows: &Workflows, situation: &Situation<'s>) -> Result<(&'s Item, Arc<Definition>), Refusal> {
    let item = situation.item.ok_or(Refusal::OtherDefinition)?;
    let definition = workflows.of(&item.workflow).ok_or(Refusal::OtherDefinition)?;
    Ok((item, Arc::clone(definition)))
}

pub fn definition(app: &App, item: &Item) -> Result<Arc<Definition>, Problem> {
    let definition = app.workflows.of(&item.workflow).cloned();
    definition.ok_or_else(|| Problem::internal(&format!("the definition of item {} is not in the store", item.id)))
}

/// Decides and records, and answers. `action` is how a refusal for role, ownership or separation is written down.
pub async fn settle(
    app: &Arc<App>,
    caller: &Caller,
    action: &str,
    subject: Subject,
    key: Option<Key>,
    decide: impl FnMut(&Situation<'_>) -> Result<Record, Refusal> + Send + 'static,
) -> Answer {
    let outcome = app.store.settle(Write { subject, key, decide: Box::new(decide) }).await?;
    match outcome {
        Outcome::Recorded { answer, .. } | Outcome::Repeated { answer } => {
            Ok(respond(serde_json::from_slice(&answer).map_err(|error| Problem::internal(&error))?))
        }
        Outcome::KeyReused => {
            let detail = "This Idempotency-Key was used with another body; use a new key for a new request.";
            Err(Problem::new(Code::IdempotencyKeyReused, detail))
        }
        Outcome::NoSuchItem => Err(no_such_item()),
        Outcome::Refused(refusal) => {
            if refusal.is_about_access() {
                app.refusals.note(&caller.actor, action, refusal.code(), app.clock.now());
            }
            Err(refusal.into())
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => Problem::internal(&error),
            StoreError::DiskFailed(_) => {
                let detail = "The disk failed, so this was not acknowledged. Whether it was recorded shows when the service \
                              has been restarted; retry then, with the same Idempotency-Key if you sent one.";
                Problem::unavailable(detail, &error)
            }
            StoreError::Unavailable(_) | StoreError::Refused(_) => {
                let detail = "This was not acknowledged. Retry with the same Idempotency-Key; without one, look at the item first.";
                Problem::unavailable(detail, &error)
            }
        }
    }
}
