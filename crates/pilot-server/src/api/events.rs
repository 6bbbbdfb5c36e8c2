//! The ledger as a feed: in pages, or live as server-sent events that resume where they were interrupted.

use std::time::Duration;

use http::HeaderMap;
use http::header::{ACCEPT, HeaderName, HeaderValue};
use pilot_api::events::EventsView;
use pilot_core::fault::Fault;
use pilot_core::json::INTEGER_MAX;
use pilot_core::limits::PAGE_ITEMS_MAX;
use pilot_store::StoredEntry;
use serde_json::value::RawValue;

use crate::api::answers::{json, page as page_of};
use crate::api::request::Query;
use crate::audience::{is_visible, kind_of, sees_everything};
use crate::call::{Answer, Call};
use crate::feed;
use crate::problem::Problem;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const PAGE_EVENTS: u64 = 100;
/// Longer than a node may be behind the others and still answer.
const CATCH_UP: Duration = Duration::from_millis(1_500);
/// How many entries one request looks at when only some of them are visible to the caller.
const LOOKED_AT_MAX: usize = 10_000;

pub async fn list_events(call: &Call) -> Answer {
    let query = Query::read(call, &["after", "limit"])?;
    let after = query.number("after", 0, INTEGER_MAX)?;
    let limit = query.number("limit", 1, PAGE_ITEMS_MAX as u64)?.unwrap_or(PAGE_EVENTS);
    if wants_stream(&call.head.headers) {
        let last = last_event_id(&call.head.headers)?;
        catch_up(call, last.or(after)).await;
        return stream(call, last, after);
    }
    let (stored, next_after) = page(call, after, usize::try_from(limit).unwrap_or(PAGE_ITEMS_MAX)).await?;
    let raw = stored.iter().map(|entry| serde_json::from_slice::<&RawValue>(&entry.bytes));
    let events = raw.collect::<Result<_, _>>().map_err(|error| Problem::internal(&error))?;
    json(&EventsView { events, next_after })
}

/// The entries the caller may see, and the index of the last one looked at. An empty page means the end of the ledger,
/// or a long stretch of entries the caller may not see.
async fn page(call: &Call, after: Option<u64>, limit: usize) -> Result<(Vec<StoredEntry>, Option<u64>), Problem> {
    let role = call.caller.actor.role;
    let at_once = if sees_everything(role) { limit } else { PAGE_ITEMS_MAX };
    let (mut page, mut last, mut looked_at, mut is_end) = (Vec::new(), after, 0, false);
    while page.len() < limit && looked_at < LOOKED_AT_MAX && !is_end {
        let stored = call.app.ledger.store.entries(last.map_or(0, |last| last + 1), at_once).await?;
        is_end = stored.len() < at_once;
        looked_at += stored.len();
        for entry in stored {
            if page.len() == limit {
                break;
            }
            last = Some(entry.index);
            if is_visible(kind_of(&entry.bytes).map_err(|error| Problem::internal(&error))?, role) {
                page.push(entry);
            }
        }
    }
    Ok((page, last))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream"));
        // A weight of zero means "anything but this".
        let refused = |part: &str| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.parse() == Ok(0.0_f32))
        };
        named && !parts.any(refused)
    })
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.parse().ok()).filter(|id| *id <= INTEGER_MAX);
    id.map(Some)
        .ok_or_else(|| Problem::invalid(vec![Fault::new("/headers/Last-Event-ID", "must be the id of an event")]))
}

/// Another node may have sent an entry that this one has not heard of yet.
async fn catch_up(call: &Call, last: Option<u64>) {
    let store = &call.app.ledger.store;
    if let Some(last) = last.filter(|_| store.is_shared()) {
        let mut head = store.head();
        let _ = tokio::time::timeout(CATCH_UP, head.wait_for(|head| head.size() > last)).await;
    }
}

/// The live feed, from the entry after the last one the caller has.
fn stream(call: &Call, last_event_id: Option<u64>, after: Option<u64>) -> Answer {
    let size = call.app.ledger.store.head().borrow().size();
    let (place, last) = match last_event_id {
        Some(last) => ("/headers/Last-Event-ID", Some(last)),
        None => ("/query/after", after),
    };
    // Waiting for an entry that may never come looks like a feed that works.
    if let Some(last) = last.filter(|last| *last >= size) {
        let newest =
            size.checked_sub(1).map_or_else(|| "is empty".into(), |newest| format!("ends with entry {newest}"));
        if call.app.ledger.store.is_shared() {
            // Either the caller made it up, or another node has shown an entry that this one cannot find.
            tracing::warn!(id = last, size, "a feed was to resume after an entry that this node does not have");
        }
        let detail = format!("{last} is past the end of the ledger, which {newest}; start again without it");
        return Err(Problem::invalid(vec![Fault::new(place, detail)]));
    }
    let mut response = page_of("text/event-stream", feed::open(call, last.map_or(0, |last| last + 1))?);
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}
