//! Chance that can be repeated: a seed gives the same throws everywhere.

use std::fmt::Debug;
use std::hash::{BuildHasher as _, RandomState};

/// SplitMix64: neighbouring seeds give unlike throws.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to `end`, which is not among them.
    pub fn below<N>(&mut self, end: N) -> N
    where
        N: TryFrom<u64, Error: Debug> + TryInto<u64, Error: Debug>,
    {
        let end: u64 = end.try_into().unwrap();
        N::try_from(self.throw() % end).unwrap()
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100_u64) < percent
    }
}

/// Another one in each run. The test prints it.
pub fn fresh_seed() -> u64 {
    // Not the number of the process: in a container it is the same each time. Room for a million seeds after it.
    RandomState::new().hash_one(()) >> 24 << 20
}

/// What someone who runs the tests asks for: `PILOT_TEST_STORE`.
#[expect(clippy::disallowed_methods, reason = "a seed or a long run is asked for from outside")]
pub fn asked_for(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The same, as a number: `PILOT_SEED`, `PILOT_LONG`.
pub fn asked(name: &str) -> Option<u64> {
    let text = asked_for(name)?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}
