//! Changing an item's content: by its creator, where the state allows it, and at the price of every vote given so far.

use serde_json::Value;

use crate::actor::Actor;
use crate::decide::{Case, Change, EditRequest, Transition};
use crate::document::merge_patch;
use crate::fault::Fault;
use crate::item::Item;
use crate::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX, TITLE_CHARS_MAX};
use crate::refusal::Refusal;
use crate::role::Role;
use crate::role_set::RoleSet;
use crate::workflow::{Definition, Own};

impl EditRequest {
    /// Title and payload as an edit would leave them: what its content digest is made of.
    pub fn edited(item: &Item, title: Option<&str>, patch: Option<&Value>) -> (String, Value) {
        let title = title.unwrap_or(&item.title).to_owned();
        let payload = patch.map_or_else(|| Value::clone(&item.payload), |patch| merge_patch(&item.payload, patch));
        (title, payload)
    }
}

impl Case<'_> {
    pub(super) fn edit(self, request: &EditRequest, actor: &Actor) -> Result<Transition, Refusal> {
        self.may_edit(actor)?;
        if request.title.is_none() && request.payload.is_none() {
            return Err(Refusal::Invalid(vec![Fault::new("", "names nothing to change: send title, payload or both")]));
        }
        let (title, payload) = EditRequest::edited(self.item, request.title.as_deref(), request.payload.as_ref());
        let faults = content_faults(self.definition, &title, &payload);
        if !faults.is_empty() {
            return Err(Refusal::Invalid(faults));
        }
        self.can_be_edited()?;
        self.version(request.if_match)?;
        Ok(self.edited(title, payload, request, actor))
    }

    /// Role, separation, ownership.
    pub(super) fn may_edit(self, actor: &Actor) -> Result<(), Refusal> {
        let actor_id = &actor.actor_id;
        if actor.role != Role::Initiator {
            let allowed = RoleSet::one(Role::Initiator);
            let role = actor.role;
            return Err(Refusal::RoleForbidden { actor_id: actor_id.clone(), role, action: "edit".into(), allowed });
        }
        self.separate(actor)?;
        if self.item.created_by.actor_id != *actor_id {
            return Err(Refusal::NotOwner { actor_id: actor_id.clone(), action: "edit".into(), own: Own::Creator });
        }
        Ok(())
    }

    /// Deadline, state, hold.
    pub(super) fn can_be_edited(self) -> Result<(), Refusal> {
        self.not_overdue()?;
        let rules = self.definition.rules();
        if !rules.state(&self.item.state).is_some_and(|state| state.editable) {
            let editable = rules.states.iter().filter(|state| state.editable).map(|state| state.name.clone()).collect();
            return Err(Refusal::NotEditable { state: self.item.state.clone(), editable });
        }
        if self.item.held && self.definition.hold_blocks("edit") {
            return Err(Refusal::ItemHeld { action: "edit".into() });
        }
        Ok(())
    }

    fn edited(self, title: String, payload: Value, request: &EditRequest, actor: &Actor) -> Transition {
        // A vote was given on a content, and so was a window: neither outlives it, in any definition.
        let mut changes = vec![Change::Content { title, payload, content_digest: request.content_digest.clone() }];
        if !self.item.votes.is_empty() {
            changes.push(Change::VotesVoided);
        }
        if self.item.window.is_some() {
            changes.push(Change::WindowVoided);
        }
        Transition {
            action: "edit".into(),
            from: Some(self.item.state.clone()),
            to: self.item.state.clone(),
            actor: Some(actor.clone()),
            at: self.at,
            comment: None,
            inputs: None,
            version: self.item.version.saturating_add(1),
            changes,
        }
    }
}

/// What is wrong with a title and an unfinished payload.
pub(super) fn content_faults(definition: &Definition, title: &str, payload: &Value) -> Vec<Fault> {
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

/// Bounded by the parser that made the value, which refuses deep nesting before it can exhaust the stack.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
