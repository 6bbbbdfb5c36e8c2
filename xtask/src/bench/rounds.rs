//! The rounds of one measurement: their median, and how far apart they are.

use super::report::{Figure, Target};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rounds(Vec<f64>);

impl Rounds {
    pub(super) fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(super) fn median(&self) -> f64 {
        let sorted = self.sorted();
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn least(&self) -> f64 {
        self.sorted().first().copied().unwrap_or(f64::NAN)
    }

    /// The largest minus the smallest, divided by the median.
    pub(super) fn spread(&self) -> f64 {
        let most = self.sorted().last().copied().unwrap_or(f64::NAN);
        (most - self.least()) / self.median()
    }

    /// Round by round, so that whatever else the machine did in one of them affects both sides.
    pub(super) fn over(&self, other: &Rounds) -> Rounds {
        self.with(other, |value, other| value / other)
    }

    pub(super) fn minus(&self, other: &Rounds) -> Rounds {
        self.with(other, |value, other| value - other)
    }

    pub(super) fn figure(&self, what: impl Into<String>, unit: &'static str, target: Target) -> Figure {
        Figure { what: what.into(), value: self.median(), unit, target, spread: self.spread() }
    }

    fn with(&self, other: &Rounds, combine: fn(f64, f64) -> f64) -> Rounds {
        self.0.iter().zip(&other.0).map(|(value, other)| combine(*value, *other)).collect()
    }

    fn sorted(&self) -> Vec<f64> {
        let mut values = self.0.clone();
        values.sort_by(f64::total_cmp);
        values
    }
}

impl FromIterator<f64> for Rounds {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Rounds {
        Rounds(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_with_the_distance_between_the_extremes() {
        let rounds: Rounds = [30.0, 10.0, 20.0].into_iter().collect();
        let figure = rounds.figure("something", "ms", Target::AtMost(25.0));
        assert_eq!(format!("{} {} {}", figure.value, figure.spread, rounds.least()), "20 1 10");
        assert!(figure.target.is_met(figure.value));
    }

    #[test]
    fn rounds_are_compared_one_by_one() {
        let (large, small): (Rounds, Rounds) = ([2.0, 30.0].into_iter().collect(), [1.0, 10.0].into_iter().collect());
        assert_eq!(large.over(&small), [2.0, 3.0].into_iter().collect());
        assert_eq!(large.minus(&small), [1.0, 20.0].into_iter().collect());
    }
}
