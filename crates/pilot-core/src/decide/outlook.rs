//! What a caller could do right now.

use crate::actor::Actor;
use crate::decide::{Case, Gaps};
use crate::item::Item;
use crate::time::Time;
use crate::workflow::{Definition, Name, Rule};

/// Exactly the actions that `decide` would accept now, given a valid comment, digest and inputs; including `edit`.
pub fn actions_for(definition: &Definition, item: &Item, actor: &Actor, now: Time) -> Vec<Name> {
    if item.workflow.digest != *definition.digest() {
        return Vec::new();
    }
    let gaps = Gaps::default();
    let case = Case { definition, item, at: now.max(item.updated_at), gaps: &gaps };
    let editable = case.may_edit(actor).and_then(|()| case.can_be_edited(&mut Vec::new())).is_ok();
    let edit = editable.then(|| Name::from("edit"));
    let possible = definition.actions().iter().filter(|action| {
        let allowed = |rule: &&Rule| {
            let mut unasked = Vec::new();
            let possible = case.situation(action, rule, actor, &mut unasked);
            possible.and_then(|()| case.payload_complete(rule, &mut unasked)).is_ok()
        };
        case.permit(action, actor).is_ok()
            && definition.rules_of(action).filter(|rule| rule.roles.contains(actor.role)).any(|rule| allowed(&rule))
    });
    edit.into_iter().chain(possible.map(|action| action.name.clone())).collect()
}
