//! Recently written items, so that the next write to one does not have to read it again.

use std::collections::HashMap;

use crate::row::ItemKey;

/// A payload is at most 64 KiB, so two generations hold at most 64 MiB, and in practice far less.
const GENERATION_MAX: usize = 512;

/// Two generations: an item that is used moves to the young one; an item that was not used for a whole generation is
/// dropped.
pub(super) struct Cache<T> {
    young: HashMap<ItemKey, Box<T>>,
    old: HashMap<ItemKey, Box<T>>,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Cache { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<T> Cache<T> {
    /// Removes the item from the cache; the caller puts back the changed one.
    pub(super) fn take(&mut self, key: ItemKey) -> Option<Box<T>> {
        self.young.remove(&key).or_else(|| self.old.remove(&key))
    }

    pub(super) fn put(&mut self, key: ItemKey, value: Box<T>) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    /// After a failed group: the changes it made here never happened.
    pub(super) fn clear(&mut self) {
        *self = Cache::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_not_is_forgotten() {
        let id = |number: usize| (number as u128).to_be_bytes();
        let mut cache = Cache::default();
        for number in 0..=3 * GENERATION_MAX {
            cache.put(id(number), Box::new(number));
            let always = cache.take(id(0)).unwrap();
            cache.put(id(0), always);
        }
        assert_eq!(cache.take(id(0)).as_deref(), Some(&0));
        assert_eq!(cache.take(id(1)), None);
        assert_eq!(cache.take(id(3 * GENERATION_MAX)).as_deref(), Some(&(3 * GENERATION_MAX)));
        assert!(cache.young.len() + cache.old.len() <= 2 * GENERATION_MAX);
        cache.clear();
        assert_eq!(cache.take(id(0)), None);
    }
}
