//! Whatever people do within the rules, its evidence holds.

use std::collections::BTreeMap;

use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::sample::Ledger;
use pilot_evidence::sample::days::attempt;
use pilot_evidence::verify::{Conclusion, verify};
use pilot_testing::Dice;

use crate::bundle::verdicts::{faults, trust};

const DAYS: u64 = 12;
const ATTEMPTS: usize = 700;

#[test]
fn the_evidence_of_every_day_within_the_rules_holds_with_and_without_its_content() {
    let first = u64::from(std::process::id()) << 16;
    println!("seeds {first} to {}", first + DAYS - 1);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for seed in first..first + DAYS {
        let (mut ledger, mut dice) = (Ledger::default(), Dice::new(seed));
        for _ in 0..ATTEMPTS {
            attempt(&mut ledger, &mut |end| dice.below(end));
        }
        for item in ledger.items.values() {
            *seen.entry(item.state.to_string()).or_default() += 1;
        }
        let middle = dice.below(ledger.entries.len()) as u64;
        for (from, to) in [(0, ledger.size()), (middle, ledger.size()), (0, middle)] {
            let bundle = ledger.period_bundle(from, to);
            let verdict = verify(&bundle, &trust());
            assert_eq!(faults(&verdict), "", "seed {seed}, {from} to {to}");
            assert!(verdict.items.iter().all(|item| item.replayed), "seed {seed}, {from} to {to}");
            assert_eq!(verdict.verdict, Conclusion::Holds, "seed {seed}, {from} to {to}");
            let (smaller, left_out) = redact(&bundle, &Redaction::All).unwrap();
            let verdict = verify(&smaller, &trust());
            assert_eq!(faults(&verdict), "", "seed {seed}, {from} to {to}, without content");
            let expected = if left_out.is_empty() { Conclusion::Holds } else { Conclusion::HoldsAsFarAsChecked };
            assert_eq!(verdict.verdict, expected, "seed {seed}, {from} to {to}, without content");
        }
    }
    assert!(seen.len() > 5, "too few states were reached: {seen:?}");
}
