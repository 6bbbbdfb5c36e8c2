//! Changing an item's content: by its creator, where the state allows it, and at the cost of every vote cast so far.

use serde_json::Value;

use crate::actor::Actor;
use crate::decide::{Case, Change, Content, EditRequest, Transition, Unasked};
use crate::document::merge_patch;
use crate::fault::Fault;
use crate::item::Item;
use crate::refusal::Refusal;
use crate::role::Role;
use crate::role_set::RoleSet;
use crate::workflow::Own;

impl EditRequest {
    /// The title and payload after an edit with this title and this merge patch (RFC 7396).
    pub fn edited(item: &Item, title: Option<&str>, patch: Option<&Value>) -> (String, Value) {
        let payload = item.payload.value();
        let payload = if let Some(patch) = patch { merge_patch(payload, patch) } else { payload };
        (title.unwrap_or(&item.title).to_owned(), payload)
    }
}

impl Case<'_> {
    pub(super) fn edit(self, request: &EditRequest, actor: &Actor) -> Result<Transition, Refusal> {
        self.may_edit(actor)?;
        let Some(content) = &request.content else {
            return Err(Refusal::Invalid(vec![Fault::new("", "names nothing to change: send title, payload or both")]));
        };
        // Before its faults: an edit made from other content says nothing about this one.
        self.content(Some(&request.made_from))?;
        content.found_fit(self.definition)?;
        let mut unasked = content.unasked();
        self.can_be_edited(&mut unasked)?;
        self.version(request.if_match.as_ref())?;
        Ok(self.edited(content, actor, unasked))
    }

    /// Role, separation of duties, ownership.
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
    pub(super) fn can_be_edited(self, unasked: &mut Vec<Unasked>) -> Result<(), Refusal> {
        self.not_overdue(unasked)?;
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

    fn edited(self, content: &Content, actor: &Actor, unasked: Vec<Unasked>) -> Transition {
        // A vote is for one exact content, and so is a window: in every definition, both end with it.
        let mut changes = vec![content.change()];
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
            unasked,
        }
    }
}
