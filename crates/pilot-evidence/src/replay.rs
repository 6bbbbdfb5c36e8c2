//! The ledger read again: what an item must be, decided anew from its entries and documents.

use pilot_core::actor::Actor;
use pilot_core::decide::{
    ActionRequest, Caller, Content, EditRequest, NewItem, Request, Transition, decide, decide_creation,
};
use pilot_core::document::DocumentKind;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::Item;
use pilot_core::refusal::Refusal;
use pilot_core::workflow::Definition;
use serde::Deserialize;
use serde_json::Value;

/// Why an entry cannot be followed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Stray {
    /// What the decision rested on was erased or left out; this is no fault.
    #[error("a document it rests on was erased")]
    Erased,
    #[error("the rules refuse it ({}): {refusal}", refusal.code())]
    Refused { refusal: Refusal },
    #[error("{what}")]
    Wrong { rule: &'static str, what: String },
}

impl Stray {
    pub fn wrong(rule: &'static str, what: impl Into<String>) -> Stray {
        Stray::Wrong { rule, what: what.into() }
    }

    /// The rule that was broken: a refusal's code, or a word of ours.
    pub fn rule(&self) -> &'static str {
        match self {
            Stray::Erased => "erased",
            Stray::Refused { refusal } => refusal.code(),
            Stray::Wrong { rule, .. } => rule,
        }
    }
}

/// The documents of one entry that are at hand, as they are stored.
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
                // Beside starts of the service alone, which are no part of an item's history.
                DocumentKind::RoleMap => {}
            }
        }
        documents
    }
}

#[derive(Deserialize)]
struct Stored {
    payload: Value,
    title: String,
}

#[derive(Deserialize)]
struct Remark {
    comment: String,
}

#[derive(Deserialize)]
struct Inputs {
    inputs: Value,
}

/// The item after an entry about it. The rules are asked again, and must answer with this very entry. How many items
/// of its creator were open is not for one item's history to tell, and is not asked here.
pub fn follow(
    definition: &Definition,
    before: Option<&Item>,
    entry: &Entry,
    documents: Documents<'_>,
) -> Result<Item, Stray> {
    let (after, expected) = match (entry.r#type, before) {
        (EntryType::ItemCreated, None) => created(definition, entry, documents)?,
        (EntryType::ItemEdited, Some(item)) => edited(definition, item, entry, documents)?,
        (EntryType::ItemTransition, Some(item)) => moved(definition, item, entry, documents)?,
        (EntryType::ItemComment, Some(item)) => commented(item, entry)?,
        (kind, None) => return Err(wrong(&format!("the history begins with {kind}"))),
        (kind, Some(_)) => return Err(wrong(&format!("{kind} stands in the middle of the history"))),
    };
    if expected == *entry { Ok(after) } else { Err(difference(&expected, entry)) }
}

/// What the rules would have written instead, as far as it differs.
fn difference(expected: &Entry, entry: &Entry) -> Stray {
    if expected.to != entry.to && expected.to == expected.from {
        let (to, stays) = (words(entry.to.as_ref()), words(expected.to.as_ref()));
        return Stray::wrong(
            "quorum",
            format!("it leads to {to} before the quorum is reached; the rules stay in {stays}"),
        );
    }
    let members = [
        ("time_order", "at", entry.at.to_string(), expected.at.to_string()),
        ("version_gap", "version", number(entry.version), number(expected.version)),
        ("content_changed", "content", words(entry.content.as_ref()), words(expected.content.as_ref())),
        ("other_entry", "from", words(entry.from.as_ref()), words(expected.from.as_ref())),
        ("other_entry", "to", words(entry.to.as_ref()), words(expected.to.as_ref())),
        ("other_entry", "definition", words(entry.definition.as_ref()), words(expected.definition.as_ref())),
    ];
    let differs = members.into_iter().find(|(_, _, written, ruled)| written != ruled);
    let Some((rule, member, written, ruled)) = differs else {
        return Stray::wrong("other_entry", "the rules give another entry here");
    };
    Stray::wrong(rule, format!("its {member} is {written}, and by the rules it is {ruled}"))
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
        (Some(actor_id), Some(role)) => Ok(Some(Actor { actor_id: actor_id.clone(), role })),
        (None, None) => Ok(None),
        _ => Err(wrong("an actor without a role, or a role without an actor")),
    }
}

fn person_of(entry: &Entry) -> Result<Actor, Stray> {
    actor_of(entry)?.ok_or_else(|| wrong("nobody is named as its actor"))
}

fn read<'d, T: Deserialize<'d>>(bytes: Option<&'d [u8]>) -> Result<T, Stray> {
    let read = serde_json::from_slice(bytes.ok_or(Stray::Erased)?);
    read.map_err(|error| Stray::wrong("document", format!("a document cannot be read: {error}")))
}

fn created(definition: &Definition, entry: &Entry, documents: Documents<'_>) -> Result<(Item, Entry), Stray> {
    let Stored { title, payload } = read(documents.content)?;
    let (Some(id), Some(content_digest)) = (entry.item.clone(), entry.content.clone()) else {
        return Err(wrong("no item or no content is named"));
    };
    let content = Content::recorded(definition, &title, &payload, content_digest);
    let new = NewItem { id, content };
    let decided = decide_creation(definition, &new, &person_of(entry)?, entry.at, 0);
    let (transition, item) = decided.map_err(refused)?;
    let expected = Entry::of_transition(EntryType::ItemCreated, entry.index, &transition, &item);
    Ok((item, expected))
}

fn edited(
    definition: &Definition,
    item: &Item,
    entry: &Entry,
    documents: Documents<'_>,
) -> Result<(Item, Entry), Stray> {
    let Stored { title, payload } = read(documents.content)?;
    let Some(content_digest) = entry.content.clone() else { return Err(wrong("no content is named")) };
    let content = Some(Content::recorded(definition, &title, &payload, content_digest));
    let request = EditRequest { content, made_from: item.content_digest.clone(), if_match: None };
    let caller = Caller::Actor(person_of(entry)?);
    let (transition, after) = decided(definition, item, &Request::Edit(request), &caller, entry)?;
    let expected = Entry::of_transition(EntryType::ItemEdited, entry.index, &transition, &after);
    Ok((after, expected))
}

fn moved(
    definition: &Definition,
    item: &Item,
    entry: &Entry,
    documents: Documents<'_>,
) -> Result<(Item, Entry), Stray> {
    let (request, caller) = match actor_of(entry)? {
        None => (Request::Timer, Caller::Timer),
        Some(actor) => (Request::Act(action_request(item, entry, documents)?), Caller::Actor(actor)),
    };
    let lacks_inputs = entry.inputs.is_some() && documents.inputs.is_none();
    let (transition, after) = match decided(definition, item, &request, &caller, entry) {
        Err(Stray::Refused { refusal: Refusal::Invalid(_) }) if lacks_inputs => return Err(Stray::Erased),
        decided => decided?,
    };
    let expected = Entry {
        comment: entry.comment.clone(),
        inputs: entry.inputs.clone(),
        ..Entry::of_transition(EntryType::ItemTransition, entry.index, &transition, &after)
    };
    Ok((after, expected))
}

fn action_request(item: &Item, entry: &Entry, documents: Documents<'_>) -> Result<ActionRequest, Stray> {
    // That there was a comment is in the entry, and that there was one is all the rules ask.
    let left_out = || Remark { comment: "(left out)".to_owned() };
    let comment: Option<Remark> = match (&entry.comment, documents.comment) {
        (None, _) => None,
        (Some(_), None) => Some(left_out()),
        (Some(_), bytes) => Some(read(bytes)?),
    };
    // Most inputs are told, not decided on; where the rules need them, they will ask.
    let inputs = documents.inputs.filter(|_| entry.inputs.is_some());
    let inputs: Option<Inputs> = inputs.map(|bytes| read(Some(bytes))).transpose()?;
    Ok(ActionRequest {
        action: entry.action.as_ref().map(ToString::to_string).unwrap_or_default(),
        // Whoever sent one sent this: another would have been refused.
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
) -> Result<(Transition, Item), Stray> {
    let transition = decide(definition, item, request, caller, entry.at).map_err(refused)?;
    let after = item.after(&transition);
    Ok((transition, after))
}

fn commented(item: &Item, entry: &Entry) -> Result<(Item, Entry), Stray> {
    let Some(comment) = entry.comment.clone() else { return Err(wrong("no comment is named")) };
    let expected = Entry::of_comment(entry.index, entry.at, &person_of(entry)?, item, comment);
    Ok((item.clone(), expected))
}
