//! How many bytes of requests and answers are held in memory, for each actor and in all.
//!
//! A caller can send bodies slowly and take answers slowly, and ask for many at once. Each of them holds a share of one
//! budget until it is done, so that what one actor can hold is a small part of what there is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pilot_core::actor::ActorId;
use pilot_core::limits::{ACTOR_BYTES_HELD_MAX, BYTES_HELD_MAX, SHARE_DEADLINE};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Code, Problem};

/// Shares are counted in units: a semaphore has too few permits to count bytes.
const UNIT: usize = 1024;

pub struct Budget {
    all: Arc<Semaphore>,
    /// Those who hold something now. Weak: an actor without a share is forgotten.
    actors: Mutex<HashMap<ActorId, Weak<Semaphore>>>,
    units_of_actor: usize,
}

/// Bytes that are spoken for, until this is dropped.
#[derive(Debug)]
pub struct Share {
    of_actor: OwnedSemaphorePermit,
    of_all: OwnedSemaphorePermit,
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

    /// Waits until `bytes` more may be held for `actor`. First the actor's own part: a queue of one actor's requests must
    /// not be a queue of everyone's.
    pub async fn take(&self, actor: &ActorId, bytes: usize) -> Result<Share, Problem> {
        let units = u32::try_from(bytes.div_ceil(UNIT).clamp(1, self.units_of_actor)).unwrap_or(u32::MAX);
        let taken = async {
            let of_actor = self.part_of(actor).acquire_many_owned(units).await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_many_owned(units).await.ok()?;
            Some(Share { of_actor, of_all })
        };
        // Apart, because almost always there is room at once, and then there is no need for a timer.
        match tokio::time::timeout(SHARE_DEADLINE, taken).await {
            Ok(Some(share)) => Ok(share),
            _ => Err(exhausted()),
        }
    }

    fn part_of(&self, actor: &ActorId) -> Arc<Semaphore> {
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = actors.get(actor).and_then(Weak::upgrade) {
            return part;
        }
        actors.retain(|_, part| part.strong_count() > 0);
        let part = Arc::new(Semaphore::new(self.units_of_actor));
        actors.insert(actor.clone(), Arc::downgrade(&part));
        part
    }
}

impl Share {
    /// Gives back what turned out not to be needed.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.of_all.num_permits().saturating_sub(bytes.div_ceil(UNIT).max(1));
        drop(self.of_actor.split(surplus));
        drop(self.of_all.split(surplus));
    }
}

fn exhausted() -> Problem {
    let detail = format!(
        "Too many bytes of requests and answers are under way: at most {} MiB for one actor and {} MiB in all. Finish \
         some of yours, then try again.",
        ACTOR_BYTES_HELD_MAX >> 20,
        BYTES_HELD_MAX >> 20
    );
    Problem::new(Code::Unavailable, detail).retry_after(SHARE_DEADLINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(name: &str) -> ActorId {
        name.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_actor_cannot_hold_what_is_for_the_others() {
        let budget = Budget::new(64 * UNIT, 16 * UNIT);
        let held = budget.take(&actor("ana"), 16 * UNIT).await.unwrap();
        let refused = budget.take(&actor("ana"), 1).await.unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
        let other = budget.take(&actor("ben"), 16 * UNIT).await.unwrap();
        drop(held);
        drop((budget.take(&actor("ana"), UNIT).await.unwrap(), other));
        assert_eq!(budget.all.available_permits(), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn all_together_cannot_hold_more_than_there_is() {
        let budget = Budget::new(32 * UNIT, 16 * UNIT);
        let held = [budget.take(&actor("ana"), 16 * UNIT).await, budget.take(&actor("ben"), 16 * UNIT).await];
        assert_eq!(budget.take(&actor("cleo"), 1).await.unwrap_err().code, Code::Unavailable);
        drop(held);
        assert!(budget.take(&actor("cleo"), 1).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_needed_is_given_back_and_nobody_is_remembered_for_ever() {
        let budget = Budget::new(64 * UNIT, 16 * UNIT);
        let mut share = budget.take(&actor("ana"), 16 * UNIT).await.unwrap();
        share.shrink_to(3 * UNIT);
        assert_eq!(budget.all.available_permits(), 61);
        drop(budget.take(&actor("ana"), 13 * UNIT).await.unwrap());
        drop(share);
        drop(budget.take(&actor("ben"), 1).await.unwrap());
        drop(budget.take(&actor("cleo"), 1).await.unwrap());
        assert_eq!(budget.actors.lock().unwrap().len(), 1);
    }
}
