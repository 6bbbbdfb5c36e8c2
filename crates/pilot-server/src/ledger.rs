//! From a decision to the ledger and back to an answer: the one path every write takes.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use pilot_core::decide::due_at;
use pilot_core::document::Document;
use pilot_core::entry::Entry;
use pilot_core::item::Item;
use pilot_core::refusal::Refusal;
use pilot_core::workflow::Definition;
use pilot_store::{Outcome, Record, Situation, Standing, StoreError, Write};
use serde::Serialize;

use crate::access::Caller;
use crate::api::items::respond;
use crate::api::request::no_such_item;
use crate::app::App;
use crate::body::Body;
use crate::problem::Problem;
use crate::routes::Answer;
use crate::workflows::Workflows;

/// An answer as it is kept with its idempotency key: the same request gets the same bytes again.
#[derive(Debug, PartialEq)]
pub struct StoredAnswer {
    pub status: u16,
    pub location: Option<String>,
    pub version: Option<u64>,
    pub body: Bytes,
}

/// Where the bytes of an answer will be written, made by whoever will read them.
pub fn room() -> Vec<u8> {
    // Enough for most, so that it need not grow.
    Vec::with_capacity(768)
}

/// A line of its own for all but the body: `201 7 /v1/items/…`, with `-` for what is absent. The body is appended as it
/// is.
fn first_line(mut room: Vec<u8>, status: u16, version: Option<u64>, location: Option<&str>) -> Vec<u8> {
    room.clear();
    let _ = match version {
        Some(version) => write!(room, "{status} {version} "),
        None => write!(room, "{status} - "),
    };
    room.extend_from_slice(location.unwrap_or("-").as_bytes());
    room.push(b'\n');
    room
}

impl StoredAnswer {
    /// The bytes of an answer that shows `view`.
    pub fn showing(
        room: Vec<u8>,
        status: u16,
        version: Option<u64>,
        location: Option<&str>,
        view: &impl Serialize,
    ) -> Vec<u8> {
        let mut bytes = first_line(room, status, version, location);
        // Views have text keys alone and are written to memory: this cannot fail.
        let _ = serde_json::to_writer(&mut bytes, view);
        bytes
    }

    /// Nobody waits for it.
    pub fn empty() -> Vec<u8> {
        first_line(Vec::new(), 200, None, None)
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Option<StoredAnswer> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(bytes.get(..end)?).ok()?;
        let mut words = line.splitn(3, ' ');
        let status = words.next()?.parse().ok()?;
        let mut present = || words.next().map(|word| Some(word).filter(|word| *word != "-"));
        let version = present()?.map(str::parse).transpose().ok()?;
        let location = present()?.map(str::to_owned);
        let body = Bytes::from(bytes).split_off(end + 1);
        Some(StoredAnswer { status, location, version, body })
    }
}

/// What the store is asked to record about an item.
pub fn record(definition: &Definition, entry: Entry, documents: Vec<Document>, item: Item, answer: Vec<u8>) -> Record {
    let standing = Standing {
        is_open: !item.is_terminal(definition),
        waits_for: item.waits_for(definition),
        due_at: due_at(definition, &item).map(|deadline| deadline.at),
        item,
    };
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
pub async fn settle(app: &App, caller: &Caller, action: &str, write: Write) -> Answer {
    settle_or_refuse(app, caller, action, write).await?.map_err(Problem::from)
}

/// As [`settle`], for those who can do something about a refusal.
pub async fn settle_or_refuse(
    app: &App,
    caller: &Caller,
    action: &str,
    write: Write,
) -> Result<Result<Response<Body>, Refusal>, Problem> {
    app.check_writing()?;
    match app.store.settle(write).await? {
        Outcome::Recorded { answer, .. } | Outcome::Repeated { answer } => {
            let unreadable = || Problem::internal(&"a stored answer cannot be read");
            StoredAnswer::from_bytes(answer).map(respond).map(Ok).ok_or_else(unreadable)
        }
        Outcome::KeyReused => Err(Problem::key_reused()),
        Outcome::NoSuchItem => Err(no_such_item()),
        Outcome::Refused(refusal) => {
            if refusal.is_about_access() {
                app.refusals.note(&caller.actor, action, refusal.code(), app.ledger_clock.now());
            }
            Ok(Err(refusal))
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => {
                let detail = "The stored data is damaged, so the service stops. An operator has to look first; \
                              retry after that, with the same Idempotency-Key if you sent one.";
                Problem::unavailable(detail, &error)
            }
            StoreError::DiskFailed(_) => {
                let detail = "The disk failed, so this was not acknowledged. Whether it was recorded is known only \
                              after the service restarts; retry then, with the same Idempotency-Key if you sent one.";
                Problem::unavailable(detail, &error)
            }
            StoreError::Hangs(_) => {
                let detail = "The disk is not responding, so this was not acknowledged. It may still have been \
                              recorded; retry with the same Idempotency-Key; without one, look at the item first.";
                Problem::unavailable(detail, &error)
            }
            StoreError::Unavailable(_) | StoreError::Refused(_) => {
                let detail = "This was not acknowledged. Retry with the same Idempotency-Key; without one, look at the item first.";
                Problem::unavailable(detail, &error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_answer_is_read_as_it_was_written() {
        for (location, version, body) in
            [(Some("/v1/items/x"), Some(7), "{\"a\":\"\\n\"}"), (None, Some(1), "a\nb - c"), (None, None, "")]
        {
            let mut bytes = first_line(room(), 201, version, location);
            bytes.extend_from_slice(body.as_bytes());
            let answer =
                StoredAnswer { status: 201, location: location.map(str::to_owned), version, body: body.into() };
            assert_eq!(StoredAnswer::from_bytes(bytes), Some(answer));
        }
        assert_eq!(StoredAnswer::from_bytes(b"201 7".to_vec()), None);
    }
}
