//! How an item is created.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actor::Actor;
use crate::decide::{NewItem, Transition};
use crate::item::{Item, WorkflowRef};
use crate::refusal::Refusal;
use crate::role::Role;
use crate::role_set::RoleSet;
use crate::time::Time;
use crate::workflow::Definition;

/// `open_items` is how many items of this workflow, by name, the creator has that have not ended.
pub fn decide_creation(
    definition: &Definition,
    request: &NewItem,
    actor: &Actor,
    now: Time,
    open_items: usize,
) -> Result<(Transition, Item), Refusal> {
    if actor.role != Role::Initiator {
        return Err(Refusal::RoleForbidden {
            actor_id: actor.actor_id.clone(),
            role: actor.role,
            action: "create".into(),
            allowed: RoleSet::one(Role::Initiator),
        });
    }
    request.content.found_fit(definition)?;
    if definition.rules().one_open_per_creator && open_items > 0 {
        let workflow = definition.name().clone();
        return Err(Refusal::AnotherOpen { actor_id: actor.actor_id.clone(), workflow });
    }
    Ok((transition(definition, request, actor, now), item(definition, request, actor, now)))
}

fn transition(definition: &Definition, request: &NewItem, actor: &Actor, now: Time) -> Transition {
    Transition {
        action: "create".into(),
        from: None,
        to: definition.rules().initial.clone(),
        actor: Some(actor.clone()),
        at: now,
        comment: None,
        inputs: None,
        version: 1,
        changes: vec![request.content.change()],
        unasked: request.content.unasked(),
    }
}

fn item(definition: &Definition, request: &NewItem, actor: &Actor, now: Time) -> Item {
    Item {
        id: request.id.clone(),
        workflow: WorkflowRef::from(definition),
        title: Arc::clone(request.content.title()),
        payload: request.content.payload().clone(),
        state: definition.rules().initial.clone(),
        version: 1,
        content_digest: request.content.digest().clone(),
        created_at: now,
        created_by: actor.clone(),
        updated_at: now,
        entered_at: now,
        held: false,
        window: None,
        lease: None,
        votes: Vec::new(),
        attempts: 0,
        participants: Arc::new(BTreeMap::from([(actor.actor_id.clone(), actor.role)])),
        executors: BTreeSet::new(),
    }
}
