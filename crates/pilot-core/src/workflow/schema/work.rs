//! What one check may cost, counted in steps. The count depends on nothing but the schema and the payload, so the
//! service and the verifier stop at the same place.

use std::mem;

#[derive(Debug)]
pub(super) struct Work {
    left: usize,
    /// What searches with patterns use, kept from one to the next.
    pub(super) search: Search,
}

/// The states of a pattern's program that a search is at.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) arrived: Vec<usize>,
    pub(super) open: Vec<usize>,
    /// In which round each state was last visited.
    visited: Vec<usize>,
    round: usize,
}

impl Work {
    pub(super) fn new(steps: usize) -> Work {
        Work { left: steps, search: Search::default() }
    }

    pub(super) fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }

    pub(super) fn spend_all(&mut self) {
        self.left = 0;
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.left
    }
}

impl Search {
    pub(super) fn begin(&mut self, states: usize) {
        self.arrived.clear();
        if self.visited.len() < states {
            self.visited.resize(states, 0);
        }
    }

    /// Goes on from where it has arrived, and forgets what was visited without touching all of it.
    pub(super) fn next_round(&mut self) {
        self.round += 1;
        self.open.clear();
        mem::swap(&mut self.open, &mut self.arrived);
    }

    pub(super) fn is_first_visit(&mut self, state: usize) -> bool {
        self.visited.get_mut(state).is_some_and(|last| mem::replace(last, self.round) != self.round)
    }
}
