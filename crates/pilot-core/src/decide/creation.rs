//! How an item is created.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actor::Actor;
use crate::decide::{NewItem, Transition};
use crate::item::{Item, Operator, WorkflowRef};
use crate::refusal::Refusal;
use crate::role::Role;
use crate::role_set::RoleSet;
use crate::time::Time;
use crate::workflow::Definition;

/// Items of one creator that have not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenItems {
    /// Of the new item's workflow, by name.
    pub of_workflow: usize,
    /// Of all workflows; counted only as far as the creator's maximum, and not at all without one.
    pub in_all: usize,
    /// How many the creator may have: machines have a maximum, people have none.
    pub max: Option<u32>,
}

impl OpenItems {
    fn is_full(self) -> bool {
        self.max.is_some_and(|max| self.in_all >= max as usize)
    }
}

pub fn decide_creation(
    definition: &Definition,
    request: &NewItem,
    actor: &Actor,
    now: Time,
    open_items: OpenItems,
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
    if definition.rules().one_open_per_creator && open_items.of_workflow > 0 {
        let workflow = definition.name().clone();
        return Err(Refusal::AnotherOpen { actor_id: actor.actor_id.clone(), workflow });
    }
    if let Some(open_items_max) = open_items.max.filter(|_| open_items.is_full()) {
        return Err(Refusal::TooManyOpen { actor_id: actor.actor_id.clone(), open_items_max });
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
        operators: Operator::of(actor).into_iter().collect(),
        executors: BTreeSet::new(),
    }
}
