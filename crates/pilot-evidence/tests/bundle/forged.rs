//! Ledgers that are signed and against the rules, with documents left out: whatever needs no content is still found.

use std::collections::{BTreeMap, BTreeSet};

use pilot_core::decide::Unasked;
use pilot_core::document::{ContentDigest, Document};
use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::sample::days::attempt;
use pilot_evidence::sample::forgeries::{CLEARED, DAY, Forgery, MINUTE, STARTED, forge, forgeries};
use pilot_evidence::sample::{Ledger, actor};
use pilot_evidence::verify::{Conclusion, Fault, Verdict, verify};
use pilot_testing::Dice;
use serde_json::json;

use crate::bundle::verdicts::{faults, trust};

/// The documents the bundle has, in order.
fn documents(ledger: &Ledger) -> Vec<ContentDigest> {
    ledger.documents.keys().cloned().collect()
}

fn without(bundle: &[u8], documents: impl IntoIterator<Item = ContentDigest>) -> Verdict {
    let (smaller, _) = redact(bundle, &Redaction::Documents(documents.into_iter().collect())).unwrap();
    verify(&smaller, &trust())
}

/// Which rules were broken, and where.
fn places(verdict: &Verdict) -> Vec<(&'static str, Option<u64>)> {
    verdict.faults.iter().map(|fault| (fault.rule, fault.entry)).collect()
}

#[test]
fn no_document_left_out_hides_what_breaks_a_rule_that_needs_no_content() {
    for (name, rule, Forgery { ledger, id }) in forgeries() {
        for bundle in [ledger.period_bundle(0, ledger.size()), ledger.item_bundle(&id)] {
            let full = verify(&bundle, &trust());
            let named: BTreeSet<_> = full.faults.iter().map(|fault| fault.rule).collect();
            assert!(named.contains(rule), "{name}: {}", faults(&full));
            let all = documents(&ledger);
            let each = all.iter().map(|one| vec![one.clone()]);
            for left_out in each.chain([all.clone()]) {
                let verdict = without(&bundle, left_out.clone());
                assert_eq!(places(&verdict), places(&full), "{name}, without {left_out:?}");
                assert_eq!(verdict.verdict, Conclusion::DoesNotHold, "{name}");
            }
        }
    }
}

#[test]
fn what_missing_content_decided_is_learned_once_and_held_to_from_then_on() {
    // Approved by one vote, so the risk was not high; then one vote does not suffice, so it was. No payload is both.
    let forgery = Forgery::new("low").all(&[("ben", "approve"), ("ben", "revoke_approval")]);
    let Forgery { ledger, .. } = forgery.forced(&actor("bea"), "approve", "submitted");
    let bundle = ledger.period_bundle(0, ledger.size());
    let verdict = without(&bundle, documents(&ledger));
    assert_eq!(verdict.verdict, Conclusion::DoesNotHold, "{}", verdict.to_text());
    // Either alone may have been.
    for (risk, to, holds) in [("low", "approved", true), ("low", "submitted", false), ("high", "submitted", true)] {
        let Forgery { ledger, .. } = Forgery::new(risk).forced(&actor("ben"), "approve", to);
        let bundle = ledger.period_bundle(0, ledger.size());
        assert_eq!(verify(&bundle, &trust()).holds, holds, "{risk} {to}");
        let verdict = without(&bundle, documents(&ledger));
        assert_eq!(verdict.verdict, Conclusion::HoldsAsFarAsChecked);
        assert!(verdict.unasked.iter().any(|open| open.question == Unasked::Quorum && open.entry == 4), "{risk} {to}");
    }
}

#[test]
fn inputs_that_were_left_out_chose_what_the_item_did() {
    let lost = Forgery::new("low").all(&STARTED).after(16 * MINUTE);
    let reconciled = |outcome: &str, to: &str| {
        let mut forgery = Forgery { ledger: Ledger::default(), id: lost.id.clone() };
        forgery.ledger.clone_from(&lost.ledger);
        forgery.ledger.expire(&forgery.id).unwrap();
        let inputs = json!({"outcome": outcome});
        forgery.with(Some(&actor("ben")), "reconcile", to, |entry, documents| {
            Forgery::commented(entry, documents);
            let inputs = Document::inputs(&inputs, &"8".repeat(32));
            documents.insert(inputs.digest.clone(), inputs.bytes);
            entry.inputs = Some(inputs.digest);
        })
    };
    for (outcome, to, with, without_inputs) in [
        ("succeeded", "succeeded", true, true),
        ("failed", "failed", true, true),
        ("failed", "succeeded", false, true),
        ("failed", "closed", false, false),
    ] {
        let Forgery { ledger, .. } = reconciled(outcome, to);
        let bundle = ledger.period_bundle(0, ledger.size());
        assert_eq!(verify(&bundle, &trust()).holds, with, "{outcome} {to}");
        let verdict = without(&bundle, documents(&ledger));
        assert_eq!(verdict.holds, without_inputs, "{outcome} {to}: {}", faults(&verdict));
    }
}

#[test]
fn a_window_nobody_knows_may_have_ended_any_time_until_the_longest_there_is() {
    for (days, with, without_inputs) in [(1, false, true), (21, true, true), (31, true, true)] {
        let Forgery { ledger, .. } =
            Forgery::new("low").all(&CLEARED).after(days * DAY).with(None, "timer", "expired", |_, _| {});
        let bundle = ledger.period_bundle(0, ledger.size());
        assert_eq!(verify(&bundle, &trust()).holds, with, "{days} days");
        let verdict = without(&bundle, documents(&ledger));
        assert_eq!(verdict.holds, without_inputs, "{days} days: {}", faults(&verdict));
        assert!(verdict.unasked.iter().any(|open| open.question == Unasked::Deadline), "{days} days");
    }
}

/// Whether a question that was not asked could have brought this fault to light.
fn explains(question: Unasked, fault: &Fault) -> bool {
    use Unasked::{Comment, Content, Deadline, Inputs, Payload, Quorum, Window};
    match fault.rule {
        "invalid_request" => [Content, Payload, Comment, Inputs].contains(&question),
        "quorum" => question == Quorum,
        // It led to where another vote count, another input or another deadline would have led it.
        "other_entry" => [Quorum, Inputs, Deadline].contains(&question),
        "outside_window" => question == Window,
        "state_conflict" => question == Deadline && fault.what.contains("deadline"),
        _ => false,
    }
}

const LEDGERS: u64 = 150;
const REDACTIONS: usize = 4;

/// Two ways round: what holds with its documents holds without them; and what does not, and seems to without them, has
/// the very question that would have shown it among those that could not be asked.
#[test]
fn leaving_documents_out_never_hides_a_fault_without_naming_what_could_not_be_asked() {
    // The same seeds every time, so that what is counted below does not depend on luck.
    let first = 0;
    println!("seeds {first} to {}", first + LEDGERS - 1);
    let (mut refused, mut explained, mut legal) = (BTreeMap::new(), 0, 0);
    for seed in first..first + LEDGERS {
        let (mut ledger, mut dice) = (Ledger::default(), Dice::new(seed));
        while ledger.items.is_empty() || dice.below(40) > 0 {
            attempt(&mut ledger, &mut |end| dice.below(end));
        }
        // Some are left legal: a forged move seldom is one that could have been.
        if seed % 10 > 0 {
            forge(&mut ledger, &mut |end| dice.below(end));
        }
        let bundle = ledger.period_bundle(0, ledger.size());
        let full = verify(&bundle, &trust());
        let all = documents(&ledger);
        let named = full.faults.first();
        for round in 0..REDACTIONS {
            let left_out: Vec<_> = all.iter().filter(|_| round == 0 || dice.below(2) == 0).cloned().collect();
            let count = left_out.len();
            let verdict = without(&bundle, left_out);
            let context =
                || format!("seed {seed}, {count} of {} left out\n{}\n{}", all.len(), faults(&full), verdict.to_text());
            match (named, verdict.faults.is_empty()) {
                (None, is_legal) => {
                    assert!(is_legal, "a legal ledger is refused: {}", context());
                    legal += 1;
                }
                (Some(fault), false) => *refused.entry(fault.rule).or_insert(0) += 1,
                (Some(fault), true) => {
                    let open = |open: &pilot_evidence::verify::Open| {
                        Some(open.entry) == fault.entry && explains(open.question, fault)
                    };
                    assert!(verdict.unasked.iter().any(open), "hidden: {}", context());
                    assert_eq!(verdict.verdict, Conclusion::HoldsAsFarAsChecked, "{}", context());
                    explained += 1;
                }
            }
        }
    }
    println!("refused {refused:?}, explained {explained}, legal {legal}");
    assert!(refused.len() > 4 && explained > 0 && legal > 0, "too little was tried: {refused:?} {explained} {legal}");
}
