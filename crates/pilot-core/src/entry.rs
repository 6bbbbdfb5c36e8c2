//! An entry: one line of the ledger, small and canonical, with digests in place of what people wrote.

pub mod details;
mod kind;
mod written;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::details::{Details, IssuedPermit};
pub use self::kind::EntryType;
pub use self::written::Written;
use crate::actor::{Actor, ActorId};
use crate::decide::Transition;
use crate::document::{ContentDigest, DocumentKind};
use crate::item::{Item, ItemId};
use crate::role::Role;
use crate::time::Time;
use crate::workflow::Name;

/// The newest format of entries that this program knows.
pub const ENTRY_VERSION: u32 = 2;
/// From this format on, an entry can say who operates the machine that acted.
const WITH_OPERATOR: u32 = 2;

/// The members are sorted by name, so that plain serialisation is already the canonical form (RFC 8785).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<ActorId>,
    pub at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<ContentDigest>,
    /// The item's content after this entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentDigest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Name>,
    /// What the other members have no place for: see [`Details`]. Kept as written, since that is what is hashed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Name>,
    pub index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<ContentDigest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The operator of the actor, if the actor is a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operated_by: Option<ActorId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Name>,
    pub r#type: EntryType,
    pub v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// Why bytes are not an entry.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// Not damage: a newer program can read it.
    #[error("it has format {v}, which is newer than this program")]
    Newer { v: u32 },
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
}

impl Entry {
    /// Reads the format version first: an entry with members that only a newer program knows is newer, not malformed.
    pub fn parse(bytes: &[u8]) -> Result<Entry, EntryError> {
        #[derive(Deserialize)]
        struct Format {
            v: u32,
        }
        // Whether it is newer is asked only of what cannot be read, or says so: nearly all can be read at once.
        let read = serde_json::from_slice::<Entry>(bytes);
        if read.as_ref().is_ok_and(|entry| entry.v <= ENTRY_VERSION) {
            return Ok(read?);
        }
        match serde_json::from_slice::<Format>(bytes) {
            Ok(Format { v }) if v > ENTRY_VERSION => Err(EntryError::Newer { v }),
            Ok(_) | Err(_) => Ok(read?),
        }
    }

    /// An entry that is not about an item.
    pub fn of_service(index: u64, at: Time, actor: Option<&Actor>, details: &Details) -> Entry {
        Entry { details: Some(details.to_value()), ..Entry::bare(details.r#type(), index, at, actor) }
    }

    /// `None` if the entry has no details, or none that this program knows.
    pub fn details(&self) -> Option<Details> {
        Details::read(self.r#type, self.details.as_ref()?)?.ok()
    }

    /// Who did it, if anyone.
    pub fn actor(&self) -> Option<Actor> {
        let operated_by = self.operated_by.clone();
        Some(Actor { actor_id: self.actor_id.clone()?, role: self.role?, operated_by })
    }

    /// Each entry has the oldest format that can say what it says, so that its bytes follow from its meaning.
    pub const fn format(&self) -> u32 {
        if self.operated_by.is_some() { WITH_OPERATOR } else { 1 }
    }

    fn bare(r#type: EntryType, index: u64, at: Time, actor: Option<&Actor>) -> Entry {
        Entry {
            action: None,
            actor_id: actor.map(|actor| actor.actor_id.clone()),
            at,
            comment: None,
            content: None,
            definition: None,
            details: None,
            from: None,
            index,
            inputs: None,
            item: None,
            operated_by: actor.and_then(|actor| actor.operated_by.clone()),
            role: actor.map(|actor| actor.role),
            to: None,
            r#type,
            v: if actor.is_some_and(|actor| actor.operated_by.is_some()) { WITH_OPERATOR } else { 1 },
            version: None,
        }
    }

    /// What `decide` allowed; `after` is the item after it.
    pub fn of_transition(r#type: EntryType, index: u64, transition: &Transition, after: &Item) -> Entry {
        Entry {
            action: Some(transition.action().clone()),
            content: Some(after.content_digest.clone()),
            definition: Some(after.workflow.digest.clone()),
            from: transition.from().cloned(),
            item: Some(after.id.clone()),
            to: Some(transition.to().clone()),
            version: Some(transition.version()),
            ..Entry::bare(r#type, index, transition.at(), transition.actor())
        }
    }

    /// A comment: it changes neither the item nor its version.
    pub fn of_comment(index: u64, at: Time, actor: &Actor, item: &Item, comment: ContentDigest) -> Entry {
        Entry {
            comment: Some(comment),
            definition: Some(item.workflow.digest.clone()),
            item: Some(item.id.clone()),
            version: Some(item.version),
            ..Entry::bare(EntryType::ItemComment, index, at, Some(actor))
        }
    }

    /// A permit token was issued: it changes neither the item nor its version.
    pub fn of_permit(index: u64, at: Time, actor: &Actor, item: &Item, issued: IssuedPermit) -> Entry {
        Entry {
            definition: Some(item.workflow.digest.clone()),
            details: Some(Details::PermitIssued(issued).to_value()),
            item: Some(item.id.clone()),
            version: Some(item.version),
            ..Entry::bare(EntryType::PermitIssued, index, at, Some(actor))
        }
    }

    /// The documents stored with this entry. The content is stored once, with the entry that introduced it, although
    /// every later entry about the item names it.
    pub fn documents(&self) -> Vec<(DocumentKind, ContentDigest)> {
        let brings_content = matches!(self.r#type, EntryType::ItemCreated | EntryType::ItemEdited);
        // Read directly: the role map is a document whatever else the details say.
        let role_map = || self.details.as_ref()?.get("role_map")?.as_str()?.parse().ok();
        let named = [
            (DocumentKind::Content, self.content.clone().filter(|_| brings_content)),
            (DocumentKind::Comment, self.comment.clone()),
            (DocumentKind::Inputs, self.inputs.clone()),
            (DocumentKind::RoleMap, role_map().filter(|_| self.r#type == EntryType::ServiceStarted)),
        ];
        named.into_iter().filter_map(|(kind, digest)| Some((kind, digest?))).collect()
    }

    /// The bytes that are hashed, stored and proved.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        // Enough for almost every entry, so that it rarely has to grow.
        let mut bytes = Vec::with_capacity(768);
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Replaces what was in `bytes`, and reuses its allocation.
    pub fn write_to(&self, bytes: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        bytes.clear();
        serde_json::to_writer(bytes, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_is_written_in_canonical_form() {
        let actor = Actor::new("ana".parse().unwrap(), Role::Auditor);
        let mut entry = Entry::bare(EntryType::AccessRefused, 7, Time::EPOCH, Some(&actor));
        entry.details = Some(json!({"b": ["é", "\u{7f}", "\n\"\\"], "a": 9_007_199_254_740_991_u64}));
        entry.action = Some("approve".into());
        entry.from = Some("a".into());
        entry.to = Some("b".into());
        entry.version = Some(3);
        entry.item = Some("01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap());
        entry.definition = Some("sha256:x".into());
        let bytes = entry.to_bytes().unwrap();
        assert_eq!(bytes, serde_json_canonicalizer::to_vec(&entry).unwrap());
        assert_eq!(serde_json::from_slice::<Entry>(&bytes).unwrap(), entry);
    }

    #[test]
    fn a_newer_entry_is_told_from_a_malformed_one() {
        let entry = Entry::bare(EntryType::AccessRefused, 7, Time::EPOCH, None);
        let mut value = serde_json::to_value(&entry).unwrap();
        assert_eq!(Entry::parse(value.to_string().as_bytes()).unwrap(), entry);
        value["type"] = json!("something.new");
        let malformed = Entry::parse(value.to_string().as_bytes());
        assert!(matches!(malformed, Err(EntryError::Malformed(_))), "{malformed:?}");
        value["v"] = json!(ENTRY_VERSION + 1);
        let newer = Entry::parse(value.to_string().as_bytes());
        assert!(matches!(newer, Err(EntryError::Newer { v }) if v == ENTRY_VERSION + 1), "{newer:?}");
    }
}
