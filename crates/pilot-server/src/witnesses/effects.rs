//! No effect begins on the strength of entries that only this service has seen.

use pilot_core::decide::{self, ActionRequest, Caller, Request};
use pilot_core::item::ItemId;
use pilot_core::workflow::Kind;

use crate::access;
use crate::app::App;
use crate::ledger;
use crate::problem::Problem;

/// When the request would begin an effect, waits until the item's newest entry is cosigned, and gives the item's version
/// as it was then. For every other request there is nothing to wait for.
pub async fn cover_effect(
    app: &App,
    caller: &access::Caller,
    id: &ItemId,
    request: &ActionRequest,
) -> Result<Option<u64>, Problem> {
    if app.witnesses.required() == 0 {
        return Ok(None);
    }
    let Some(item) = app.store.item(id.clone()).await? else { return Ok(None) };
    let definition = ledger::definition(app, &item)?;
    // Asked in advance: who would be refused anyway is refused as always, and at once.
    let (request, actor) = (Request::Act(request.clone()), Caller::Actor(caller.actor.clone()));
    let Ok(transition) = decide::decide(&definition, &item, &request, &actor, app.ledger_clock.now()) else {
        return Ok(None);
    };
    let is_effect = definition.rules().state(transition.to()).is_some_and(|state| state.kind == Kind::Effect);
    if !is_effect || transition.from() == Some(transition.to()) {
        return Ok(None);
    }
    let history = app.store.history(id.clone()).await?;
    let size = history.last().map_or(0, |entry| entry.index + 1);
    app.witnesses.cover(&app.signer, size).await?;
    Ok(Some(item.version))
}
