//! Evidence bundles: for auditors, and as permits for the targets of an effect.

use std::sync::Arc;

use http::Method;
use http::header::{CONTENT_DISPOSITION, HeaderName, HeaderValue};
use pilot_core::decide::{PERMIT, may_have_permit};
use pilot_core::fault::Fault;
use pilot_core::limits::EXPORT_PIECES_WAITING_MAX;
use pilot_core::time::Time;
use pilot_ledger::evidence::{self, Options, Place, Plan, Sources, Wanted};
use pilot_wire::body::Body;
use tokio::sync::mpsc;

use crate::api::answers::page;
use crate::api::request::{Query, item_id, read_item_id};
use crate::app::App;
use crate::call::{Answer, Call};
use crate::problem::Problem;
use crate::workshop::step_back;

/// How many entries will follow, for clients that show progress.
const EVIDENCE_ENTRIES: HeaderName = HeaderName::from_static("evidence-entries");

pub async fn get_evidence(call: &Call) -> Answer {
    let query = Query::read(call, &["item", "from", "to", "documents", "kept"])?;
    let wanted = wanted(&query)?;
    let without_documents = match query.get("documents") {
        None | Some("all") => false,
        Some("none") => true,
        Some(_) => return Err(faulty("/query/documents", "must be all or none")),
    };
    let kept = query.get("kept").map(|size| size.parse().ok().filter(|size| *size > 0));
    if kept == Some(None) {
        return Err(faulty("/query/kept", "must be the number of entries in the checkpoint you kept"));
    }
    let options = Options { without_documents, kept: kept.flatten() };
    let place = call.app.exports.begin(&call.caller.actor.actor_id)?;
    let sources = sources(&call.app);
    let plan = Plan::make(&sources, wanted, options).await?;
    send(call, sources, plan, place)
}

/// What an executor shows to a target: the item's evidence as of the start of what is under way.
pub async fn get_permit(call: &Call) -> Answer {
    Query::read(call, &[])?;
    let (app, actor) = (&call.app, &call.caller.actor);
    let item = app.ledger.store.item(item_id(call)?).await?.ok_or_else(Problem::no_such_item)?;
    let now = app.ledger.clock.now();
    may_have_permit(&*app.workflows.kept_by(&item)?, &item, actor, now).inspect_err(|refusal| {
        if refusal.is_about_access() {
            app.ledger.refusals.note(actor, call.caller.origin, PERMIT, refusal.code().as_str(), now);
        }
    })?;
    let place = app.permits.begin(&actor.actor_id)?;
    let sources = sources(app);
    let plan = Plan::make(&sources, Wanted::Permit(item.id.clone(), item.entered_at), Options::default()).await?;
    send(call, sources, plan, place)
}

fn send(call: &Call, sources: Sources, plan: Plan, place: Place) -> Answer {
    let disposition = format!("attachment; filename=\"{}\"", plan.file_name());
    let disposition = HeaderValue::try_from(disposition).map_err(|error| Problem::internal(&error))?;
    let entries = HeaderValue::from(plan.entries());
    let (sender, receiver) = mpsc::channel(EXPORT_PIECES_WAITING_MAX);
    // HEAD says what a bundle would contain, but none is built.
    if call.head.method == Method::GET {
        let runtime = tokio::runtime::Handle::current();
        let work = move || {
            step_back();
            runtime.block_on(evidence::write(sources, plan, place, sender));
        };
        // A thread of its own: in the workshop it would block others for as long as its reader takes.
        let begun = std::thread::Builder::new().name("evidence".into()).spawn(work);
        begun.map_err(|error| Problem::unavailable("No thread is free to build a bundle right now.", &error))?;
    }
    let mut response = page("application/zip", Body::chunks(receiver));
    response.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    response.headers_mut().insert(EVIDENCE_ENTRIES, entries);
    Ok(response)
}

fn sources(app: &App) -> Sources {
    Sources {
        store: Arc::clone(&app.ledger.store),
        signer: Arc::clone(&app.ledger.signer),
        witnesses: Arc::clone(&app.witnesses),
        guard: Arc::clone(&app.guard),
        clock: app.ledger.clock.clone(),
        layouts: app.workflows.layouts(),
    }
}

fn wanted(query: &Query) -> Result<Wanted, Problem> {
    match (query.get("item"), query.get("from"), query.get("to")) {
        (Some(id), None, None) => read_item_id(id).map(Wanted::Item).ok_or_else(Problem::no_such_item),
        (None, Some(from), Some(to)) => {
            let (from, to) = (time("from", from)?, time("to", to)?);
            if from > to {
                return Err(faulty("/query/to", "must not be before from"));
            }
            Ok(Wanted::Period(from, to))
        }
        _ => Err(faulty("/query", "must have either item, or from and to")),
    }
}

fn time(name: &str, text: &str) -> Result<Time, Problem> {
    let detail = "must be a time such as 2026-11-15T00:00:00Z";
    text.parse().map_err(|_| faulty(&format!("/query/{name}"), detail))
}

fn faulty(pointer: &str, detail: &str) -> Problem {
    Problem::invalid(vec![Fault::new(pointer, detail)])
}
