//! How many bytes of requests and answers are held in memory, for each actor and in total.
//!
//! A caller can send bodies slowly, receive answers slowly, and make many requests at once. Each of them holds a share
//! of one budget until it is done, so that one actor can hold only a small part of the total.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pilot_core::actor::ActorId;
use pilot_core::limits::{ACTOR_BYTES_HELD_MAX, ACTOR_SHARES_WAITING_MAX, BYTES_HELD_MAX, SHARE_DEADLINE};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Shares are counted in units: a semaphore has too few permits to count bytes.
const UNIT: usize = 1024;

pub struct Budget {
    all: Arc<Semaphore>,
    /// Actors who hold something now. Weak: an actor without a share is forgotten.
    actors: Mutex<HashMap<ActorId, Weak<Part>>>,
    units_of_actor: usize,
}

/// One actor's part.
struct Part {
    units: Arc<Semaphore>,
    /// Places for requests waiting for their share. Waiting takes memory too: the head, and what has already arrived.
    waiting: Semaphore,
}

/// Too many bytes are in use, for this actor or in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

/// Bytes reserved until this is dropped.
#[derive(Debug)]
pub struct Share {
    of_actor: OwnedSemaphorePermit,
    of_all: OwnedSemaphorePermit,
    /// Keeps the actor's entry alive.
    _part: Arc<Part>,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Part")
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(BYTES_HELD_MAX, ACTOR_BYTES_HELD_MAX)
    }
}

impl Budget {
    fn new(bytes: usize, bytes_of_actor: usize) -> Budget {
        let all = Arc::new(Semaphore::new(bytes / UNIT));
        Budget { all, actors: Mutex::new(HashMap::new()), units_of_actor: bytes_of_actor / UNIT }
    }

    /// Waits until `bytes` more may be held for `actor`. The actor's own part comes first: one actor's queue must not
    /// become everyone's.
    pub async fn take(&self, actor: &ActorId, bytes: usize) -> Result<Share, Exhausted> {
        let units = u32::try_from(bytes.div_ceil(UNIT).clamp(1, self.units_of_actor)).unwrap_or(u32::MAX);
        let part = self.part_of(actor);
        let at_once = Arc::clone(&part.units).try_acquire_many_owned(units).ok();
        let at_once = at_once.zip(Arc::clone(&self.all).try_acquire_many_owned(units).ok());
        // Almost always there is room immediately, and then no timer is needed.
        if let Some((of_actor, of_all)) = at_once {
            return Ok(Share { of_actor, of_all, _part: part });
        }
        let Ok(_place) = part.waiting.try_acquire() else { return Err(Exhausted) };
        let taken = async {
            let of_actor = Arc::clone(&part.units).acquire_many_owned(units).await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_many_owned(units).await.ok()?;
            Some(Share { of_actor, of_all, _part: Arc::clone(&part) })
        };
        match tokio::time::timeout(SHARE_DEADLINE, taken).await {
            Ok(Some(share)) => Ok(share),
            _ => Err(Exhausted),
        }
    }

    fn part_of(&self, actor: &ActorId) -> Arc<Part> {
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = actors.get(actor).and_then(Weak::upgrade) {
            return part;
        }
        actors.retain(|_, part| part.strong_count() > 0);
        let units = Arc::new(Semaphore::new(self.units_of_actor));
        let part = Arc::new(Part { units, waiting: Semaphore::new(ACTOR_SHARES_WAITING_MAX) });
        actors.insert(actor.clone(), Arc::downgrade(&part));
        part
    }
}

impl Share {
    /// Returns what turned out not to be needed.
    #[must_use]
    pub fn shrunk_to(mut self, bytes: usize) -> Share {
        let surplus = self.of_all.num_permits().saturating_sub(bytes.div_ceil(UNIT).max(1));
        drop(self.of_actor.split(surplus));
        drop(self.of_all.split(surplus));
        self
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn actor(name: &str) -> ActorId {
        name.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_actor_cannot_hold_what_is_for_the_others() {
        let budget = Budget::new(64 * UNIT, 16 * UNIT);
        let held = budget.take(&actor("ana"), 16 * UNIT).await.unwrap();
        let refused = budget.take(&actor("ana"), 1).await.unwrap_err();
        assert_eq!(refused, Exhausted);
        let other = budget.take(&actor("ben"), 16 * UNIT).await.unwrap();
        drop(held);
        drop((budget.take(&actor("ana"), UNIT).await.unwrap(), other));
        assert_eq!(budget.all.available_permits(), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn all_together_cannot_hold_more_than_there_is() {
        let budget = Budget::new(32 * UNIT, 16 * UNIT);
        let held = [budget.take(&actor("ana"), 16 * UNIT).await, budget.take(&actor("ben"), 16 * UNIT).await];
        assert_eq!(budget.take(&actor("cleo"), 1).await.unwrap_err(), Exhausted);
        drop(held);
        assert!(budget.take(&actor("cleo"), 1).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_of_one_actor_wait_for_a_share_and_the_rest_are_refused_at_once() {
        let budget = Budget::new(64 * UNIT, 16 * UNIT);
        let held = budget.take(&actor("ana"), 16 * UNIT).await.unwrap();
        let (name, mut context) = (actor("ana"), Context::from_waker(Waker::noop()));
        let mut waiting: Vec<_> = (0..ACTOR_SHARES_WAITING_MAX).map(|_| Box::pin(budget.take(&name, UNIT))).collect();
        assert!(waiting.iter_mut().all(|share| share.as_mut().poll(&mut context).is_pending()));
        let refused = Box::pin(budget.take(&name, UNIT)).as_mut().poll(&mut context);
        assert!(matches!(refused, Poll::Ready(Err(Exhausted))));
        assert!(budget.take(&actor("ben"), UNIT).await.is_ok());
        drop(held);
        assert!(waiting.remove(0).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_needed_is_given_back_and_nobody_is_remembered_for_ever() {
        let budget = Budget::new(64 * UNIT, 16 * UNIT);
        let share = budget.take(&actor("ana"), 16 * UNIT).await.unwrap().shrunk_to(3 * UNIT);
        assert_eq!(budget.all.available_permits(), 61);
        drop(budget.take(&actor("ana"), 13 * UNIT).await.unwrap());
        drop(share);
        drop(budget.take(&actor("ben"), 1).await.unwrap());
        drop(budget.take(&actor("cleo"), 1).await.unwrap());
        assert_eq!(budget.actors.lock().unwrap().len(), 1);
    }
}
