//! Buckets in a table of fixed size. A key can be in one of eight places. If all are taken, the bucket that is closest
//! to full is dropped: of all eight, forgetting it gives away the least. An address that floods is kept longest.

use std::sync::{Mutex, PoisonError};

const WAYS: usize = 8;

#[derive(Clone, Copy, Default)]
struct Bucket {
    key: u64,
    /// In microseconds; a bucket whose time has passed is as good as none.
    whole_at: u64,
}

pub(super) struct Table {
    sets: Vec<Mutex<[Bucket; WAYS]>>,
}

impl Table {
    /// Every place is allocated now; none is added later.
    pub(super) fn new(places: usize) -> Table {
        Table { sets: (0..(places / WAYS).max(1)).map(|_| Mutex::default()).collect() }
    }

    /// Takes one request's worth out of a bucket. Both results say how many microseconds until it is full again; `Err`
    /// means that it had too little, and nothing was taken.
    pub(super) fn take(&self, key: u64, now: u64, interval: u64, burst: u64) -> Result<u64, u64> {
        let index = key % self.sets.len() as u64;
        let Some(set) = usize::try_from(index).ok().and_then(|index| self.sets.get(index)) else { return Ok(interval) };
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        let known = set.iter().position(|bucket| bucket.key == key);
        let place = known.or_else(|| (0..WAYS).min_by_key(|place| set.get(*place).map(|bucket| bucket.whole_at)));
        let Some(bucket) = place.and_then(|place| set.get_mut(place)) else { return Ok(interval) };
        if bucket.key != key {
            *bucket = Bucket { key, whole_at: 0 };
        }
        let owed = bucket.whole_at.saturating_sub(now);
        if owed + interval > burst {
            return Err(owed);
        }
        bucket.whole_at = now + owed + interval;
        Ok(owed + interval)
    }

    /// How many microseconds until a bucket is full again. Takes nothing.
    pub(super) fn owed(&self, key: u64, now: u64) -> u64 {
        let index = usize::try_from(key % self.sets.len() as u64).unwrap_or(0);
        let Some(set) = self.sets.get(index) else { return 0 };
        let set = set.lock().unwrap_or_else(PoisonError::into_inner);
        set.iter().find(|bucket| bucket.key == key).map_or(0, |bucket| bucket.whole_at.saturating_sub(now))
    }

    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.sets.len() * WAYS
    }

    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        let used =
            |set: &Mutex<[Bucket; WAYS]>| set.lock().unwrap().iter().filter(|bucket| bucket.whole_at > 0).count();
        self.sets.iter().map(used).sum()
    }
}
