//! Who is let in (401) and who may do what (403). Nothing else in the service gives either answer.

use http::request::Parts;
use pilot_wire::peer::Address;

use crate::app::App;
use crate::caller::{Access, Caller};
use crate::identity::{Denial, Unknown};
use crate::problem::{Code, Problem};
use crate::rate::{Budget, Standing};

/// 401 unless the identity mechanism knows the caller; 503 if it, or this node, cannot tell; 429 for an address that got 401 too
/// often. A valid credential is never refused because of what others at its address do.
pub async fn authenticate(
    app: &App,
    head: &Parts,
    address: Address,
    standing: &mut Option<Standing>,
) -> Result<Caller, Problem> {
    check_current(app)?;
    app.identity.identify(head).await.map_err(|denial| deny(app, denial, address, standing))
}

/// The same with a mechanism that has to ask nobody.
pub fn authenticate_at_once(
    app: &App,
    head: &Parts,
    address: Address,
    standing: &mut Option<Standing>,
) -> Result<Caller, Problem> {
    check_current(app)?;
    app.identity.identify_at_once(head).map_err(|denial| deny(app, denial, address, standing))
}

fn deny(app: &App, Denial { unknown, cause }: Denial, address: Address, standing: &mut Option<Standing>) -> Problem {
    if unknown == Unknown::Undecided {
        // Nobody's fault: if it were charged, callers who did nothing wrong would get 429.
        app.metrics.authentication_failed(unknown);
        let detail = "The service cannot check the token right now. It may be valid: try again in a moment.";
        return Problem::new(Code::Unavailable, detail).because(cause);
    }
    let budget = if unknown.credential_was_sent() { Budget::Failed } else { Budget::Anonymous };
    *standing = app.limits.as_ref().map(|limits| limits.take_of_address(budget, address));
    if let Err(too_often) = within(app, *standing) {
        return too_often;
    }
    app.metrics.authentication_failed(unknown);
    let metadata = app.identity.resource().map(|resource| resource.metadata_url.as_str());
    Problem::credential_required(unknown.credential_was_sent(), metadata).because(cause)
}

/// 503 for everyone while this node is cut off from the others: a credential may have been revoked there.
fn check_current(app: &App) -> Result<(), Problem> {
    app.ledger.store.check_current().map_err(|cause| {
        let detail =
            "This node cannot reach the ledger, so it lets nobody in. Try again in a moment, or use another node.";
        Problem::unavailable(detail, &cause)
    })
}

/// 401 if the caller's credential has ended since it was shown: a body can take a while to arrive.
pub fn recheck(app: &App, caller: &Caller) -> Result<(), Problem> {
    check_current(app)?;
    if !app.register.is_over(&caller.credential, app.clock.now()) {
        return Ok(());
    }
    let metadata = app.identity.resource().map(|resource| resource.metadata_url.as_str());
    Err(Problem::credential_required(true, metadata).because("the credential ended while the request arrived"))
}

/// 429 if the actor's budget is used up.
pub fn charge(app: &App, caller: &Caller, head: &Parts, standing: &mut Option<Standing>) -> Result<(), Problem> {
    *standing = app.limits.as_ref().map(|limits| limits.take_of_actor(&caller.actor.actor_id, &head.method));
    within(app, *standing)
}

fn within(app: &App, standing: Option<Standing>) -> Result<(), Problem> {
    let Some((standing, seconds)) = standing.and_then(|standing| Some((standing, standing.retry_after?))) else {
        return Ok(());
    };
    app.metrics.rate_limited(standing.budget);
    Err(Problem::rate_limited(seconds))
}

/// 403 unless the operation is open to the caller's role.
pub fn permit(access: Access, caller: &Caller) -> Result<(), Problem> {
    if access.allows(caller.actor.role) {
        return Ok(());
    }
    let detail = format!("The role {} may not call this operation.", caller.actor.role);
    Err(Problem::new(Code::RoleForbidden, detail))
}
