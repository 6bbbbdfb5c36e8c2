//! Limits how many bundles are made at a time. Each takes a thread, a reader of the store and some memory.

use std::sync::{Arc, Mutex, PoisonError};

use pilot_core::actor::ActorId;
use pilot_core::limits::{
    ATTESTATIONS_MAX, ATTESTATIONS_PER_ACTOR_MAX, EXPORTS_MAX, EXPORTS_PER_ACTOR_MAX, PERMITS_MAX,
    PERMITS_PER_ACTOR_MAX,
};

/// The actors whose bundles are being made, and how many there may be.
pub struct Exports {
    under_way: Mutex<Vec<ActorId>>,
    max: usize,
    per_actor_max: usize,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Busy {
    #[error(
        "You are already downloading as many of these as an actor can: at most {0} at a time. Wait until one has \
         arrived, then try again."
    )]
    ForActor(usize),
    #[error("The service makes at most {0} of these at a time. Try again in a moment.")]
    ForAll(usize),
}

/// One bundle being made. Dropping this makes room for the next.
pub struct Place {
    exports: Arc<Exports>,
    actor_id: ActorId,
}

impl Exports {
    pub fn of_evidence() -> Exports {
        Exports { under_way: Mutex::default(), max: EXPORTS_MAX, per_actor_max: EXPORTS_PER_ACTOR_MAX }
    }

    pub fn of_permits() -> Exports {
        Exports { under_way: Mutex::default(), max: PERMITS_MAX, per_actor_max: PERMITS_PER_ACTOR_MAX }
    }

    pub fn of_attestations() -> Exports {
        Exports { under_way: Mutex::default(), max: ATTESTATIONS_MAX, per_actor_max: ATTESTATIONS_PER_ACTOR_MAX }
    }

    pub fn begin(self: &Arc<Self>, actor_id: &ActorId) -> Result<Place, Busy> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if under_way.iter().filter(|other| *other == actor_id).count() >= self.per_actor_max {
            return Err(Busy::ForActor(self.per_actor_max));
        }
        if under_way.len() >= self.max {
            return Err(Busy::ForAll(self.max));
        }
        under_way.push(actor_id.clone());
        Ok(Place { exports: Arc::clone(self), actor_id: actor_id.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut under_way = self.exports.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = under_way.iter().position(|other| *other == self.actor_id) {
            under_way.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attestations_have_places_of_their_own_and_an_actor_has_four_at_a_time() {
        let exports = Arc::new(Exports::of_attestations());
        let actor = |name: &str| name.parse::<ActorId>().unwrap();
        let mut held: Vec<_> = (0..4).map(|_| exports.begin(&actor("ana")).unwrap()).collect();
        assert_eq!(exports.begin(&actor("ana")).err(), Some(Busy::ForActor(4)));
        for name in ["ben", "eva", "sam"] {
            held.extend((0..4).map(|_| exports.begin(&actor(name)).unwrap()));
        }
        assert_eq!(exports.begin(&actor("ada")).err(), Some(Busy::ForAll(16)));
        held.pop();
        assert!(exports.begin(&actor("ada")).is_ok());
    }

    #[test]
    fn an_actor_has_one_bundle_at_a_time_and_all_have_two() {
        let exports = Arc::new(Exports::of_evidence());
        let [ada, amy, abe] = ["ada", "amy", "abe"].map(|name| name.parse::<ActorId>().unwrap());
        let first = exports.begin(&ada).unwrap();
        assert_eq!(exports.begin(&ada).err(), Some(Busy::ForActor(EXPORTS_PER_ACTOR_MAX)));
        let second = exports.begin(&amy).unwrap();
        assert_eq!(exports.begin(&abe).err(), Some(Busy::ForAll(EXPORTS_MAX)));
        drop(first);
        let third = exports.begin(&abe).unwrap();
        assert_eq!(exports.begin(&ada).err(), Some(Busy::ForAll(EXPORTS_MAX)));
        drop((second, third));
        assert!(exports.begin(&ada).is_ok() && exports.begin(&amy).is_ok(), "each place is given back");
    }

    #[test]
    fn permits_have_places_of_their_own_and_an_actor_has_four_at_a_time() {
        let (exports, permits) = (Arc::new(Exports::of_evidence()), Arc::new(Exports::of_permits()));
        let [eli, eva, ela] = ["eli", "eva", "ela"].map(|name| name.parse::<ActorId>().unwrap());
        let bundles = [exports.begin(&eli).unwrap(), exports.begin(&eva).unwrap()];
        let take =
            |actor: &ActorId, count: usize| (0..count).map(|_| permits.begin(actor).unwrap()).collect::<Vec<_>>();
        let of_eli = take(&eli, PERMITS_PER_ACTOR_MAX);
        assert_eq!(permits.begin(&eli).err(), Some(Busy::ForActor(PERMITS_PER_ACTOR_MAX)));
        let of_eva = take(&eva, PERMITS_PER_ACTOR_MAX);
        assert_eq!(permits.begin(&ela).err(), Some(Busy::ForAll(PERMITS_MAX)));
        drop((bundles, of_eli));
        assert!(permits.begin(&ela).is_ok());
        drop(of_eva);
    }
}
