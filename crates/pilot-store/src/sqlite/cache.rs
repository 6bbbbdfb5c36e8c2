//! Items that were written lately, so that the next write to one need not read it again.

use std::collections::HashMap;
use std::sync::Arc;

use pilot_core::item::ItemId;

/// A payload has at most 64 KiB, so two generations hold at most 64 MiB, and in practice far less.
const GENERATION_MAX: usize = 512;

/// Two generations: what is used moves to the young one, and what was not used for a whole generation is forgotten.
pub(super) struct Cache<T> {
    young: HashMap<ItemId, Arc<T>>,
    old: HashMap<ItemId, Arc<T>>,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Cache { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<T> Cache<T> {
    pub(super) fn get(&self, id: &ItemId) -> Option<&Arc<T>> {
        self.young.get(id).or_else(|| self.old.get(id))
    }

    pub(super) fn insert(&mut self, id: ItemId, value: Arc<T>) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&id);
        self.young.insert(id, value);
    }

    pub(super) fn extend(&mut self, values: HashMap<ItemId, Arc<T>>) {
        for (id, value) in values {
            self.insert(id, value);
        }
    }
}
