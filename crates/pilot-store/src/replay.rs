//! The ledger read again: what an item must be, decided anew from its entries and documents.

use pilot_core::actor::Actor;
use pilot_core::decide::{ActionRequest, Caller, EditRequest, NewItem, Request, Transition, decide, decide_creation};
use pilot_core::document::DocumentKind;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::Item;
use pilot_core::workflow::Definition;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::StoredEntry;

/// Why an entry cannot be followed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Stray {
    /// What the decision rested on was erased; this is no fault.
    #[error("a document it rests on was erased")]
    Erased,
    #[error("{0}")]
    Wrong(String),
}

#[derive(Deserialize)]
struct Content {
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
    stored: &StoredEntry,
) -> Result<Item, Stray> {
    let (after, expected) = match (entry.r#type, before) {
        (EntryType::ItemCreated, None) => created(definition, entry, stored)?,
        (EntryType::ItemEdited, Some(item)) => edited(definition, item, entry, stored)?,
        (EntryType::ItemTransition, Some(item)) => moved(definition, item, entry, stored)?,
        (EntryType::ItemComment, Some(item)) => commented(item, entry)?,
        (kind, None) => return Err(wrong(format!("the history begins with {kind}"))),
        (kind, Some(_)) => return Err(wrong(format!("{kind} stands in the middle of the history"))),
    };
    if expected == *entry { Ok(after) } else { Err(wrong("the rules give another entry here".into())) }
}

fn wrong(what: String) -> Stray {
    Stray::Wrong(what)
}

fn refused(refusal: &pilot_core::refusal::Refusal) -> Stray {
    wrong(format!("the rules refuse it ({}): {refusal}", refusal.code()))
}

fn actor_of(entry: &Entry) -> Result<Option<Actor>, Stray> {
    match (&entry.actor_id, entry.role) {
        (Some(actor_id), Some(role)) => Ok(Some(Actor { actor_id: actor_id.clone(), role })),
        (None, None) => Ok(None),
        _ => Err(wrong("an actor without a role, or a role without an actor".into())),
    }
}

fn person_of(entry: &Entry) -> Result<Actor, Stray> {
    actor_of(entry)?.ok_or_else(|| wrong("nobody is named as its actor".into()))
}

fn document<'s, T: Deserialize<'s>>(stored: &'s StoredEntry, kind: DocumentKind) -> Result<T, Stray> {
    let found = stored.documents.iter().find(|(known, _)| *known == kind);
    let (_, bytes) = found.ok_or(Stray::Erased)?;
    serde_json::from_slice(bytes).map_err(|error| wrong(format!("a document cannot be read: {error}")))
}

fn created(definition: &Definition, entry: &Entry, stored: &StoredEntry) -> Result<(Item, Entry), Stray> {
    let Content { title, payload } = document(stored, DocumentKind::Content)?;
    let (Some(id), Some(content_digest)) = (entry.item.clone(), entry.content.clone()) else {
        return Err(wrong("no item or no content is named".into()));
    };
    let new = NewItem { id, title, payload, content_digest };
    let decided = decide_creation(definition, &new, &person_of(entry)?, entry.at, 0);
    let (transition, item) = decided.map_err(|refusal| refused(&refusal))?;
    let expected = Entry::of_transition(EntryType::ItemCreated, entry.index, &transition, &item);
    Ok((item, expected))
}

fn edited(definition: &Definition, item: &Item, entry: &Entry, stored: &StoredEntry) -> Result<(Item, Entry), Stray> {
    let Content { title, payload } = document(stored, DocumentKind::Content)?;
    let Some(content_digest) = entry.content.clone() else { return Err(wrong("no content is named".into())) };
    let patch = patch_between(&item.payload, &payload);
    let request = EditRequest { title: Some(title), payload: Some(patch), content_digest, if_match: None };
    let caller = Caller::Actor(person_of(entry)?);
    let (transition, after) = decided(definition, item, &Request::Edit(request), &caller, entry)?;
    if *after.payload != payload {
        return Err(wrong("its content cannot come from an edit".into()));
    }
    let expected = Entry::of_transition(EntryType::ItemEdited, entry.index, &transition, &after);
    Ok((after, expected))
}

fn moved(definition: &Definition, item: &Item, entry: &Entry, stored: &StoredEntry) -> Result<(Item, Entry), Stray> {
    let (request, caller) = match actor_of(entry)? {
        None => (Request::Timer, Caller::Timer),
        Some(actor) => (Request::Act(action_request(item, entry, stored)?), Caller::Actor(actor)),
    };
    let (transition, after) = decided(definition, item, &request, &caller, entry)?;
    let expected = Entry {
        comment: entry.comment.clone(),
        inputs: entry.inputs.clone(),
        ..Entry::of_transition(EntryType::ItemTransition, entry.index, &transition, &after)
    };
    Ok((after, expected))
}

fn action_request(item: &Item, entry: &Entry, stored: &StoredEntry) -> Result<ActionRequest, Stray> {
    let comment: Option<Remark> =
        entry.comment.as_ref().map(|_| document(stored, DocumentKind::Comment)).transpose()?;
    let inputs: Option<Inputs> = entry.inputs.as_ref().map(|_| document(stored, DocumentKind::Inputs)).transpose()?;
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
    let transition = decide(definition, item, request, caller, entry.at).map_err(|refusal| refused(&refusal))?;
    let after = item.after(&transition);
    Ok((transition, after))
}

fn commented(item: &Item, entry: &Entry) -> Result<(Item, Entry), Stray> {
    let Some(comment) = entry.comment.clone() else { return Err(wrong("no comment is named".into())) };
    let expected = Entry::of_comment(entry.index, entry.at, &person_of(entry)?, item, comment);
    Ok((item.clone(), expected))
}

/// The merge patch (RFC 7396) that leads from one payload to the other.
fn patch_between(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        match before.get(name) {
            Some(same) if same == value => {}
            Some(old) => drop(patch.insert(name.clone(), patch_between(old, value))),
            None => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilot_core::document::merge_patch;
    use serde_json::json;

    #[test]
    fn the_patch_between_two_payloads_leads_from_one_to_the_other() {
        for (before, after) in [
            (json!({}), json!({"a": 1})),
            (json!({"a": 1, "b": null}), json!({"b": null})),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": 3, "d": [null]}})),
            (json!({"a": {"b": 1}}), json!({"a": "text"})),
            (json!({"a": "text"}), json!({"a": {"b": {"c": 1}}})),
        ] {
            assert_eq!(merge_patch(&before, &patch_between(&before, &after)), after, "{before} {after}");
        }
    }
}
