//! An item's content, checked before anyone decides on it.
//!
//! Validating a payload against its schema is the most expensive step of a decision, and it depends only on the
//! definition and the content. So it is done beforehand, outside the writer, and `decide` only reads the result.

use std::sync::Arc;

use serde_json::Value;

use crate::decide::{Change, Unasked};
use crate::document::ContentDigest;
use crate::fault::Fault;
use crate::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX, PAYLOAD_VALUES_MAX, TITLE_CHARS_MAX};
use crate::payload::Payload;
use crate::refusal::Refusal;
use crate::workflow::{Definition, Name};

/// A title and a payload, and what a definition finds wrong with them as a draft.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    title: Arc<str>,
    payload: Payload,
    digest: ContentDigest,
    /// The digest of the definition that judged it.
    judged_by: Name,
    faults: Vec<Fault>,
}

impl Content {
    /// For content that someone sends now. `digest` is that of the document made of this title and payload.
    pub fn judge(definition: &Definition, title: &str, payload: &Value, digest: ContentDigest) -> Content {
        let newer = newer_faults(title, payload);
        // Content that is too large is not checked any further.
        let faults = if newer.is_empty() { faults(definition, title, payload) } else { newer };
        Content::with(definition, title, payload, digest, faults)
    }

    /// For content in the ledger: checked by the rules of the first version that accepted it. A limit that was added
    /// later must not make a legal history illegal.
    pub fn recorded(definition: &Definition, title: &str, payload: &Value, digest: ContentDigest) -> Content {
        Content::with(definition, title, payload, digest, faults(definition, title, payload))
    }

    /// For content that was already accepted and is not checked again.
    pub fn accepted(definition: &Definition, title: &str, payload: &Value, digest: ContentDigest) -> Content {
        Content::with(definition, title, payload, digest, Vec::new())
    }

    fn with(
        definition: &Definition,
        title: &str,
        payload: &Value,
        digest: ContentDigest,
        faults: Vec<Fault>,
    ) -> Content {
        let (payload, judged_by) = (Payload::of(payload), definition.digest().clone());
        Content { title: title.into(), payload, digest, judged_by, faults }
    }

    /// For content that the ledger names but that can no longer be read.
    pub fn left_out(definition: &Definition, digest: ContentDigest) -> Content {
        let judged_by = definition.digest().clone();
        Content { title: "".into(), payload: Payload::left_out(), digest, judged_by, faults: Vec::new() }
    }

    pub fn title(&self) -> &Arc<str> {
        &self.title
    }

    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    pub fn digest(&self) -> &ContentDigest {
        &self.digest
    }

    pub(super) fn found_fit(&self, definition: &Definition) -> Result<(), Refusal> {
        if self.judged_by != *definition.digest() {
            return Err(Refusal::OtherDefinition);
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Refusal::Invalid(self.faults.clone())) }
    }

    pub(super) fn unasked(&self) -> Vec<Unasked> {
        self.payload.is_left_out().then_some(Unasked::Content).into_iter().collect()
    }

    pub(super) fn change(&self) -> Change {
        let (title, payload) = (Arc::clone(&self.title), self.payload.clone());
        Change::Content { title, payload, content_digest: self.digest.clone() }
    }
}

/// Checks that apply only to new content.
fn newer_faults(title: &str, payload: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    if title.chars().any(char::is_control) {
        faults.push(Fault::new("/title", "must not contain control characters, such as line breaks or tabs"));
    }
    if values(payload) > PAYLOAD_VALUES_MAX {
        faults.push(Fault::new("/payload", format!("has more than {PAYLOAD_VALUES_MAX} values")));
    }
    faults
}

/// What is wrong with a title and an unfinished payload.
fn faults(definition: &Definition, title: &str, payload: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    if title.trim().is_empty() || title.chars().count() > TITLE_CHARS_MAX {
        faults.push(Fault::new("/title", format!("must have 1 to {TITLE_CHARS_MAX} characters")));
    }
    if !payload.is_object() {
        faults.push(Fault::new("/payload", "must be an object"));
    } else if depth(payload) > PAYLOAD_DEPTH_MAX {
        faults.push(Fault::new("/payload", format!("is nested deeper than {PAYLOAD_DEPTH_MAX} levels")));
    } else if serde_json::to_vec(payload).map_or(usize::MAX, |bytes| bytes.len()) > PAYLOAD_BYTES_MAX {
        faults.push(Fault::new("/payload", format!("is larger than {PAYLOAD_BYTES_MAX} bytes")));
    } else {
        faults.extend(definition.draft_faults(payload));
    }
    faults
}

/// How many values there are inside `value`, at every level.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(|element| 1 + values(element)).sum(),
        Value::Object(members) => members.values().map(|member| 1 + values(member)).sum(),
        _ => 0,
    }
}

/// Bounded by the parser that made the value, which refuses deep nesting before it can exhaust the stack.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
