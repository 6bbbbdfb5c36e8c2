//! `decide`: the only way to make a transition.
//!
//! A pure function of the definition, the item, the request, the caller and the time. The server calls it before it
//! writes, and a verifier calls it again on what was written; both must reach the same verdict, so nothing here may
//! depend on anything else.

mod act;
mod after;
mod case;
mod content;
mod creation;
mod deadline;
mod edit;
#[cfg(test)]
mod foretold;
#[cfg(test)]
mod invariants;
mod needs;
mod outlook;
mod permit;
mod request;
mod taken;
mod timer;
mod transition;
mod unasked;

use case::Case;

use crate::item::Item;
use crate::refusal::Refusal;
use crate::time::Time;
use crate::workflow::Definition;

pub use content::Content;
pub use creation::{OpenItems, decide_creation};
pub use deadline::{Deadline, due_at};
pub use outlook::{Blocked, Effect, Prospect, Waiting, WhoCan, actions_for, prospect, waiting, who_can};
pub use permit::{PERMIT, may_have_permit};
pub use request::{ActionRequest, Caller, EditRequest, IfMatch, NewItem, Request};
pub use taken::Tally;
pub use transition::{Change, Transition};
pub use unasked::{Gaps, Unasked};

/// The order of the checks is part of the contract: an outsider learns nothing about the item, and a participant first
/// learns what to fix in the request, then what prevents the action.
pub fn decide(
    definition: &Definition,
    item: &Item,
    request: &Request,
    caller: &Caller,
    now: Time,
) -> Result<Transition, Refusal> {
    decide_again(definition, item, request, caller, now, &Gaps::default())
}

/// The same for a recorded move, some of whose documents may be missing; `decide` is this without gaps.
pub fn decide_again(
    definition: &Definition,
    item: &Item,
    request: &Request,
    caller: &Caller,
    now: Time,
    gaps: &Gaps,
) -> Result<Transition, Refusal> {
    if item.workflow.digest != *definition.digest() {
        return Err(Refusal::OtherDefinition);
    }
    // Setting a clock back does not make time go back within an item.
    let at = now.max(item.updated_at);
    let case = Case { definition, item, at, gaps };
    match (request, caller) {
        (Request::Act(request), Caller::Actor(actor)) => case.act(request, actor),
        (Request::Edit(request), Caller::Actor(actor)) => case.edit(request, actor),
        (Request::Timer, Caller::Timer) => case.expire(),
        // A timer sends no request, and nobody else may act as a timer.
        (Request::Act(_) | Request::Edit(_), Caller::Timer) | (Request::Timer, Caller::Actor(_)) => {
            Err(Refusal::NothingDue)
        }
    }
}
