//! What an auditor takes away.

use http::Method;
use http::header::{CONTENT_DISPOSITION, HeaderName, HeaderValue};
use pilot_core::fault::Fault;
use pilot_core::limits::{EXPORT_ENTRIES_MAX, EXPORT_PIECES_WAITING_MAX, EXPORT_RETRY};
use pilot_core::time::Time;
use std::sync::Arc;
use tokio::sync::mpsc;

use crate::api::request::{Query, no_such_item, read_item_id};
use crate::body::Body;
use crate::evidence::exports::Busy;
use crate::evidence::{self, EvidenceError, Plan, Wanted};
use crate::problem::{Code, Problem};
use crate::routes::{Answer, Call};

/// How many entries are to come, for those who show progress.
const EVIDENCE_ENTRIES: HeaderName = HeaderName::from_static("evidence-entries");

pub async fn get_evidence(call: &Call) -> Answer {
    let query = Query::read(call, &["item", "from", "to", "documents"])?;
    let wanted = wanted(&query)?;
    let with_documents = match query.get("documents") {
        None | Some("all") => true,
        Some("none") => false,
        Some(_) => return Err(faulty("/query/documents", "must be all or none")),
    };
    let place = call.app.exports.begin(&call.caller.actor.actor_id);
    let unavailable = |busy: Busy| Problem::new(Code::Unavailable, busy.to_string()).retry_after(EXPORT_RETRY);
    let place = place.map_err(unavailable)?;
    let plan = Plan::make(&call.app, wanted, with_documents).await?;
    let disposition = format!("attachment; filename=\"{}\"", plan.file_name());
    let disposition = HeaderValue::try_from(disposition).map_err(|error| Problem::internal(&error))?;
    let entries = HeaderValue::from(plan.entries());
    let (sender, receiver) = mpsc::channel(EXPORT_PIECES_WAITING_MAX);
    // Who asks for the head alone is told what there is, and nothing is made of it.
    if call.head.method == Method::GET {
        let begun = evidence::send(Arc::clone(&call.app), plan, place, sender);
        begun.map_err(|error| Problem::unavailable("No thread is free to build a bundle right now.", &error))?;
    }
    let mut response = super::page("application/zip", Body::chunks(receiver));
    response.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    response.headers_mut().insert(EVIDENCE_ENTRIES, entries);
    Ok(response)
}

fn wanted(query: &Query) -> Result<Wanted, Problem> {
    match (query.get("item"), query.get("from"), query.get("to")) {
        (Some(id), None, None) => read_item_id(id).map(Wanted::Item).ok_or_else(no_such_item),
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

impl From<EvidenceError> for Problem {
    fn from(error: EvidenceError) -> Self {
        match error {
            EvidenceError::NoSuchItem => no_such_item(),
            EvidenceError::TooMany(entries) => {
                let detail = format!(
                    "would give {entries} entries, and a bundle can hold at most {EXPORT_ENTRIES_MAX}; ask for less"
                );
                faulty("/query", &detail)
            }
            EvidenceError::Store(error) => error.into(),
            EvidenceError::Sign(error) => error.into(),
            other => Problem::internal(&other),
        }
    }
}
