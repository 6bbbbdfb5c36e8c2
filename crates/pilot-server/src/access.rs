//! Who may come in (401) and who may do what (403). Nothing else in the service answers either.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use pilot_core::actor::Actor;
use pilot_core::role::Role;

use crate::app::App;
use crate::identity::{Denial, Unknown};
use crate::problem::{Code, Problem};
use crate::rate::{Budget, Standing};
use crate::register::ShownCredential;

/// Who may call an operation. An operation without a rule cannot be put into the route table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Any valid credential, whatever its role.
    AnyRole,
    Roles(&'static [Role]),
}

impl Access {
    pub fn allows(self, role: Role) -> bool {
        match self {
            Access::AnyRole => true,
            Access::Roles(roles) => roles.contains(&role),
        }
    }
}

/// The actor behind a request: derived from the credential alone.
#[derive(Debug, Clone)]
pub struct Caller {
    pub actor: Actor,
    /// What it was derived from.
    pub credential: Arc<ShownCredential>,
}

/// 401 unless the identity mechanism knows the caller; 503 when it cannot say; 429 to an address that was told 401 too
/// often. A valid credential is never refused for what others at its address do.
pub async fn authenticate(
    app: &App,
    head: &Parts,
    address: IpAddr,
    standing: &mut Option<Standing>,
) -> Result<Caller, Problem> {
    let Denial { unknown, cause } = match app.identity.identify(head).await {
        Ok(caller) => return Ok(caller),
        Err(denial) => denial,
    };
    if unknown == Unknown::Undecided {
        // Nobody's failure: charged, it would turn into 429 for the very callers who did nothing wrong.
        app.metrics.authentication_failed(unknown);
        let detail = "The service cannot check the token right now. It may be valid: try again in a moment.";
        return Err(Problem::new(Code::Unavailable, detail).because(cause));
    }
    let budget = if unknown.credential_was_sent() { Budget::Failed } else { Budget::Anonymous };
    *standing = app.limits.as_ref().map(|limits| limits.take_of_address(budget, address));
    within(app, *standing)?;
    app.metrics.authentication_failed(unknown);
    let metadata = app.identity.resource().map(|resource| resource.metadata_url.as_str());
    Err(Problem::credential_required(unknown.credential_was_sent(), metadata).because(cause))
}

/// 401 when the caller's credential has come to its end since it was shown: a body may take its time.
pub fn recheck(app: &App, caller: &Caller) -> Result<(), Problem> {
    if !app.register.is_over(&caller.credential, app.clock.now()) {
        return Ok(());
    }
    let metadata = app.identity.resource().map(|resource| resource.metadata_url.as_str());
    Err(Problem::credential_required(true, metadata))
}

/// 429 when the actor's budget is used up.
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
