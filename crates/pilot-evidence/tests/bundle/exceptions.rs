//! What an auditor is told to look at one by one.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use pilot_core::entry::Entry;
use pilot_core::entry::details::{
    Attempts, Backup, ClockAccepted, Details, Erased, Loss, Named, RefusedCredential, Restored, RevokedCredential,
    TrustedCredentials,
};
use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::workflow::builtin::CONTROLLED_OPERATION;
use pilot_evidence::audit::{Kind, tables};
use pilot_evidence::sample::forgeries::{Forgery, HOUR, MINUTE, STARTED};
use pilot_evidence::sample::{CAST, Ledger, actor, emergency_payload, payload, role_map};
use serde_json::{Value, json};

use crate::bundle::tables::{rows, table};
use crate::bundle::verdicts::trust;

/// Kind, actor and sentence of every exception in the whole ledger.
fn told(ledger: &Ledger) -> String {
    let made = tables(&ledger.period_bundle(0, ledger.size()), &trust(), None).unwrap();
    let line = |row: &Vec<String>| format!("{} {} {}: {}\n", row[0], row[2], row[3], row[5]);
    rows(&table(&made, "exceptions.csv")).iter().map(line).collect()
}

#[track_caller]
fn check(ledger: &Ledger, expected: &Expect) {
    expected.assert_eq(&told(ledger));
}

#[test]
fn an_operation_from_draft_to_its_end_has_no_exceptions() {
    let mut ledger = Ledger::default();
    ledger.whole_operation("Rotate", "high");
    check(&ledger, &expect![[""]]);
}

#[test]
fn an_effect_that_no_votes_let_pass_stands_out_until_votes_have_judged_it() {
    check(
        &Forgery::emergency().ledger,
        &expect![[r#"
        4 effect_without_votes eve: `start` began an effect that no votes had let pass: cleared to executing
        5 not_judged : an effect began without votes at entry 4, and no votes have judged it since: it is still succeeded
    "#]],
    );
    let judged = |action: &'static str| {
        let mut forgery = Forgery::emergency();
        for who in ["ben", "bea"] {
            let id = forgery.id.clone();
            forgery.ledger.act(&id, &actor(who), action, "A reason", Value::Null).unwrap();
        }
        forgery.ledger
    };
    check(
        &judged("ratify"),
        &expect![[r#"
        4 effect_without_votes eve: `start` began an effect that no votes had let pass: cleared to executing
    "#]],
    );
    check(
        &judged("condemn"),
        &expect![[r#"
        4 effect_without_votes eve: `start` began an effect that no votes had let pass: cleared to executing
        7 condemned bea: `condemn` was decided by votes, on an effect that began without any: succeeded to condemned
    "#]],
    );
}

#[test]
fn votes_that_ended_when_the_item_was_returned_let_no_effect_pass() {
    let mut forgery = Forgery::new("low").all(&[("ben", "approve")]);
    let (id, ben) = (forgery.id.clone(), actor("ben"));
    forgery.ledger.act(&id, &ben, "return", "Which slot?", Value::Null).unwrap();
    check(
        &forgery.forced(&actor("eve"), "start", "executing").ledger,
        &expect![[r#"
        6 fault eve: entries/000000000000.jsonl, entry 6, item 01890a5d-ac96-774b-bcce-000000000001: the rules refuse it (state_conflict): start is possible only in cleared; this item is returned [state_conflict]
        1 role_map_changed : the role map changed since the start at entry 0: from sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5 to sha256:2e48ba4faf1eaa6f5b5e0dcb1645aa9b170c8be6eebf4d3a066dffff316485b1
        6 effect_without_votes eve: `start` began an effect that no votes had let pass: returned to executing
        6 not_judged : an effect began without votes at entry 6, and no votes have judged it since: it is still executing
    "#]],
    );
}

#[test]
fn votes_that_send_an_item_back_to_be_changed_let_nothing_pass() {
    let returning = "action = \"return\"\nfrom = [\"submitted\", \"approved\"]\nto = \"returned\"\nroles = [\"approver\", \"security_admin\"]\ncomment = \"required\"\nvoids = [\"votes\"]";
    let by_votes = returning.replace(", \"approved\"", "").replace(", \"security_admin\"", "");
    let text = CONTROLLED_OPERATION.replace(returning, &by_votes.replace("voids = [\"votes\"]", "quorum = 1"));
    assert!(text.contains("quorum = 1\n\n[[transition]]\naction = \"withdraw\""), "{text}");
    let mut ledger = Ledger::default();
    ledger.define(&text);
    ledger.start(Some(&role_map(&CAST)));
    let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("low")).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", Value::Null).unwrap();
    ledger.act(&id, &actor("ben"), "return", "Which slot?", Value::Null).unwrap();
    ledger.force(&id, Some(&actor("eve")), |entry| {
        (entry.action, entry.to) = (Some("start".into()), Some("executing".into()));
    });
    assert!(told(&ledger).contains(" effect_without_votes eve: "), "{}", told(&ledger));
}

#[test]
fn holds_failures_retries_and_roll_backs_stand_out() {
    let forgery = Forgery::new("low").all(&[("ben", "hold"), ("sam", "release")]).all(&STARTED);
    let forgery = forgery.all(&[("eve", "fail"), ("eve", "retry"), ("eve", "fail"), ("eve", "roll_back")]);
    check(
        &forgery.all(&[("eve", "succeed"), ("ben", "accept")]).ledger,
        &expect![[r#"
        1 role_map_changed : the role map changed since the start at entry 0: from sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5 to sha256:2e48ba4faf1eaa6f5b5e0dcb1645aa9b170c8be6eebf4d3a066dffff316485b1
        4 hold ben: put on hold in submitted
        5 release sam: released from its hold in submitted
        9 execution_failed eve: `fail` ended the execution: executing to failed
        10 effect_again eve: `retry` began an effect again: failed to executing
        11 execution_failed eve: `fail` ended the execution: executing to failed
        12 effect_again eve: `roll_back` began an effect again: failed to rolling_back
    "#]],
    );
}

#[test]
fn a_lost_lease_an_unknown_outcome_and_its_settlement_stand_out() {
    let mut forgery = Forgery::new("low").all(&STARTED).after(16 * MINUTE);
    let id = forgery.id.clone();
    forgery.ledger.expire(&id).unwrap();
    let settled = json!({"outcome": "succeeded"});
    forgery.ledger.act(&id, &actor("ben"), "reconcile", "The log says so", settled).unwrap();
    forgery.ledger.act(&id, &actor("bea"), "dispute", "It does not", Value::Null).unwrap();
    check(
        &forgery.ledger,
        &expect![[r#"
        1 role_map_changed : the role map changed since the start at entry 0: from sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5 to sha256:2e48ba4faf1eaa6f5b5e0dcb1645aa9b170c8be6eebf4d3a066dffff316485b1
        7 effect_timed_out : time ran out in executing: moved to indeterminate
        8 outcome_settled ben: `reconcile` settled how it ended: indeterminate to succeeded
        9 outcome_unknown bea: `dispute` says that nobody knows how it ended: succeeded to indeterminate
    "#]],
    );
}

#[test]
fn an_item_that_ends_after_votes_had_let_it_pass_stands_out() {
    let withdrawn = Forgery::new("low").all(&[("ben", "approve"), ("ana", "withdraw")]);
    check(
        &withdrawn.ledger,
        &expect![[r#"
        1 role_map_changed : the role map changed since the start at entry 0: from sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5 to sha256:2e48ba4faf1eaa6f5b5e0dcb1645aa9b170c8be6eebf4d3a066dffff316485b1
        5 stopped_after_votes ana: `withdraw` ended it after votes had let it pass: approved to withdrawn
    "#]],
    );
    check(
        &Forgery::new("low").all(&[("ana", "withdraw")]).ledger,
        &expect![[r#"
        1 role_map_changed : the role map changed since the start at entry 0: from sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5 to sha256:2e48ba4faf1eaa6f5b5e0dcb1645aa9b170c8be6eebf4d3a066dffff316485b1
    "#]],
    );
    let mut late = Forgery::new("low").all(&[("ben", "approve")]).after(25 * HOUR);
    late.ledger.expire(&late.id).unwrap();
    check(
        &late.ledger,
        &expect![[r#"
        1 role_map_changed : the role map changed since the start at entry 0: from sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5 to sha256:2e48ba4faf1eaa6f5b5e0dcb1645aa9b170c8be6eebf4d3a066dffff316485b1
        5 expired : a deadline passed in approved: moved to expired
    "#]],
    );
}

#[test]
fn a_fault_is_an_exception_and_comes_first() {
    let forged = Forgery::new("high").forced(&actor("ben"), "approve", "approved");
    let mut ledger = forged.ledger;
    ledger.start(None);
    check(
        &ledger,
        &expect![[r#"
        4 fault ben: entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: it leads to approved before the quorum is reached; by the rules the item stays in submitted [quorum]
        1 role_map_changed : the role map changed since the start at entry 0: from sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5 to sha256:2e48ba4faf1eaa6f5b5e0dcb1645aa9b170c8be6eebf4d3a066dffff316485b1
        5 no_role_map : this start pins no role map, so from here on nobody's role can be checked
        5 role_map_changed : the role map changed since the start at entry 1: from sha256:2e48ba4faf1eaa6f5b5e0dcb1645aa9b170c8be6eebf4d3a066dffff316485b1 to none
    "#]],
    );
}

fn credential(name: &str) -> Named {
    Named {
        actor_id: Some(name.parse().unwrap()),
        role: Some(actor(name).role),
        credential_id: Some(format!("{name}-1").parse().unwrap()),
        fingerprint: None,
        expires_at: None,
    }
}

fn service(ledger: &mut Ledger, who: Option<&str>, details: &Details) {
    let who = who.map(actor);
    ledger.append(&Entry::of_service(ledger.size(), ledger.now, who.as_ref(), details));
}

/// Everything that can stand out about access and the service.
fn troubled(ledger: &mut Ledger, item: &ItemId) {
    let (now, operator) = (ledger.now, Some("root".to_owned()));
    let attempts = |code: &str, count| Attempts { code: code.into(), count, since: Some(now), origins: Vec::new() };
    let restored = Restored {
        because: "a witness has seen no more".into(),
        backup: Some(Backup { entries: 7, made_at: now }),
        operator: operator.clone(),
        loss: None,
    };
    let loss = Loss {
        loss_accepted: "both disks failed".into(),
        previous_checkpoint: None,
        credentials: Some("doubted".into()),
    };
    let why = || "the names of customers were in it".to_owned();
    service(ledger, Some("ada"), &Details::AccessRefused(attempts("role_forbidden", 2)));
    service(ledger, Some("ana"), &Details::AccessTokenExposed(attempts("token_in_url", 1)));
    let revoked = RevokedCredential { cause: "asked".into(), credential: credential("ana") };
    service(ledger, Some("sam"), &Details::CredentialRevoked(revoked));
    let used = RefusedCredential { credential: credential("ana"), reason: "revoked".into() };
    service(ledger, None, &Details::CredentialRefused(used));
    service(ledger, None, &Details::LedgerRestored(restored.clone()));
    service(ledger, None, &Details::LedgerRestored(Restored { loss: Some(loss), ..restored }));
    let trusted = TrustedCredentials {
        all: false,
        before: now,
        credentials: vec!["ben-1".parse().unwrap()],
        operator: None,
        why: "issued again in person".into(),
    };
    service(ledger, None, &Details::CredentialsTrusted(trusted));
    let erased = Erased { documents: 2, item: item.clone(), operator: operator.clone(), why: why() };
    service(ledger, None, &Details::DocumentsErased(erased));
    service(ledger, None, &Details::ClockAccepted(ClockAccepted { machine: now, operator }));
    ledger.define(&CONTROLLED_OPERATION.replace("after = \"72h\"", "after = \"71h\""));
    ledger.start(Some(&role_map(&[("ana", Role::Initiator)])));
    ledger.start(None);
    let mut newer = ledger.read(ledger.size() - 1);
    (newer.index, newer.at, newer.details) = (ledger.size(), ledger.now, Some(json!({"previous": "x"})));
    ledger.append(&newer);
}

#[test]
fn what_happened_to_access_clock_content_and_the_service_stands_out() {
    let mut ledger = Ledger::default();
    let item = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("low")).unwrap();
    troubled(&mut ledger, &item);
    check(
        &ledger,
        &expect![[r#"
        13 fault : entries/000000000000.jsonl, entry 13: what this start says cannot be read, so neither can what was in force after it [start]
        2 refused_attempt ada: 2 attempts as auditor were refused: role_forbidden, the first at 2026-11-15T08:00:02.000000Z
        3 token_exposed ana: ana: token seen in a URL
        4 credential_revoked sam: ana-1 of ana: revoked by sam
        5 ended_credential_used : ana-1 of ana: refused because it was revoked
        6 ledger_restored : the operator root restored the ledger from a backup of 7 entries, made at 2026-11-15T08:00:02.000000Z: a witness has seen no more
        7 loss_accepted : the operator root accepted that entries may be lost after a backup of 7 entries, made at 2026-11-15T08:00:02.000000Z: both disks failed (a witness has seen no more); older credentials are doubted
        8 credentials_trusted : after a loss, an operator accepted credentials issued before 2026-11-15T08:00:02.000000Z again (ben-1): issued again in person
        9 documents_erased : the operator root erased 2 documents of this item: the names of customers were in it
        10 clock_accepted : the machine's clock had jumped ahead to 2026-11-15T08:00:02.000000Z, and the operator root accepted it
        11 role_map_changed : the role map changed since the start at entry 0: from sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5 to sha256:535beb393c2ff49ba5b769a0c5bb4fb628db5d4d217250e9033a877674515158
        11 definitions_changed : definitions changed since the start at entry 0: added controlled-operation v2 sha256:1f47646f1d2e61b0e462737975f1c288b314025a9d1e4aab84628d06fcc5ef50
        12 no_role_map : this start pins no role map, so from here on nobody's role can be checked
        12 role_map_changed : the role map changed since the start at entry 11: from sha256:535beb393c2ff49ba5b769a0c5bb4fb628db5d4d217250e9033a877674515158 to none
        13 unreadable : this program cannot read what this service.started says
    "#]],
    );
}

#[test]
fn every_kind_of_exception_appears_in_some_ledger_and_has_its_own_name() {
    let mut ledger = Forgery::emergency().ledger;
    let condemned = ledger.items.keys().next().unwrap().clone();
    for who in ["ben", "bea"] {
        ledger.act(&condemned, &actor(who), "condemn", "A reason", Value::Null).unwrap();
    }
    let second = ledger.create("emergency-operation", &actor("ida"), "Again", emergency_payload()).unwrap();
    let steps = [("ida", "submit"), ("sam", "clear"), ("eve", "start"), ("eve", "fail"), ("eve", "retry")];
    for (who, action) in steps {
        let until = ledger.now.plus(std::time::Duration::from_secs(3 * HOUR));
        let inputs = if action == "clear" { json!({"not_after": until}) } else { Value::Null };
        ledger.act(&second, &actor(who), action, "", inputs).unwrap();
    }
    ledger.act(&second, &actor("sam"), "hold", "Wait", Value::Null).unwrap();
    ledger.act(&second, &actor("sam"), "release", "Go on", Value::Null).unwrap();
    ledger.pass(16 * MINUTE);
    ledger.expire(&second).unwrap();
    ledger.act(&second, &actor("ben"), "reconcile", "Seen", json!({"outcome": "succeeded"})).unwrap();
    ledger.act(&second, &actor("bea"), "dispute", "Not so", Value::Null).unwrap();
    let mut pass = |actions: &[(&str, &str)]| {
        let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("low")).unwrap();
        for (who, action) in actions {
            ledger.act(&id, &actor(who), action, "", Value::Null).unwrap();
        }
        id
    };
    pass(&[("ana", "submit"), ("ben", "approve"), ("ana", "withdraw")]);
    let late = pass(&[("ana", "submit")]);
    ledger.pass(73 * HOUR);
    ledger.expire(&late).unwrap();
    ledger.start(Some(&role_map(&CAST)));
    troubled(&mut ledger, &late);
    let found: BTreeSet<String> =
        told(&ledger).lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    let all: BTreeSet<String> = Kind::ALL.iter().map(|kind| kind.as_str().to_owned()).collect();
    assert_eq!(all.len(), Kind::ALL.len(), "each has a name of its own");
    assert_eq!(all.difference(&found).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn the_guide_for_auditors_explains_every_kind() {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit/auditors-guide.md"));
    let guide = guide.unwrap();
    let rows: Vec<_> = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next()).collect();
    for kind in Kind::ALL {
        let name = kind.as_str();
        assert!(rows.iter().any(|row| row.split('`').any(|word| word == name)), "{name} is not in the table of kinds");
    }
}

#[test]
fn a_period_lists_what_happened_to_the_service_in_it_and_nothing_from_before() {
    let mut ledger = Ledger::default();
    ledger.start(None);
    let first = ledger.size();
    ledger.start(Some(&role_map(&CAST)));
    ledger.whole_operation("Rotate", "low");
    let made = tables(&ledger.period_bundle(first, ledger.size()), &trust(), None).unwrap();
    let found = rows(&table(&made, "exceptions.csv"));
    let kinds: Vec<_> = found.iter().map(|row| (row[0].as_str(), row[2].as_str())).collect();
    assert_eq!(kinds, [("2", "role_map_changed")]);
}
