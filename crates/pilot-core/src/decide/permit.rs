//! Whether an actor may be given a permit: proof, for a target, that an effect is under way by the rules.

use crate::actor::Actor;
use crate::item::Item;
use crate::refusal::Refusal;
use crate::time::Time;
use crate::workflow::{Definition, Name, Own};

/// The name under which a refusal is recorded. It is not an action of any definition.
pub const PERMIT: &str = "permit";

/// Until when a permit may be relied on. Only the holder of the lease gets one, only while the effect is under way and
/// inside the window it was begun in, and not while the item is held: a hold lets an effect finish, but nothing new may
/// be let in on the strength of it.
pub fn may_have_permit(definition: &Definition, item: &Item, actor: &Actor, now: Time) -> Result<Time, Refusal> {
    let action: Name = PERMIT.into();
    let effects = definition.rules().states.iter().filter(|state| state.kind.is_effect());
    let from: Vec<Name> = effects.map(|state| state.name.clone()).collect();
    let Some(lease) = item.lease.as_ref().filter(|_| from.contains(&item.state)) else {
        return Err(Refusal::WrongState { action, state: item.state.clone(), from });
    };
    if lease.holder != actor.actor_id {
        return Err(Refusal::NotOwner { actor_id: actor.actor_id.clone(), action, own: Own::Holder });
    }
    if lease.expires_at <= now {
        return Err(Refusal::DeadlinePassed { state: item.state.clone(), due_at: lease.expires_at });
    }
    if item.held {
        return Err(Refusal::ItemHeld { action });
    }
    // What leads into the state was bound to the window, so what is done in it is too.
    let leads_here = |rule: &&crate::workflow::Rule| rule.to.as_ref() == Some(&item.state);
    let is_bound = definition.rules().transitions.iter().filter(leads_here).any(|rule| rule.inside_window);
    match item.window.as_ref().filter(|_| is_bound) {
        None => Ok(lease.expires_at),
        Some(window) if window.is_left_out || window.contains(now) => Ok(lease.expires_at.min(window.not_after)),
        Some(window) => Err(Refusal::OutsideWindow { action, window: Some(window.clone()) }),
    }
}
