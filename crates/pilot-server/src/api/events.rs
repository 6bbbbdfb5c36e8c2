//! The ledger as a feed: in pages, or live as server-sent events that resume where they were cut off.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT, HeaderName, HeaderValue};
use pilot_core::entry::EntryType;
use pilot_core::fault::Fault;
use pilot_core::json::INTEGER_MAX;
use pilot_core::limits::PAGE_ITEMS_MAX;
use pilot_core::role::Role;
use pilot_store::StoredEntry;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::access::Caller;
use crate::api::request::Query;
use crate::app::App;
use crate::body::{Body, Broken};
use crate::identity::oauth::Watch;
use crate::problem::Problem;
use crate::routes::{Answer, Call};

/// A line now and then, so that proxies and the listener see that the feed is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const PAGE_EVENTS: u64 = 100;
/// How many entries one request looks at when only some of them are for the caller.
const LOOKED_AT_MAX: usize = 10_000;

#[derive(Serialize)]
struct EventsView<'e> {
    events: Vec<&'e RawValue>,
    /// Ask again with `after` set to this. Null while the ledger is empty.
    next_after: Option<u64>,
}

pub async fn list_events(call: &Call) -> Answer {
    let query = Query::read(call, &["after", "limit"])?;
    let after = query.number("after", 0, INTEGER_MAX)?;
    let limit = query.number("limit", 1, PAGE_ITEMS_MAX as u64)?.unwrap_or(PAGE_EVENTS);
    if wants_stream(&call.head.headers) {
        let after = last_event_id(&call.head.headers)?.or(after);
        return Ok(stream(call, after.map_or(0, |after| after + 1)));
    }
    let (stored, next_after) = page(call, after, usize::try_from(limit).unwrap_or(PAGE_ITEMS_MAX)).await?;
    let raw = stored.iter().map(|entry| serde_json::from_slice::<&RawValue>(&entry.bytes));
    let events = raw.collect::<Result<_, _>>().map_err(|error| Problem::internal(&error))?;
    super::json(&EventsView { events, next_after })
}

/// Entries the caller may see, and the index of the last one that was looked at. An empty page means the end of the
/// ledger, or a long stretch of entries for others.
async fn page(call: &Call, after: Option<u64>, limit: usize) -> Result<(Vec<StoredEntry>, Option<u64>), Problem> {
    let role = call.caller.actor.role;
    let at_once = if sees_everything(role) { limit } else { PAGE_ITEMS_MAX };
    let (mut page, mut last, mut looked_at, mut is_end) = (Vec::new(), after, 0, false);
    while page.len() < limit && looked_at < LOOKED_AT_MAX && !is_end {
        let stored = call.app.store.entries(last.map_or(0, |last| last + 1), at_once).await?;
        is_end = stored.len() < at_once;
        looked_at += stored.len();
        for entry in stored {
            if page.len() == limit {
                break;
            }
            last = Some(entry.index);
            if is_visible(kind_of(&entry.bytes)?, role) {
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
        // A weight of zero says "anything but this".
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

fn sees_everything(role: Role) -> bool {
    matches!(role, Role::SecurityAdmin | Role::Auditor)
}

/// Entries about access and credentials are for two roles alone.
fn is_visible(kind: EntryType, role: Role) -> bool {
    !kind.is_restricted() || sees_everything(role)
}

fn kind_of(entry: &[u8]) -> Result<EntryType, Problem> {
    #[derive(Deserialize)]
    struct Typed {
        r#type: EntryType,
    }
    serde_json::from_slice(entry).map(|typed: Typed| typed.r#type).map_err(|error| Problem::internal(&error))
}

/// Entries the role may see, as (index, type, text).
fn visible(stored: &[StoredEntry], role: Role) -> Result<Vec<(u64, &'static str, &str)>, Problem> {
    let mut texts = Vec::with_capacity(stored.len());
    for entry in stored {
        let kind = kind_of(&entry.bytes)?;
        if is_visible(kind, role) {
            let text = std::str::from_utf8(&entry.bytes).map_err(|error| Problem::internal(&error))?;
            texts.push((entry.index, kind.as_str(), text));
        }
    }
    Ok(texts)
}

fn stream(call: &Call, from: u64) -> http::Response<Body> {
    let (sender, receiver) = mpsc::channel(4);
    let watch = call.app.identity.watch(&call.head);
    tokio::spawn(feed(Arc::clone(&call.app), call.caller.clone(), watch, from, sender));
    let mut response = super::page("text/event-stream", Body::chunks(receiver));
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Sends entries until the reader goes away, its credential counts no longer, or the service stops. The ends are waited
/// for beside the sending, not in it: a reader who takes nothing must not outlive its credential.
async fn feed(
    app: Arc<App>,
    caller: Caller,
    watch: Option<Watch>,
    from: u64,
    sender: mpsc::Sender<Result<Bytes, Broken>>,
) {
    let mut stop = app.stop.clone();
    tokio::select! {
        // The ends first, so that nothing is sent after one of them.
        biased;
        () = app.register.until_over(&caller.credential, || app.clock.now()) => {}
        () = app.identity.until_over(watch) => {}
        _ = stop.wait_for(|stop| *stop) => {}
        () = send_entries(&app, &caller, from, &sender) => {}
    }
}

/// Sends entries as they come, until the reader goes away.
async fn send_entries(app: &App, caller: &Caller, mut next: u64, sender: &mpsc::Sender<Result<Bytes, Broken>>) {
    let mut head = app.store.head();
    // Something at once, so that a client knows that it is connected.
    if sender.send(Ok(Bytes::from_static(b": connected\n\n"))).await.is_err() {
        return;
    }
    loop {
        head.mark_unchanged();
        // A clock that was set forward is noticed here, before the timer does.
        if app.register.is_over(&caller.credential, app.clock.now()) {
            return;
        }
        let Ok(stored) = app.store.entries(next, PAGE_ITEMS_MAX).await else { return };
        if let Some(last) = stored.last() {
            next = last.index + 1;
            let Ok(texts) = visible(&stored, caller.actor.role) else { return };
            let chunk: String = texts
                .iter()
                .map(|(index, kind, text)| format!("id: {index}\nevent: {kind}\ndata: {text}\n\n"))
                .collect();
            if !chunk.is_empty() && sender.send(Ok(chunk.into())).await.is_err() {
                return;
            }
            continue;
        }
        let beat = tokio::select! {
            changed = head.changed() => match changed { Ok(()) => continue, Err(_) => return },
            () = sender.closed() => return,
            () = tokio::time::sleep(HEARTBEAT) => Bytes::from_static(b": still here\n\n"),
        };
        if sender.send(Ok(beat)).await.is_err() {
            return;
        }
    }
}
