//! Chance with a printed seed.

pub(super) struct Dice(pilot_testing::Dice);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        println!("seed {seed}");
        Dice(pilot_testing::Dice::new(seed))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        *self.0.pick(choices)
    }

    pub(super) fn is_one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}
