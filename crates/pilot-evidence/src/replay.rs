//! Replay: what an item must be, decided again from its entries and documents.

use pilot_core::actor::Actor;
use pilot_core::decide::{
    ActionRequest, Caller, Content, EditRequest, Gaps, NewItem, OpenItems, Request, Transition, Unasked, decide_again,
    decide_creation, may_have_permit,
};
use pilot_core::document::{self, ContentDigest, DocumentKind};
use pilot_core::entry::details::Details;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::Item;
use pilot_core::refusal::Refusal;
use pilot_core::workflow::Definition;
use serde::Deserialize;
use serde_json::Value;

/// Why an entry cannot be followed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Stray {
    #[error("the rules refuse it ({}): {refusal}", refusal.code())]
    Refused { refusal: Refusal },
    #[error("{what}")]
    Wrong { rule: &'static str, what: String },
}

impl Stray {
    pub fn wrong(rule: &'static str, what: impl Into<String>) -> Stray {
        Stray::Wrong { rule, what: what.into() }
    }

    /// The rule that was broken: a refusal's code, or a word of our own.
    pub fn rule(&self) -> &'static str {
        match self {
            Stray::Refused { refusal } => refusal.code().as_str(),
            Stray::Wrong { rule, .. } => rule,
        }
    }
}

/// The available documents of one entry, as stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Documents<'d> {
    pub content: Option<&'d [u8]>,
    pub comment: Option<&'d [u8]>,
    pub inputs: Option<&'d [u8]>,
}

impl<'d> FromIterator<(DocumentKind, &'d [u8])> for Documents<'d> {
    fn from_iter<I: IntoIterator<Item = (DocumentKind, &'d [u8])>>(found: I) -> Self {
        let mut documents = Documents::default();
        for (kind, bytes) in found {
            match kind {
                DocumentKind::Content => documents.content = Some(bytes),
                DocumentKind::Comment => documents.comment = Some(bytes),
                DocumentKind::Inputs => documents.inputs = Some(bytes),
                // Only for starts of the service, which are not part of an item's history.
                DocumentKind::RoleMap => {}
            }
        }
        documents
    }
}

/// A document as it may be written, and in no other way.
trait Written: for<'d> Deserialize<'d> {
    fn nonce(&self) -> &str;

    /// Whether the service would write it like this.
    fn is_written(&self, bytes: &[u8]) -> bool;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    nonce: String,
    payload: Value,
    title: String,
}

impl Written for Stored {
    fn nonce(&self) -> &str {
        &self.nonce
    }

    fn is_written(&self, bytes: &[u8]) -> bool {
        document::is_content(bytes, &self.title, &self.payload, &self.nonce)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remark {
    comment: String,
    nonce: String,
}

impl Written for Remark {
    fn nonce(&self) -> &str {
        &self.nonce
    }

    fn is_written(&self, bytes: &[u8]) -> bool {
        document::is_comment(bytes, &self.comment, &self.nonce)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inputs {
    inputs: Value,
    nonce: String,
}

impl Written for Inputs {
    fn nonce(&self) -> &str {
        &self.nonce
    }

    fn is_written(&self, bytes: &[u8]) -> bool {
        document::is_inputs(bytes, &self.inputs, &self.nonce)
    }
}

/// One entry that could be followed.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The item after it.
    pub item: Item,
    /// What only missing documents could answer.
    pub unasked: Vec<Unasked>,
}

/// The item after an entry about it. The rules are asked again, and must produce exactly this entry; if a document is
/// missing, they must do so for some content it may have had. How many open items the creator had cannot be told from
/// one item's history, and is not checked here.
pub fn follow(
    definition: &Definition,
    before: Option<&Item>,
    entry: &Entry,
    documents: Documents<'_>,
) -> Result<Step, Stray> {
    let (step, expected) = match (entry.r#type, before) {
        (EntryType::ItemCreated, None) => created(definition, entry, documents)?,
        (EntryType::ItemEdited, Some(item)) => edited(definition, item, entry, documents)?,
        (EntryType::ItemTransition, Some(item)) => moved(definition, item, entry, documents)?,
        (EntryType::ItemComment, Some(item)) => commented(item, entry, documents)?,
        (EntryType::PermitIssued, Some(item)) => permitted(definition, item, entry)?,
        (kind, None) => return Err(wrong(&format!("the history begins with {kind}"))),
        (kind, Some(_)) => return Err(wrong(&format!("{kind} appears in the middle of the history"))),
    };
    if expected == *entry { Ok(step) } else { Err(difference(&expected, entry)) }
}

/// What the rules would have written instead, where it differs.
fn difference(expected: &Entry, entry: &Entry) -> Stray {
    if expected.to != entry.to && expected.to == expected.from {
        let (to, stays) = (words(entry.to.as_ref()), words(expected.to.as_ref()));
        return Stray::wrong(
            "quorum",
            format!("it leads to {to} before the quorum is reached; by the rules the item stays in {stays}"),
        );
    }
    let members = [
        ("time_order", "at", entry.at.to_string(), expected.at.to_string()),
        ("version_gap", "version", number(entry.version), number(expected.version)),
        ("content_changed", "content", words(entry.content.as_ref()), words(expected.content.as_ref())),
        ("other_entry", "operated_by", words(entry.operated_by.as_ref()), words(expected.operated_by.as_ref())),
        ("other_entry", "from", words(entry.from.as_ref()), words(expected.from.as_ref())),
        ("other_entry", "to", words(entry.to.as_ref()), words(expected.to.as_ref())),
        ("other_entry", "comment", words(entry.comment.as_ref()), words(expected.comment.as_ref())),
        ("other_entry", "inputs", words(entry.inputs.as_ref()), words(expected.inputs.as_ref())),
        ("other_entry", "definition", words(entry.definition.as_ref()), words(expected.definition.as_ref())),
    ];
    let differs = members.into_iter().find(|(_, _, written, ruled)| written != ruled);
    let Some((rule, member, written, ruled)) = differs else {
        return Stray::wrong("other_entry", "the rules produce a different entry here");
    };
    Stray::wrong(rule, format!("its {member} is {written}; by the rules it would be {ruled}"))
}

fn words(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "not given".to_owned(), ToString::to_string)
}

fn number(value: Option<u64>) -> String {
    words(value.as_ref())
}

fn wrong(what: &str) -> Stray {
    Stray::wrong("history", what)
}

fn refused(refusal: Refusal) -> Stray {
    Stray::Refused { refusal }
}

fn actor_of(entry: &Entry) -> Result<Option<Actor>, Stray> {
    match (&entry.actor_id, entry.role) {
        (Some(_), Some(_)) => Ok(entry.actor()),
        (None, None) if entry.operated_by.is_none() => Ok(None),
        _ => Err(wrong("an actor without a role, or a role or an operator without an actor")),
    }
}

fn person_of(entry: &Entry) -> Result<Actor, Stray> {
    actor_of(entry)?.ok_or_else(|| wrong("it names no actor"))
}

/// Reads a document. Bytes that two readers could understand differently are refused: a member given twice, one that is
/// unknown, or any form but the canonical one.
fn read<T: Written>(bytes: &[u8]) -> Result<T, Stray> {
    let wrong = |what: String| Stray::wrong("document", what);
    let read: T =
        serde_json::from_slice(bytes).map_err(|error| wrong(format!("a document cannot be read: {error}")))?;
    let is_nonce =
        |nonce: &str| nonce.len() == NONCE_CHARS && nonce.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_nonce(read.nonce()) {
        return Err(wrong(format!("the nonce of a document is not {NONCE_CHARS} hexadecimal characters")));
    }
    if !read.is_written(bytes) {
        return Err(wrong("a document is not in canonical form, so readers could understand it differently".into()));
    }
    Ok(read)
}

/// 16 random bytes.
const NONCE_CHARS: usize = 32;

fn content(definition: &Definition, digest: ContentDigest, document: Option<&[u8]>) -> Result<Content, Stray> {
    let Some(bytes) = document else { return Ok(Content::left_out(definition, digest)) };
    let Stored { title, payload, .. } = read(bytes)?;
    Ok(Content::recorded(definition, &title, &payload, digest))
}

fn created(definition: &Definition, entry: &Entry, documents: Documents<'_>) -> Result<(Step, Entry), Stray> {
    let (Some(id), Some(content_digest)) = (entry.item.clone(), entry.content.clone()) else {
        return Err(wrong("it names no item or no content"));
    };
    let new = NewItem { id, content: content(definition, content_digest, documents.content)? };
    let decided = decide_creation(definition, &new, &person_of(entry)?, entry.at, OpenItems::default());
    let (transition, item) = decided.map_err(refused)?;
    let expected = Entry::of_transition(EntryType::ItemCreated, entry.index, &transition, &item);
    Ok((step(&transition, item), expected))
}

fn step(transition: &Transition, item: Item) -> Step {
    Step { item, unasked: transition.unasked().to_vec() }
}

fn edited(
    definition: &Definition,
    item: &Item,
    entry: &Entry,
    documents: Documents<'_>,
) -> Result<(Step, Entry), Stray> {
    let Some(content_digest) = entry.content.clone() else { return Err(wrong("it names no content")) };
    let content = Some(content(definition, content_digest, documents.content)?);
    let request = EditRequest { content, made_from: item.content_digest.clone(), if_match: None };
    let caller = Caller::Actor(person_of(entry)?);
    let (transition, after) = decided(definition, item, &Request::Edit(request), &caller, entry, documents)?;
    let expected = Entry::of_transition(EntryType::ItemEdited, entry.index, &transition, &after);
    Ok((step(&transition, after), expected))
}

fn moved(
    definition: &Definition,
    item: &Item,
    entry: &Entry,
    documents: Documents<'_>,
) -> Result<(Step, Entry), Stray> {
    let (request, caller) = match actor_of(entry)? {
        None => (Request::Timer, Caller::Timer),
        Some(actor) => (Request::Act(action_request(item, entry, documents)?), Caller::Actor(actor)),
    };
    let (transition, after) = decided(definition, item, &request, &caller, entry, documents)?;
    // A timer says nothing.
    let is_said = caller != Caller::Timer;
    let expected = Entry {
        comment: entry.comment.clone().filter(|_| is_said),
        inputs: entry.inputs.clone().filter(|_| is_said),
        ..Entry::of_transition(EntryType::ItemTransition, entry.index, &transition, &after)
    };
    Ok((step(&transition, after), expected))
}

fn action_request(item: &Item, entry: &Entry, documents: Documents<'_>) -> Result<ActionRequest, Stray> {
    // A document that the entry names but nobody can read any more is a gap, unlike one that never existed.
    let comment: Option<Remark> = documents.comment.filter(|_| entry.comment.is_some()).map(read).transpose()?;
    let inputs: Option<Inputs> = documents.inputs.filter(|_| entry.inputs.is_some()).map(read).transpose()?;
    Ok(ActionRequest {
        action: entry.action.as_ref().map(ToString::to_string).unwrap_or_default(),
        // If a digest was sent, it was this one: any other would have been refused.
        content_digest: Some(item.content_digest.to_string()),
        comment: comment.map(|remark| remark.comment),
        inputs: inputs.map(|inputs| inputs.inputs),
        if_match: None,
    })
}

fn decided(
    definition: &Definition,
    item: &Item,
    request: &Request,
    caller: &Caller,
    entry: &Entry,
    documents: Documents<'_>,
) -> Result<(Transition, Item), Stray> {
    let gaps = Gaps {
        comment: entry.comment.is_some() && documents.comment.is_none(),
        inputs: entry.inputs.is_some() && documents.inputs.is_none(),
        led_to: entry.to.clone(),
    };
    let transition = decide_again(definition, item, request, caller, entry.at, &gaps).map_err(refused)?;
    let after = item.after(&transition);
    Ok((transition, after))
}

/// Only who could be given one at that time, and for no longer than that holds.
fn permitted(definition: &Definition, item: &Item, entry: &Entry) -> Result<(Step, Entry), Stray> {
    let Some(Details::PermitIssued(issued)) = entry.details() else {
        return Err(wrong("it says nothing of its token"));
    };
    let actor = person_of(entry)?;
    let until = may_have_permit(definition, item, &actor, entry.at).map_err(refused)?;
    if issued.expires_at > until {
        let what = format!("its token expires at {}, but nothing may be relied on after {until}", issued.expires_at);
        return Err(Stray::wrong("permit", what));
    }
    let expected = Entry::of_permit(entry.index, entry.at, &actor, item, issued);
    Ok((Step { item: item.clone(), unasked: Vec::new() }, expected))
}

fn commented(item: &Item, entry: &Entry, documents: Documents<'_>) -> Result<(Step, Entry), Stray> {
    let Some(comment) = entry.comment.clone() else { return Err(wrong("it names no comment")) };
    let _: Option<Remark> = documents.comment.map(read).transpose()?;
    let expected = Entry::of_comment(entry.index, entry.at, &person_of(entry)?, item, comment);
    Ok((Step { item: item.clone(), unasked: Vec::new() }, expected))
}
