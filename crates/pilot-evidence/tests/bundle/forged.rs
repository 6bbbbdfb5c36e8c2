//! Ledgers that are signed and against the rules, with documents left out: whatever needs no content is still found.

use std::collections::{BTreeMap, BTreeSet};

use pilot_core::actor::Actor;
use pilot_core::decide::Unasked;
use pilot_core::document::{ContentDigest, Document};
use pilot_core::entry::Entry;
use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::workflow::builtin::builtin;
use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::sample::{CAST, Ledger, actor, as_role, emergency_payload, payload, role_map};
use pilot_evidence::verify::{Conclusion, Fault, Verdict, verify};
use pilot_testing::Dice;
use serde_json::{Value, json};

use crate::bundle::random_days::attempt;
use crate::bundle::verdicts::{faults, trust};

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// An operation, and what was forced upon its history at the end.
struct Forgery {
    ledger: Ledger,
    id: ItemId,
}

impl Forgery {
    fn new(risk: &str) -> Forgery {
        let mut ledger = Ledger::default();
        let cast = [&CAST[..], &[("eva", Role::Executor)]].concat();
        ledger.start(Some(&role_map(&cast)));
        let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload(risk)).unwrap();
        let mut forgery = Forgery { ledger, id };
        forgery.does("ana", "submit");
        forgery
    }

    fn emergency() -> Forgery {
        let mut ledger = Ledger::default();
        let id = ledger.create("emergency-operation", &actor("ana"), "Stop it", emergency_payload()).unwrap();
        let forgery = Forgery { ledger, id };
        forgery.all(&[("ana", "submit"), ("sam", "clear"), ("eve", "start"), ("eve", "succeed")])
    }

    fn does(&mut self, who: &str, action: &str) {
        let has_comment = ["revoke_approval", "hold", "release"].contains(&action);
        let comment = if has_comment { "A reason" } else { "" };
        let is_emergency = *self.ledger.items[&self.id].workflow.name == *"emergency-operation";
        let length = if is_emergency { 3 * HOUR } else { 20 * DAY };
        let not_after = self.ledger.now.plus(std::time::Duration::from_secs(length));
        let inputs = if action == "clear" { json!({"not_after": not_after}) } else { Value::Null };
        self.ledger.act(&self.id, &actor(who), action, comment, inputs).unwrap();
    }

    fn all(mut self, steps: &[(&str, &str)]) -> Forgery {
        for (who, action) in steps {
            self.does(who, action);
        }
        self
    }

    fn after(mut self, seconds: u64) -> Forgery {
        self.ledger.pass(seconds);
        self
    }

    /// An entry nobody decided on.
    fn forced(self, who: &Actor, action: &str, to: &str) -> Forgery {
        self.with(Some(who), action, to, |_, _| {})
    }

    fn with(
        mut self,
        who: Option<&Actor>,
        action: &str,
        to: &str,
        change: impl FnOnce(&mut Entry, &mut BTreeMap<ContentDigest, Vec<u8>>),
    ) -> Forgery {
        let mut documents = std::mem::take(&mut self.ledger.documents);
        self.ledger.force(&self.id, who, |entry| {
            (entry.action, entry.to) = (Some(action.into()), Some(to.into()));
            change(entry, &mut documents);
        });
        self.ledger.documents = documents;
        self
    }

    fn commented(entry: &mut Entry, documents: &mut BTreeMap<ContentDigest, Vec<u8>>) {
        let comment = Document::comment("A reason", &format!("{:032x}", entry.index + 1_000));
        documents.insert(comment.digest.clone(), comment.bytes);
        entry.comment = Some(comment.digest);
    }
}

const CLEARED: [(&str, &str); 2] = [("ben", "approve"), ("sam", "clear")];
const STARTED: [(&str, &str); 3] = [("ben", "approve"), ("sam", "clear"), ("eve", "start")];

/// Against rules that need no content, each with the rule that must be named.
fn forgeries() -> Vec<(&'static str, &'static str, Forgery)> {
    let [ben, bea, eve, sam] = ["ben", "bea", "eve", "sam"].map(actor);
    let failed = [("eve", "fail"), ("eve", "retry"), ("eve", "fail"), ("eve", "retry"), ("eve", "fail")];
    vec![
        ("role", "role_forbidden", Forgery::new("low").forced(&eve, "approve", "approved")),
        ("two roles", "separation_of_duties", {
            let mut forgery = Forgery::new("low");
            forgery.ledger.start(Some(&role_map(&[("ana", Role::Approver)])));
            forgery.forced(&as_role("ana", Role::Approver), "approve", "approved")
        }),
        ("owner", "not_owner", Forgery::new("low").forced(&actor("ida"), "withdraw", "withdrawn")),
        (
            "second vote",
            "already_decided",
            Forgery::new("high").all(&[("ben", "approve")]).forced(&ben, "approve", "approved"),
        ),
        ("no vote of one's own", "not_owner", {
            let forgery = Forgery::new("low").all(&[("ben", "approve")]);
            forgery.with(Some(&bea), "revoke_approval", "submitted", Forgery::commented)
        }),
        ("another's lease", "not_owner", {
            Forgery::new("low").all(&STARTED).forced(&as_role("eva", Role::Executor), "succeed", "succeeded")
        }),
        (
            "lost lease",
            "state_conflict",
            Forgery::new("low").all(&STARTED).after(16 * MINUTE).forced(&eve, "succeed", "succeeded"),
        ),
        (
            "lost lease renewed",
            "state_conflict",
            Forgery::new("low").all(&STARTED).after(16 * MINUTE).forced(&eve, "heartbeat", "executing"),
        ),
        ("late approval", "state_conflict", Forgery::new("low").after(73 * HOUR).forced(&ben, "approve", "approved")),
        ("late clearance", "state_conflict", {
            let forgery = Forgery::new("low").all(&[("ben", "approve")]).after(25 * HOUR);
            let not_after = forgery.ledger.now.plus(std::time::Duration::from_secs(DAY));
            forgery.with(Some(&sam), "clear", "cleared", |entry, documents| {
                let inputs = Document::inputs(&json!({"not_after": not_after}), &"9".repeat(32));
                documents.insert(inputs.digest.clone(), inputs.bytes);
                entry.inputs = Some(inputs.digest);
            })
        }),
        (
            "a fourth attempt",
            "state_conflict",
            Forgery::new("low").all(&STARTED).all(&failed).forced(&eve, "retry", "executing"),
        ),
        ("held", "item_held", Forgery::new("low").all(&[("ben", "hold")]).forced(&ben, "approve", "approved")),
        (
            "not held",
            "state_conflict",
            Forgery::new("low").with(Some(&sam), "release", "submitted", Forgery::commented),
        ),
        ("held twice", "state_conflict", {
            Forgery::new("low").all(&[("ben", "hold")]).with(Some(&sam), "hold", "submitted", Forgery::commented)
        }),
        (
            "a step left out",
            "state_conflict",
            Forgery::new("low").all(&[("ben", "approve")]).forced(&eve, "start", "executing"),
        ),
        ("an end that was left", "state_conflict", {
            Forgery::new("low").all(&[("ana", "withdraw")]).forced(&ben, "approve", "approved")
        }),
        ("no such action", "unknown_action", Forgery::new("low").forced(&ben, "bless", "approved")),
        ("another end", "other_entry", Forgery::new("low").all(&CLEARED).forced(&eve, "start", "succeeded")),
        ("no comment", "invalid_request", Forgery::new("low").forced(&ben, "reject", "rejected")),
        (
            "no inputs",
            "invalid_request",
            Forgery::new("low").all(&[("ben", "approve")]).forced(&sam, "clear", "cleared"),
        ),
        ("no window lasts so long", "state_conflict", {
            Forgery::new("low").all(&CLEARED).after(31 * DAY).forced(&eve, "start", "executing")
        }),
        ("nor for a retry", "outside_window", {
            let forgery = Forgery::new("low").all(&STARTED).all(&[("eve", "fail")]).after(31 * DAY);
            forgery.forced(&eve, "retry", "executing")
        }),
        (
            "a timer too early",
            "state_conflict",
            Forgery::new("low").after(HOUR).with(None, "timer", "expired", |_, _| {}),
        ),
        ("a lease that was not lost", "state_conflict", {
            Forgery::new("low").all(&STARTED).with(None, "timer", "indeterminate", |_, _| {})
        }),
        ("a timer to another end", "other_entry", {
            Forgery::new("low").all(&STARTED).after(HOUR).with(None, "timer", "expired", |_, _| {})
        }),
        ("half a quorum", "quorum", {
            Forgery::emergency().with(Some(&ben), "ratify", "ratified", Forgery::commented)
        }),
    ]
}

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

/// Some entry about some item, by someone, which may by chance be legal.
fn forge(ledger: &mut Ledger, dice: &mut Dice) {
    let ids: Vec<_> = ledger.items.keys().cloned().collect();
    let id = ids[dice.below(ids.len())].clone();
    let item = ledger.items[&id].clone();
    let definitions = builtin();
    let definition = definitions.iter().find(|known| *known.digest() == item.workflow.digest).unwrap();
    let rules = definition.rules();
    let here: Vec<_> = rules.transitions.iter().filter(|rule| rule.leads_from(&item.state)).collect();
    // Mostly something that would be possible here, so that only one thing is wrong with it.
    let (action, to) = if here.is_empty() || dice.below(4) == 0 {
        let rule = &rules.transitions[dice.below(rules.transitions.len())];
        (rule.action.clone(), rule.to.clone())
    } else {
        let rule = here[dice.below(here.len())];
        (rule.action.clone(), rule.to.clone())
    };
    let to = to.filter(|_| dice.below(8) > 0).unwrap_or_else(|| item.state.clone());
    let (name, role) = CAST[dice.below(CAST.len())];
    let who = match dice.below(12) {
        0 => None,
        1 => Some(as_role(name, Role::Approver)),
        _ => Some(as_role(name, role)),
    };
    ledger.pass([0, 0, 10 * MINUTE, HOUR, 30 * HOUR, 40 * DAY][dice.below(6)]);
    let (comment, text) = (dice.below(3) > 0, ["A reason", "A reason", " "][dice.below(3)]);
    let soon = ledger.now.plus(std::time::Duration::from_secs(HOUR * (1 + dice.below(900))));
    let inputs = match dice.below(4) {
        0 => Some(json!({"not_after": soon})),
        1 => Some(json!({"outcome": if dice.below(2) == 0 { "succeeded" } else { "failed" }})),
        2 if &*action == "clear" => Some(json!({"not_after": soon})),
        _ => None,
    };
    let (action, to) = match who {
        Some(_) => (action, to),
        None => ("timer".into(), rules.timers[dice.below(rules.timers.len())].to.clone()),
    };
    let mut documents = std::mem::take(&mut ledger.documents);
    ledger.force(&id, who.as_ref(), |entry| {
        (entry.action, entry.to) = (Some(action), Some(to));
        let mut keep = |document: Document| {
            documents.insert(document.digest.clone(), document.bytes);
            document.digest
        };
        entry.comment = comment.then(|| keep(Document::comment(text, &format!("{:032x}", entry.index + 7_000))));
        entry.inputs = inputs.map(|inputs| keep(Document::inputs(&inputs, &format!("{:032x}", entry.index + 8_000))));
    });
    ledger.documents = documents;
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
            attempt(&mut ledger, &mut dice);
        }
        // Some are left legal: a forged move seldom is one that could have been.
        if seed % 10 > 0 {
            forge(&mut ledger, &mut dice);
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
