//! Several kinds of moves, measured in turns: whatever else the machine does affects all of them equally.

use super::moves::{Moves, Round, print_heading};
use super::page::number;
use super::quiet;
use super::report::Table;
use super::rounds::Rounds;
use crate::step::Failure;

const ROUNDS: usize = 5;

/// The rounds of each kind.
pub(super) struct Turns(Vec<(&'static str, Vec<Moves>)>);

impl Turns {
    /// Prints every round.
    pub(super) fn take(kinds: &[(&'static str, Round<'_>)]) -> Result<Turns, Failure> {
        print_heading();
        let mut all: Vec<_> = kinds.iter().map(|(name, _)| (*name, Vec::new())).collect();
        for round in 1..=ROUNDS {
            for ((name, measure), (_, rounds)) in kinds.iter().zip(&mut all) {
                let moves = quiet::undisturbed(measure)?;
                moves.print(name, &round.to_string());
                rounds.push(moves);
            }
        }
        Ok(Turns(all))
    }

    /// One figure of one kind; no rounds if there is no such kind.
    pub(super) fn rounds(&self, wanted: &str, figure: fn(&Moves) -> f64) -> Rounds {
        let found = self.0.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, rounds)| rounds.iter().map(figure).collect()).unwrap_or_default()
    }

    pub(super) fn per_second(&self, wanted: &str) -> Rounds {
        self.rounds(wanted, |moves| moves.per_second)
    }

    /// How many rounds each kind has.
    pub(super) fn count(&self) -> usize {
        self.0.first().map_or(0, |(_, rounds)| rounds.len())
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }

    /// The median of each figure separately.
    pub(super) fn table(&self) -> Table {
        let row = |name: &'static str| {
            let median = |figure| number(self.rounds(name, figure).median());
            vec![
                name.to_owned(),
                median(|moves| moves.per_second),
                median(|moves| moves.p50_micros),
                median(|moves| moves.p99_micros),
                median(|moves| moves.cpu_micros),
                number(self.per_second(name).spread() * 100.0) + " %",
            ]
        };
        let columns = vec!["", "transitions/s", "p50 µs", "p99 µs", "CPU µs per transition", "spread"];
        Table { columns, rows: self.names().into_iter().map(row).collect() }
    }

    pub(super) fn bars(&self, wanted: &[&str]) -> Vec<(String, f64)> {
        let names = self.names().into_iter().filter(|name| wanted.contains(name));
        names.map(|name| (name.to_owned(), self.per_second(name).median())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_take_turns_and_their_medians_are_shown() {
        let order = std::cell::RefCell::new(String::new());
        let moves = |name: char, per_second: f64| {
            order.borrow_mut().push(name);
            Ok(Moves { per_second, p50_micros: 10.0, p99_micros: 200.0, cpu_micros: f64::NAN })
        };
        let turns = Turns::take(&[("pilot", &|| moves('p', 1_500.0)), ("raw", &|| moves('r', 3_000.0))]).unwrap();
        assert_eq!(*order.borrow(), "pr".repeat(ROUNDS));
        assert_eq!(turns.table().rows.first().unwrap().join(" | "), "pilot | 1,500 | 10.0 | 200 | – | 0.00 %");
        assert_eq!(turns.per_second("pilot").over(&turns.per_second("raw")).median().to_string(), "0.5");
        assert_eq!(turns.bars(&["raw"]), [("raw".to_owned(), 3_000.0)]);
    }
}
