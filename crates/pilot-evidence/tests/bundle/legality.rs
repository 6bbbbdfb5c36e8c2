//! Ledgers that are signed and whole, and against the rules.

use expect_test::{Expect, expect};
use pilot_core::entry::EntryType;
use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_evidence::sample::{CAST, Ledger, actor, as_role, emergency_payload, payload, role_map};
use pilot_evidence::verify::verify;
use serde_json::{Value, json};

use crate::bundle::verdicts::{faults, trust};

/// An operation up to one of its states.
fn until(ledger: &mut Ledger, risk: &str, state: &str) -> ItemId {
    let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload(risk)).unwrap();
    let steps = [
        ("submitted", "ana", "submit", Value::Null),
        ("approved", "ben", "approve", Value::Null),
        ("cleared", "sam", "clear", json!({"not_before": "2026-11-15T09:00:00Z", "not_after": "2026-11-15T10:00:00Z"})),
    ];
    for (reached, who, action, inputs) in steps {
        if *ledger.items[&id].state == *state {
            break;
        }
        ledger.act(&id, &actor(who), action, "", inputs).unwrap();
        assert_eq!(*ledger.items[&id].state, *reached);
    }
    id
}

fn check(ledger: &Ledger, id: &ItemId, expected: &Expect) {
    let mut verdict = verify(&ledger.period_bundle(0, ledger.size()), &trust());
    // Only a period from the beginning shows who had a credential.
    verdict.faults.retain(|fault| fault.rule != "credential");
    let whole = faults(&verdict);
    expected.assert_eq(&whole);
    let alone = faults(&verify(&ledger.item_bundle(id), &trust()));
    assert_eq!(alone, whole, "an item's own bundle says the same");
}

#[test]
fn whoever_created_an_item_cannot_have_approved_it() {
    let mut ledger = Ledger::default();
    let id = until(&mut ledger, "low", "submitted");
    ledger.start(Some(&role_map(&[("ana", Role::Approver)])));
    ledger.force(&id, Some(&as_role("ana", Role::Approver)), |entry| {
        entry.action = Some("approve".into());
        entry.to = Some("approved".into());
    });
    check(
        &ledger,
        &id,
        &expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: the rules refuse it (separation_of_duties): ana took part in this item as initiator, so ana cannot act on it as approver [separation_of_duties]
    "#]],
    );
}

#[test]
fn an_approval_short_of_its_quorum_is_found() {
    let mut ledger = Ledger::default();
    let id = until(&mut ledger, "high", "submitted");
    ledger.force(&id, Some(&actor("ben")), |entry| {
        entry.action = Some("approve".into());
        entry.to = Some("approved".into());
    });
    check(
        &ledger,
        &id,
        &expect![[r#"
        entries/000000000000.jsonl, entry 3, item 01890a5d-ac96-774b-bcce-000000000001: it leads to approved before the quorum is reached; by the rules the item stays in submitted [quorum]
    "#]],
    );
}

#[test]
fn a_start_outside_of_its_window_is_found() {
    let mut ledger = Ledger::default();
    let id = until(&mut ledger, "low", "cleared");
    ledger.force(&id, Some(&actor("eve")), |entry| {
        entry.action = Some("start".into());
        entry.to = Some("executing".into());
    });
    check(
        &ledger,
        &id,
        &expect![[r#"
        entries/000000000000.jsonl, entry 5, item 01890a5d-ac96-774b-bcce-000000000001: the rules refuse it (outside_window): start is possible only inside the window from 2026-11-15T09:00:00.000000Z to 2026-11-15T10:00:00.000000Z [outside_window]
    "#]],
    );
}

#[test]
fn a_decision_on_another_content_than_the_submitted_one_is_found() {
    let mut ledger = Ledger::default();
    let id = until(&mut ledger, "low", "submitted");
    let other = ledger.whole_operation("Another", "low");
    let content = ledger.items[&other].content_digest.clone();
    ledger.force(&id, Some(&actor("ben")), |entry| {
        entry.action = Some("approve".into());
        entry.to = Some("approved".into());
        entry.content = Some(content);
    });
    check(
        &ledger,
        &id,
        &expect![[r#"
        entries/000000000000.jsonl, entry 11, item 01890a5d-ac96-774b-bcce-000000000001: its content is sha256:a8fd8a37968e57232f52f448c3e1b73a2dff8392bda7305b60a16db880fe4692; by the rules it would be sha256:1dbc7d625e9013c6520fdd44ae7497bc6e6a48bdd961638664c8f2c68dc8ee7e [content_changed]
    "#]],
    );
}

#[test]
fn someone_the_role_map_does_not_approve_is_found() {
    let mut ledger = Ledger::default();
    let id = until(&mut ledger, "low", "submitted");
    let without_ben: Vec<_> = CAST.into_iter().filter(|(name, _)| *name != "ben").collect();
    ledger.start(Some(&role_map(&without_ben)));
    ledger.act(&id, &actor("ben"), "approve", "", Value::Null).unwrap();
    check(
        &ledger,
        &id,
        &expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: ben acts as approver, but the role map in force does not list them [role_map]
    "#]],
    );
}

#[test]
fn a_time_before_the_one_before_is_found() {
    let mut ledger = Ledger::default();
    let id = until(&mut ledger, "low", "submitted");
    ledger.force(&id, Some(&actor("ben")), |entry| {
        entry.action = Some("approve".into());
        entry.to = Some("approved".into());
        entry.at = Time::from_unix_micros(entry.at.unix_micros() - 60_000_000);
    });
    check(
        &ledger,
        &id,
        &expect![[r#"
        entries/000000000000.jsonl, entry 3: its time is before that of an entry with a lower index [time_order]
        entries/000000000000.jsonl, entry 3, item 01890a5d-ac96-774b-bcce-000000000001: its at is 2026-11-15T07:59:03.000000Z; by the rules it would be 2026-11-15T08:00:02.000000Z [time_order]
    "#]],
    );
}

#[test]
fn a_step_left_out_is_found() {
    let mut ledger = Ledger::default();
    let id = until(&mut ledger, "low", "approved");
    ledger.force(&id, Some(&actor("eve")), |entry| {
        entry.action = Some("start".into());
        entry.to = Some("executing".into());
    });
    check(
        &ledger,
        &id,
        &expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: the rules refuse it (state_conflict): start is possible only in cleared; this item is approved [state_conflict]
    "#]],
    );
}

#[test]
fn an_edit_after_the_approval_is_found() {
    let mut ledger = Ledger::default();
    let id = until(&mut ledger, "low", "approved");
    ledger.force(&id, Some(&actor("ana")), |entry| {
        entry.r#type = EntryType::ItemEdited;
        entry.action = Some("edit".into());
    });
    check(
        &ledger,
        &id,
        &expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: the rules refuse it (state_conflict): the item can be edited only in draft and returned; it is approved [state_conflict]
    "#]],
    );
}

#[test]
fn a_second_open_emergency_of_one_person_is_found_in_a_ledger_from_its_beginning() {
    let mut ledger = Ledger::default();
    let first = ledger.create("emergency-operation", &actor("ana"), "One", emergency_payload()).unwrap();
    ledger.create("emergency-operation", &actor("ida"), "Of another", emergency_payload()).unwrap();
    ledger.act(&first, &actor("ana"), "withdraw", "", Value::Null).unwrap();
    ledger.create("emergency-operation", &actor("ana"), "Two", emergency_payload()).unwrap();
    assert_eq!(faults(&verify(&ledger.period_bundle(0, ledger.size()), &trust())), "");
    ledger.create("emergency-operation", &actor("ana"), "Three", emergency_payload()).unwrap();
    let verdict = verify(&ledger.period_bundle(0, ledger.size()), &trust());
    expect![[r#"
        entries/000000000000.jsonl, entry 5, item 01890a5d-ac96-774b-bcce-000000000006: ana has another emergency-operation that is still open; it must end first [state_conflict]
    "#]].assert_eq(&faults(&verdict));
}

#[test]
fn a_permit_token_that_nobody_could_be_given_is_found() {
    let executing = |ledger: &mut Ledger| {
        let id = until(ledger, "low", "cleared");
        ledger.now = "2026-11-15T09:00:00Z".parse().unwrap();
        ledger.act(&id, &actor("eve"), "start", "", Value::Null).unwrap();
        id
    };
    let mut ledger = Ledger::default();
    let id = executing(&mut ledger);
    ledger.issue_permit(&id, &actor("eve"), 600);
    ledger.act(&id, &actor("eve"), "heartbeat", "", Value::Null).unwrap();
    check(&ledger, &id, &expect![""]);
    for (who, seconds, said) in [
        (actor("sam"), 60, "only the holder of the lease may use permit"),
        (actor("eve"), 3600, "but nothing may be relied on after"),
    ] {
        let mut ledger = Ledger::default();
        let id = executing(&mut ledger);
        ledger.issue_permit(&id, &who, seconds);
        let found = faults(&verify(&ledger.item_bundle(&id), &trust()));
        assert!(found.contains(said), "{found}");
    }
    let mut ledger = Ledger::default();
    let id = until(&mut ledger, "low", "cleared");
    ledger.issue_permit(&id, &actor("eve"), 60);
    let found = faults(&verify(&ledger.item_bundle(&id), &trust()));
    assert!(found.contains("permit is possible only in executing and rolling_back"), "{found}");
}
