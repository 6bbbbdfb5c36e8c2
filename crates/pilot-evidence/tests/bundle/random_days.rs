//! Whatever people do within the rules, its evidence holds.

use std::collections::BTreeMap;

use pilot_core::item::Item;
use pilot_core::workflow::builtin::builtin;
use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::sample::{CAST, Ledger, actor, emergency_payload, payload};
use pilot_evidence::verify::{Conclusion, verify};
use pilot_testing::Dice;
use serde_json::{Value, json};

use crate::bundle::verdicts::{faults, trust};

const DAYS: u64 = 12;
const ATTEMPTS: usize = 700;

fn is_open(item: &Item) -> bool {
    let definitions = builtin();
    let definition = definitions.iter().find(|known| *known.digest() == item.workflow.digest).unwrap();
    !item.is_terminal(definition)
}

/// One attempt of someone to do something; most are refused.
pub fn attempt(ledger: &mut Ledger, dice: &mut Dice) {
    let who = actor(CAST[dice.below(CAST.len())].0);
    let risk = ["low", "medium", "high"][dice.below(3)];
    let ids: Vec<_> = ledger.items.keys().rev().take(6).cloned().collect();
    match dice.below(40) {
        0 | 1 => drop(ledger.create("controlled-operation", &who, "An operation", payload(risk))),
        2 | 3 => {
            // The sample does not count; here nobody opens a second one.
            let emergency = |item: &&Item| *item.workflow.name == *"emergency-operation" && is_open(item);
            if !ledger.items.values().filter(emergency).any(|item| item.created_by == who) {
                drop(ledger.create("emergency-operation", &who, "An emergency", emergency_payload()));
            }
        }
        4 => ledger.pass(3_600 * (1 + dice.below(30))),
        5 => ledger.start(Some(&pilot_evidence::sample::role_map(&CAST))),
        choice => {
            let Some(id) = ids.get(dice.below(ids.len().max(1))).cloned() else { return };
            match choice {
                6 => drop(ledger.expire(&id)),
                7 => drop(ledger.edit(&id, &who, "A better title", json!({"risk": risk}))),
                8 => ledger.remark(&id, &who, "A remark"),
                _ => act(ledger, dice, &id, &who),
            }
        }
    }
}

fn act(ledger: &mut Ledger, dice: &mut Dice, id: &pilot_core::item::ItemId, who: &pilot_core::actor::Actor) {
    let item = &ledger.items[id];
    let definitions = builtin();
    let definition = definitions.iter().find(|known| *known.digest() == item.workflow.digest).unwrap();
    let actions = pilot_core::decide::actions_for(definition, item, who, ledger.now);
    if actions.is_empty() {
        return;
    }
    let action = actions[dice.below(actions.len())].to_string();
    // Most ways lead to an early end; without this nobody would come far.
    let ends = ["withdraw", "reject", "refuse", "revoke", "return", "condemn"].contains(&action.as_str());
    if ends && dice.below(12) > 0 {
        return;
    }
    let outcome = ["succeeded", "failed"][dice.below(2)];
    let inputs = match action.as_str() {
        "clear" => json!({"not_after": ledger.now.plus(std::time::Duration::from_hours(3))}),
        "reconcile" => json!({"outcome": outcome}),
        "succeed" => json!({"result": "done"}),
        _ => Value::Null,
    };
    drop(ledger.act(id, who, &action, "A reason", inputs));
}

#[test]
fn the_evidence_of_every_day_within_the_rules_holds_with_and_without_its_content() {
    let first = u64::from(std::process::id()) << 16;
    println!("seeds {first} to {}", first + DAYS - 1);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for seed in first..first + DAYS {
        let (mut ledger, mut dice) = (Ledger::default(), Dice::new(seed));
        for _ in 0..ATTEMPTS {
            attempt(&mut ledger, &mut dice);
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
