//! A live token where it does not belong: in a URL, or in content. Its holder is protected first, then the exposure is
//! recorded.

use std::sync::Arc;

use http::request::Parts;
use pilot_core::actor::Actor;
use pilot_core::credentials::CredentialId;
use pilot_core::leak::LeakGuard;
use pilot_core::limits::TOKEN_BYTES_MIN;
use pilot_ledger::refusals;
use pilot_ledger::register::{self, Automatic};
use pilot_wire::peer::Address;
use serde_json::Value;

use crate::app::App;
use crate::caller::Caller;
use crate::problem::{Code, Problem};
use crate::rate;
use crate::workshop::Asker;

/// A longer target is searched on a thread where it delays nobody else.
const SHORT_URL_BYTES_MAX: usize = 128;

/// Whose live token was found, and which one.
#[derive(Debug, Clone)]
pub struct Exposed {
    pub actor: Actor,
    pub id: CredentialId,
}

/// 400 if the request target contains a live token.
pub async fn refuse_in_url(app: &Arc<App>, head: &Parts, address: Address, asker: Asker) -> Result<(), Problem> {
    let [target, authority] = searched(head);
    let length = target.len() + authority.len();
    if length < TOKEN_BYTES_MIN {
        return Ok(());
    }
    let found = if length <= SHORT_URL_BYTES_MAX {
        find_in_url(app, [target, authority])
    } else {
        let parts = [target.to_owned(), authority.to_owned()];
        let finder = Arc::clone(app);
        let look = move || find_in_url(&finder, parts.each_ref().map(String::as_str));
        Box::pin(app.workshop.long(asker, look)).await?
    };
    let Some(exposed) = found else { return Ok(()) };
    app.metrics.token_in_url();
    // First, and without waiting for anything: hanging up now changes nothing.
    let is_revoked = revoke(app, &exposed.id, Automatic::TokenInUrl);
    let actor_id = exposed.actor.actor_id.as_str();
    tracing::warn!(actor_id, credential_id = %exposed.id, "a live token of `{actor_id}` was sent in a URL and refused");
    Box::pin(write_down(app, &exposed.actor, app.origin_in_ledger(address), Code::TokenInUrl)).await;
    Err(Problem::new(
        Code::TokenInUrl,
        if is_revoked {
            "Send tokens in the Authorization header. This one was revoked because it was sent in the URL; ask for a new one."
        } else {
            "Send the token in the Authorization header, and have this one rotated."
        },
    ))
}

/// What of a request target is searched for tokens.
pub(crate) fn searched(head: &Parts) -> [&str; 2] {
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    // Our own prefix is not part of a token; with it, every item's id would be tried in a dozen combinations.
    let target = target.strip_prefix("/v1/").unwrap_or(target);
    let target = target.strip_prefix("items/").unwrap_or(target);
    // In an absolute URL, the authority counts too: `http://token@host/`.
    [target, head.uri.authority().map_or("", |authority| authority.as_str())]
}

fn find_in_url(app: &App, parts: [&str; 2]) -> Option<Exposed> {
    if let Some(credential) = parts.into_iter().find_map(|part| app.guard.find_live_in_url(part)) {
        return Some(Exposed { actor: credential.actor.clone(), id: credential.id.clone() });
    }
    let signed = parts.into_iter().flat_map(|part| app.guard.find_signed_in_url(part));
    let (actor, id) = signed.into_iter().find_map(|token| app.identity.holder_of_signed(&token))?;
    Some(Exposed { actor, id })
}

/// The live token in content in which the guard has found something.
pub fn find_in_content(guard: &LeakGuard, value: &Value) -> Found {
    let live = guard.find_live_in_json(value);
    let exposed = live.map(|credential| Exposed { actor: credential.actor.clone(), id: credential.id.clone() });
    Found { signed: if exposed.is_some() { Vec::new() } else { guard.find_signed_in_json(value) }, exposed }
}

/// What was found in a body.
#[derive(Debug, Default)]
pub struct Found {
    exposed: Option<Exposed>,
    signed: Vec<Vec<u8>>,
}

/// Called after content was refused for a token in it. The answer tells the sender that the text is a token, so the
/// attempt is charged like a failed sign-in; and if the token is someone else's, a stranger knows it.
pub async fn in_content(
    app: &Arc<App>,
    caller: &Caller,
    address: Option<Address>,
    found: Found,
) -> Result<(), Problem> {
    if let (Some(limits), Some(address)) = (&app.limits, address) {
        let standing = limits.take_of_address(rate::Budget::Failed, address);
        if let Some(seconds) = standing.retry_after {
            app.metrics.rate_limited(standing.budget);
            return Err(Problem::rate_limited(seconds));
        }
    }
    let signed = || found.signed.iter().find_map(|token| app.identity.holder_of_signed(token));
    let exposed = found.exposed.clone().or_else(|| signed().map(|(actor, id)| Exposed { actor, id }));
    let Some(exposed) = exposed.filter(|exposed| exposed.actor.actor_id != caller.actor.actor_id) else {
        return Ok(());
    };
    revoke(app, &exposed.id, Automatic::TokenInContent);
    let (actor_id, by) = (exposed.actor.actor_id.as_str(), caller.actor.actor_id.as_str());
    tracing::warn!(actor_id, by, credential_id = %exposed.id, "`{by}` sent a live token of `{actor_id}` in content");
    write_down(app, &exposed.actor, caller.origin, Code::TokenInContent).await;
    Ok(())
}

async fn write_down(app: &Arc<App>, actor: &Actor, origin: Option<Address>, code: Code) {
    let (ledger, now) = (&app.ledger, app.ledger.clock.now());
    if ledger.refusals.note_exposure(actor, origin, code.as_str(), now) {
        refusals::write_exposure(&*ledger.store, actor, origin, code.as_str(), now).await;
    }
}

/// Revokes what was exposed, if that is the service's job.
fn revoke(app: &App, id: &CredentialId, why: Automatic) -> bool {
    let known = app.identity.credential(id).filter(|_| app.register.keeps_record());
    known.map(|known| register::revoke_by_itself(&app.register, known, why)).is_some()
}
