//! Numbers without order that are the same for the same seed.

pub(super) struct Dice(u64);

impl Dice {
    /// The seed is printed, and shown when a test fails.
    pub(super) fn new(seed: u64) -> Dice {
        println!("seed {seed}");
        Dice(seed)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap() % bound
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub(super) fn is_one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}
