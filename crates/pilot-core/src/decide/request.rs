//! What is requested, and by whom.

use serde_json::Value;

use super::content::Content;
use crate::actor::Actor;
use crate::document::ContentDigest;
use crate::item::{Item, ItemId};
use crate::refusal::Refusal;

/// Who acts: an actor that the server knows by a credential, or the passing of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    Actor(Actor),
    Timer,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Act(ActionRequest),
    Edit(EditRequest),
    Timer,
}

/// The versions a request was made for: it is valid only while the item has one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfMatch(Vec<u64>);

impl IfMatch {
    /// An empty list matches nothing.
    pub fn any_of(versions: Vec<u64>) -> IfMatch {
        IfMatch(versions)
    }

    pub fn one(version: u64) -> IfMatch {
        IfMatch(vec![version])
    }

    pub fn check(&self, item: &Item) -> Result<(), Refusal> {
        if self.0.contains(&item.version) { Ok(()) } else { Err(Refusal::VersionMismatch { actual: item.version }) }
    }
}

/// No field names an actor, a role or a time, so a request cannot supply one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActionRequest {
    pub action: String,
    pub content_digest: Option<String>,
    pub comment: Option<String>,
    pub inputs: Option<Value>,
    pub if_match: Option<IfMatch>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EditRequest {
    /// The new content; `None` if the request changes nothing.
    pub content: Option<Content>,
    /// The content it was made from. By the time of the decision, the item may have another.
    pub made_from: ContentDigest,
    pub if_match: Option<IfMatch>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewItem {
    pub id: ItemId,
    pub content: Content,
}
