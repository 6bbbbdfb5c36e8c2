//! One live feed: sends entries at its own pace, until its reader goes away or may no longer read.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pilot_core::actor::ActorId;
use pilot_core::limits::{ACTOR_FEEDS_MAX, FEEDS_MAX, PAGE_ITEMS_MAX};
use pilot_core::role::Role;
use pilot_wire::body::{Body, Broken};
use pilot_wire::caps::Cap;
use tokio::sync::mpsc;

use crate::app::App;
use crate::audience::sees_everything;
use crate::call::Call;
use crate::caller::Caller;
use crate::feeds::{CHUNK_BYTES_MAX, Event};
use crate::identity::oauth::Watch;
use crate::problem::{Code, Problem};

/// A line now and then, so that proxies and the listener see that the feed is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

type Chunks = mpsc::Sender<Result<Bytes, Broken>>;

/// One feed's place within the limit.
struct Place {
    app: Arc<App>,
    actor: ActorId,
}

impl Place {
    fn take(app: &Arc<App>, actor: &ActorId) -> Result<Place, Problem> {
        app.feeds.enter(actor).map_err(|cap| {
            let (code, detail) = if cap == Cap::Feeds {
                let detail = format!("There are {FEEDS_MAX} live feeds, which is the limit. Ask for pages instead.");
                (Code::Unavailable, detail)
            } else {
                let detail =
                    format!("You have {ACTOR_FEEDS_MAX} live feeds open, which is the limit. Close one first.");
                (Code::RateLimited, detail)
            };
            Problem::new(code, detail).retry_after(HEARTBEAT).beyond(cap)
        })?;
        Ok(Place { app: Arc::clone(app), actor: actor.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.app.feeds.leave(&self.actor);
    }
}

/// Opens a feed from the entry with index `from` on.
pub fn open(call: &Call, from: u64) -> Result<Body, Problem> {
    let place = Place::take(&call.app, &call.caller.actor.actor_id)?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(feed(place, call.caller.clone(), call.app.identity.watch(&call.head), from, sender));
    Ok(Body::endless(receiver))
}

/// Sends entries until the reader goes away, its credential is no longer valid, or the service stops. It waits for
/// these ends in parallel with sending: a reader who receives nothing must not outlive its credential.
async fn feed(place: Place, caller: Caller, watch: Option<Watch>, from: u64, sender: Chunks) {
    let app = &place.app;
    let mut stop = app.stop.clone();
    tokio::select! {
        // The ends first, so that nothing is sent after one of them.
        biased;
        () = app.register.until_over(&caller.credential, || app.clock.now()) => {}
        () = app.identity.until_over(watch) => {}
        () = app.feeds.until_cut_off() => {}
        _ = stop.wait_for(|stop| *stop) => {}
        () = send_entries(app, &caller, from, &sender) => {}
    }
}

/// Sends entries as they come, until the reader goes away.
async fn send_entries(app: &App, caller: &Caller, mut next: u64, sender: &Chunks) {
    let (role, mut published) = (caller.actor.role, app.feeds.published.subscribe());
    // Something immediately, so that a client knows that it is connected.
    if sender.send(Ok(Bytes::from_static(b": connected\n\n"))).await.is_err() {
        return;
    }
    loop {
        let end = *published.borrow_and_update();
        // A clock that was set forward is noticed here, before the timer fires.
        if app.register.is_over(&caller.credential, app.clock.now()) {
            return;
        }
        if next < end {
            let found = match app.feeds.recent(next, role) {
                Some(recent) => Some(recent),
                None => older(app, next, role).await,
            };
            let Some((chunk, after)) = found else { return };
            next = after;
            if !chunk.is_empty() && sender.send(Ok(chunk)).await.is_err() {
                return;
            }
            continue;
        }
        let beat = tokio::select! {
            changed = published.changed() => match changed { Ok(()) => continue, Err(_) => return },
            () = sender.closed() => return,
            () = tokio::time::sleep(HEARTBEAT) => Bytes::from_static(b": still here\n\n"),
        };
        if sender.send(Ok(beat)).await.is_err() {
            return;
        }
    }
}

/// Reads from the ledger itself, for a feed that is behind.
async fn older(app: &App, next: u64, role: Role) -> Option<(Bytes, u64)> {
    let _turn = app.feeds.catching_up.acquire().await.ok()?;
    let stored = app.ledger.store.entries(next, PAGE_ITEMS_MAX).await.ok()?;
    let (mut chunk, mut at) = (Vec::new(), next);
    for entry in &stored {
        let event = Event::of(entry).ok()?;
        at = entry.index + 1;
        if !event.is_restricted || sees_everything(role) {
            chunk.extend_from_slice(&event.text);
        }
        if chunk.len() >= CHUNK_BYTES_MAX {
            break;
        }
    }
    Some((chunk.into(), at))
}
