//! Live feeds of the ledger. One task reads what is new, once for all feeds; each feed sends it at its own pace.
//!
//! A feed that is too far behind reads the ledger itself, a few feeds at a time. How much memory a feed takes does not
//! depend on how fast its reader is.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pilot_core::actor::ActorId;
use pilot_core::limits::{ACTOR_FEEDS_MAX, FEEDS_MAX, PAGE_ITEMS_MAX};
use pilot_core::role::Role;
use pilot_store::{Store, StoredEntry};
use pilot_wire::caps::Cap;
use tokio::sync::{Semaphore, watch};

use crate::audience::{kind_of, sees_everything};

/// How much of the newest entries is kept.
const RECENT_EVENTS_MAX: usize = 1_024;
const RECENT_BYTES_MAX: usize = 1024 * 1024;
/// How many feeds read older entries at a time.
const CATCHING_UP_MAX: usize = 4;
/// How much a feed sends at once.
pub const CHUNK_BYTES_MAX: usize = 16 * 1024;
/// Feeds are woken together, with a delay that grows with their number: waking each of them for each entry is what
/// costs.
const FEEDS_PER_MILLISECOND: usize = 20;
const PAUSE_MAX: Duration = Duration::from_millis(100);

pub struct Feeds {
    recent: Mutex<Recent>,
    /// The index after the last entry that was read for everyone.
    pub published: watch::Sender<u64>,
    open: Mutex<Open>,
    pub catching_up: Semaphore,
    /// Whether this node is cut off from the ledger, so that nobody may read here any more.
    cut_off: watch::Sender<bool>,
}

/// The newest entries in order, ready to be sent.
#[derive(Default)]
struct Recent {
    first: u64,
    events: VecDeque<Event>,
    bytes: usize,
    /// What a feed was sent last, for those who see everything and for the others: feeds are woken together, and most
    /// are sent the same.
    sent: [Option<Sent>; 2],
}

#[derive(Clone)]
struct Sent {
    from: u64,
    chunk: Bytes,
    next: u64,
}

/// An entry as every feed sends it.
#[derive(Clone)]
pub struct Event {
    pub is_restricted: bool,
    pub text: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("entry {0} cannot be read")]
pub struct Unreadable(u64);

#[derive(Default)]
struct Open {
    by_actor: HashMap<ActorId, usize>,
    all: usize,
}

impl Default for Feeds {
    fn default() -> Feeds {
        Feeds {
            recent: Mutex::default(),
            published: watch::Sender::new(0),
            open: Mutex::default(),
            catching_up: Semaphore::new(CATCHING_UP_MAX),
            cut_off: watch::Sender::new(false),
        }
    }
}

impl Feeds {
    fn recent_events(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a feed for this actor, or says which limit is reached.
    pub fn enter(&self, actor: &ActorId) -> Result<(), Cap> {
        self.open().enter(actor)
    }

    pub fn leave(&self, actor: &ActorId) {
        self.open().leave(actor);
    }

    /// Returns when this node is cut off from the ledger.
    pub async fn until_cut_off(&self) {
        let mut cut_off = self.cut_off.subscribe();
        if cut_off.wait_for(|cut_off| *cut_off).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn count(&self) -> usize {
        self.open().all
    }

    /// What a feed of this role is sent next. `None` if it has to read the ledger itself.
    pub fn recent(&self, next: u64, role: Role) -> Option<(Bytes, u64)> {
        self.recent_events().from(next, role)
    }

    fn publish(&self, stored: &[StoredEntry]) -> Result<(), Unreadable> {
        let events = stored.iter().map(Event::of).collect::<Result<Vec<_>, _>>()?;
        let (Some(first), Some(last)) = (stored.first(), stored.last()) else { return Ok(()) };
        self.recent_events().add(first.index, events);
        self.published.send_replace(last.index + 1);
        Ok(())
    }
}

impl Recent {
    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn add(&mut self, first: u64, events: Vec<Event>) {
        if first != self.end() {
            *self = Recent { first, ..Recent::default() };
        }
        self.sent = [None, None];
        for event in events {
            self.bytes += event.text.len();
            self.events.push_back(event);
        }
        while self.events.len() > RECENT_EVENTS_MAX || self.bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= oldest.text.len();
            self.first += 1;
        }
    }

    fn from(&mut self, from: u64, role: Role) -> Option<(Bytes, u64)> {
        let sees_everything = sees_everything(role);
        let sent = self.sent.get(usize::from(sees_everything)).and_then(Option::as_ref);
        if let Some(Sent { chunk, next, .. }) = sent.filter(|sent| sent.from == from) {
            return Some((chunk.clone(), *next));
        }
        let (chunk, next) = self.joined(from, sees_everything)?;
        if let Some(sent) = self.sent.get_mut(usize::from(sees_everything)) {
            *sent = Some(Sent { from, chunk: chunk.clone(), next });
        }
        Some((chunk, next))
    }

    fn joined(&self, from: u64, sees_everything: bool) -> Option<(Bytes, u64)> {
        let skipped =
            usize::try_from(from.checked_sub(self.first)?).ok().filter(|skipped| *skipped < self.events.len())?;
        let (mut chunk, mut next) = (Vec::new(), from);
        for event in self.events.iter().skip(skipped) {
            next += 1;
            if sees_everything || !event.is_restricted {
                chunk.extend_from_slice(&event.text);
            }
            if chunk.len() >= CHUNK_BYTES_MAX {
                break;
            }
        }
        Some((chunk.into(), next))
    }
}

impl Event {
    pub fn of(stored: &StoredEntry) -> Result<Event, Unreadable> {
        let unreadable = |_| Unreadable(stored.index);
        let kind = kind_of(&stored.bytes).map_err(|_| Unreadable(stored.index))?;
        let data = std::str::from_utf8(&stored.bytes).map_err(unreadable)?;
        let mut text = String::with_capacity(data.len() + 64);
        let _ = write!(text, "id: {}\nevent: {}\ndata: {data}\n\n", stored.index, kind.as_str());
        Ok(Event { is_restricted: kind.is_restricted(), text: text.into() })
    }
}

/// How often a node looks whether it is cut off.
const LOOK: Duration = Duration::from_millis(100);

/// Ends every feed when this node is cut off from the ledger: a reader's credential may have been revoked elsewhere.
pub async fn watch(feeds: Arc<Feeds>, store: Arc<dyn Store>) {
    while store.is_shared() {
        let is_cut_off = store.check_current().is_err();
        feeds.cut_off.send_if_modified(|before| std::mem::replace(before, is_cut_off) != is_cut_off);
        tokio::time::sleep(LOOK).await;
    }
}

/// Reads what is new, for as long as the service runs.
pub async fn run(feeds: Arc<Feeds>, store: Arc<dyn Store>) {
    let mut head = store.head();
    loop {
        let size = head.borrow_and_update().size();
        let from = *feeds.published.borrow();
        if feeds.count() == 0 {
            // Nobody is listening. A new feed reads what is there by itself.
            feeds.published.send_replace(size);
        } else if from < size {
            let read = store.entries(from, PAGE_ITEMS_MAX).await.map_err(|error| error.to_string());
            let published = read.and_then(|stored| feeds.publish(&stored).map_err(|error| error.to_string()));
            if let Err(cause) = published {
                tracing::warn!(cause, "live feeds could not be served; retrying");
                tokio::time::sleep(PAUSE_MAX).await;
            }
            let pause = Duration::from_millis((feeds.count() / FEEDS_PER_MILLISECOND) as u64);
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
            continue;
        }
        if head.changed().await.is_err() {
            return;
        }
    }
}

impl Open {
    fn enter(&mut self, actor: &ActorId) -> Result<(), Cap> {
        if self.all >= FEEDS_MAX {
            return Err(Cap::Feeds);
        }
        let of_actor = self.by_actor.entry(actor.clone()).or_default();
        if *of_actor >= ACTOR_FEEDS_MAX {
            return Err(Cap::ActorFeeds);
        }
        *of_actor += 1;
        self.all += 1;
        Ok(())
    }

    fn leave(&mut self, actor: &ActorId) {
        self.all -= 1;
        if let Some(of_actor) = self.by_actor.get_mut(actor) {
            *of_actor -= 1;
            if *of_actor == 0 {
                self.by_actor.remove(actor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(index: u64, is_restricted: bool) -> Event {
        Event { is_restricted, text: format!("[{index}]").into() }
    }

    fn recent(events: std::ops::Range<u64>) -> Recent {
        let mut recent = Recent::default();
        recent.add(events.start, events.map(|index| event(index, index % 3 == 0)).collect());
        recent
    }

    #[test]
    fn so_many_feeds_are_open_in_all_and_each_that_ends_makes_room() {
        let mut open = Open::default();
        let actor = |number: usize| -> ActorId { format!("actor-{}", number / ACTOR_FEEDS_MAX).parse().unwrap() };
        for number in 0..FEEDS_MAX {
            assert_eq!(open.enter(&actor(number)), Ok(()));
        }
        assert_eq!(open.enter(&"someone-else".parse().unwrap()), Err(Cap::Feeds));
        open.leave(&actor(1));
        assert_eq!(open.enter(&"someone-else".parse().unwrap()), Ok(()));
        (1..FEEDS_MAX).for_each(|number| open.leave(&actor(number)));
        open.leave(&"someone-else".parse().unwrap());
        assert!(open.all == 0 && open.by_actor.is_empty());
    }

    #[test]
    fn each_role_is_sent_what_it_may_see_and_where_to_go_on() {
        let mut recent = recent(10..14);
        let mut sent = |next, role| {
            recent.from(next, role).map(|(text, next)| (String::from_utf8_lossy(&text).into_owned(), next))
        };
        assert_eq!(sent(10, Role::Auditor), Some(("[10][11][12][13]".into(), 14)));
        assert_eq!(sent(10, Role::Executor), Some(("[10][11][13]".into(), 14)));
        assert_eq!(sent(12, Role::Executor), Some(("[13]".into(), 14)));
        assert_eq!(sent(12, Role::Executor).map(|(_, next)| next), Some(14));
        assert_eq!(sent(14, Role::Executor), None, "nothing of it is here");
        assert_eq!(sent(9, Role::Auditor), None, "it has to read the ledger");
    }

    #[test]
    fn feeds_at_the_same_place_share_what_they_are_sent_until_there_is_more() {
        let mut recent = recent(0..2);
        let (first, _) = recent.from(0, Role::Auditor).unwrap();
        let (second, _) = recent.from(0, Role::SecurityAdmin).unwrap();
        assert_eq!((first.as_ptr(), first.as_ref()), (second.as_ptr(), b"[0][1]".as_slice()));
        recent.add(2, vec![event(2, false)]);
        assert_eq!(recent.from(0, Role::Auditor).unwrap(), (Bytes::from_static(b"[0][1][2]"), 3));
    }

    #[test]
    fn only_so_much_is_kept_and_a_gap_begins_anew() {
        let mut recent = recent(0..2_000);
        assert_eq!((recent.first, recent.events.len()), (976, RECENT_EVENTS_MAX));
        let large = |index| Event { text: Bytes::from(vec![b'x'; 60_000]), ..event(index, false) };
        recent.add(2_000, (2_000..2_040).map(large).collect());
        assert!(recent.bytes <= RECENT_BYTES_MAX && recent.end() == 2_040);
        assert_eq!(recent.bytes, recent.events.iter().map(|event| event.text.len()).sum::<usize>());
        recent.add(3_000, vec![event(3_000, false)]);
        assert_eq!((recent.first, recent.end(), recent.bytes), (3_000, 3_001, 6));
    }
}
