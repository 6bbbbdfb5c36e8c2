//! What a verdict says of bundles that are as they should be.

use expect_test::expect;
use pilot_core::role::Role;
use pilot_evidence::bundle::{Parts, Scope, assemble};
use pilot_evidence::cosignature::CosignerKey;
use pilot_evidence::note::{Note, NoteKey};
use pilot_evidence::sample::{CAST, Ledger, actor, as_role, key, payload, role_map, small_ledger};
use pilot_evidence::verify::{Control, Outcome, Trust, Verdict, verify};
use serde_json::Value;

pub fn trust() -> Trust {
    Trust::log(key().verifier())
}

pub fn faults(verdict: &Verdict) -> String {
    verdict.faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[test]
fn an_items_bundle_holds() {
    let ledger = small_ledger();
    let id = ledger.items.keys().next().unwrap();
    let verdict = verify(&ledger.item_bundle(id), &trust());
    expect![[r#"
        Evidence of log.example.org about item 01890a5d-ac96-774b-bcce-000000000001
        made 2026-11-18T09:00:21.000000Z, 10 entries, 5 documents
        root nSMNVxqIh6nIA140w4dacEbU6lwo+z9rcoImWa+pf4s= of 21 entries
        checkpoint sha256:5403f9cbb586cbf30bac5b6b7b0e41600c1fd1b5f537f91b86b39ef741712004
        definition sha256:83435355fec8619aeca46414354f2f4296d3b7c276625092787916dcb7c8efd7, controlled-operation v2
        role map   sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5

        CHECK         RESULT         DETAIL
        container     ✓ holds        every byte is accounted for
        manifest      ✓ holds        signed by log.example.org
        files         ✓ holds        21 files as listed
        checkpoint    ✓ holds        21 entries, signed by log.example.org
        witnesses     – not checked  no witness key was given, so only the log itself vouches for its history
        in the log    ✓ holds        10 entries, each with its own proof
        complete      – not checked  the item's versions are gap-free from its creation on; only a period's bundle can show that none follows
        times         – not checked  no witness key was given, so only the service's own clock dates the entries
        as pinned     – not checked  no definition was given; no role map was given
        documents     ✓ holds        5 documents, each matching the digest in its entry
        by the rules  ✓ holds        1 item, every move replayed

        CONTROL            RESULT         DETAIL
        distinct people    ✓ holds        in 1 of 1 item
        quorum             ✓ holds        in 1 of 1 item
        window             ✓ holds        in 1 of 1 item
        content unchanged  ✓ holds        in 1 of 1 item
        steps in order     ✓ holds        in 1 of 1 item
        times in order     ✓ holds        in 1 of 1 item
        role map           ✓ holds        in 1 of 1 item
        credentials        – not checked  in 0 of 1 item; not in 1: that needs the ledger from entry 0: a period from its beginning, or --after

        ITEM                                  RESULT   DETAIL
        01890a5d-ac96-774b-bcce-000000000001  ✓ holds  closed v9, 5 people

        The evidence holds. Not checked: witnesses, complete, times, as pinned, credentials.
    "#]]
    .assert_eq(&verdict.to_text());
    assert!(verdict.holds);
}

#[test]
fn a_periods_bundle_holds_wherever_it_begins_and_ends() {
    let ledger = small_ledger();
    let size = ledger.size();
    for first in 0..=size {
        for end in [first, (first + 3).min(size), size] {
            let verdict = verify(&ledger.period_bundle(first, end), &trust());
            assert_eq!(faults(&verdict), "", "{first} to {end}");
            let open = verdict.checks.iter().filter(|check| check.outcome != Outcome::Holds);
            let open: Vec<_> = open.map(|check| check.name.title()).collect();
            let expected: &[_] = if end == size {
                &["witnesses", "complete", "times", "as pinned"]
            } else {
                &["witnesses", "times", "as pinned"]
            };
            assert_eq!(open, expected, "{first} to {end}");
        }
    }
    let verdict = verify(&ledger.period_bundle(5, 20), &trust());
    expect![[r#"
        Evidence of log.example.org about the period 2026-11-15T08:00:05.000000Z to 2026-11-18T09:00:20.000000Z, entries 5 to 19
        made 2026-11-18T09:00:21.000000Z, 21 entries, 11 documents
        root nSMNVxqIh6nIA140w4dacEbU6lwo+z9rcoImWa+pf4s= of 21 entries
        checkpoint sha256:5403f9cbb586cbf30bac5b6b7b0e41600c1fd1b5f537f91b86b39ef741712004
        definition sha256:83435355fec8619aeca46414354f2f4296d3b7c276625092787916dcb7c8efd7, controlled-operation v2
        role map   sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5

        CHECK         RESULT         DETAIL
        container     ✓ holds        every byte is accounted for
        manifest      ✓ holds        signed by log.example.org
        files         ✓ holds        27 files as listed
        checkpoint    ✓ holds        21 entries, signed by log.example.org
        witnesses     – not checked  no witness key was given, so only the log itself vouches for its history
        in the log    ✓ holds        15 entries as one piece of the tree, 6 with their own proofs
        complete      ✓ holds        15 entries from 5 on without a gap; the entries on either side are outside the period
        times         – not checked  no witness key was given, so only the service's own clock dates the entries
        as pinned     – not checked  no definition was given; no role map was given
        documents     ✓ holds        11 documents, each matching the digest in its entry
        by the rules  ✓ holds        3 items, every move replayed

        CONTROL            RESULT         DETAIL
        distinct people    ✓ holds        in 3 of 3 items
        quorum             ✓ holds        in 3 of 3 items
        window             ✓ holds        in 3 of 3 items
        content unchanged  ✓ holds        in 3 of 3 items
        steps in order     ✓ holds        in 3 of 3 items
        times in order     ✓ holds        in 3 of 3 items
        role map           ✓ holds        in 3 of 3 items
        credentials        – not checked  in 0 of 3 items; not in 3: that needs the ledger from entry 0: a period from its beginning, or --after

        ITEM                                  RESULT   DETAIL
        01890a5d-ac96-774b-bcce-000000000001  ✓ holds  closed v9, 5 people
        01890a5d-ac96-774b-bcce-000000000012  ✓ holds  rejected v6, 3 people
        01890a5d-ac96-774b-bcce-00000000001d  ✓ holds  expired v3, 1 person

        The evidence holds. Not checked: witnesses, times, as pinned, credentials.
    "#]].assert_eq(&verdict.to_text());
}

#[test]
fn a_bundle_of_another_log_is_refused() {
    let bundle = small_ledger().period_bundle(0, 3);
    let other = NoteKey::generate("log.example.org", &[1; 32]).unwrap().verifier();
    let verdict = verify(&bundle, &Trust::log(other));
    expect![[r#"
        CHECK         RESULT         DETAIL
        container     ✓ holds
        manifest      ✗ FAILS        1 fault
        files         – not checked  the manifest must hold first
        checkpoint    – not checked  the manifest must hold first
        witnesses     – not checked  the manifest must hold first
        in the log    – not checked  the manifest must hold first
        complete      – not checked  the manifest must hold first
        times         – not checked  the manifest must hold first
        as pinned     – not checked  the manifest must hold first
        documents     – not checked  the manifest must hold first
        by the rules  – not checked  the manifest must hold first

        fault 1: manifest: it is signed by log.example.org+cdd497b5, not by log.example.org+b3d4ba39+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c [manifest]

        The evidence does NOT hold: manifest: it is signed by log.example.org+cdd497b5, not by log.example.org+b3d4ba39+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c [manifest]
    "#]]
    .assert_eq(&verdict.to_text());
}

#[test]
fn as_many_witnesses_must_have_signed_as_are_asked_for() {
    let ledger = small_ledger();
    let witness = |number: u8| CosignerKey::generate(&format!("w{number}.example"), &[number; 32]).unwrap();
    let mut parts = ledger.period_parts(0, 5);
    let text = Note::parse(&parts.checkpoint).unwrap().text.to_owned();
    let lines = [1, 2].map(|number| witness(number).cosign(&text, 1_800_000_000) + "\n").concat();
    parts.checkpoint += &lines;
    let bundle = assemble(&parts, &key()).unwrap();
    let verdict = |numbers: &[u8], needed: usize| {
        let witnesses = numbers.iter().map(|number| witness(*number).verifier()).collect();
        verify(&bundle, &Trust::witnessed(key().verifier(), witnesses, needed))
    };
    let words = |verdict: &Verdict| format!("{:?} {}", verdict.checks[4].outcome, verdict.checks[4].detail);
    let signed = verdict(&[1, 2, 3], 2);
    assert!(signed.holds);
    expect!["Holds 2 of 3, 2 needed: w1.example at 2027-01-15T08:00:00Z, w2.example at 2027-01-15T08:00:00Z"]
        .assert_eq(&words(&signed));
    expect!["Fails 1 of 2, 2 needed"].assert_eq(&words(&verdict(&[1, 3], 2)));
    expect![[r#"
        checkpoint: cosigned by 1 of 2, 2 needed [witnesses]
    "#]]
    .assert_eq(&faults(&verdict(&[1, 3], 2)));
    assert!(!verdict(&[3], 1).holds);
}

#[test]
fn a_range_narrower_than_its_period_is_found() {
    let ledger = small_ledger();
    let mut parts = ledger.period_parts(6, 12);
    let Scope::Period { first, end, .. } = parts.scope else { unreachable!() };
    let whole = ledger.period_parts(2, 16).scope;
    let Scope::Period { from, to, .. } = whole else { unreachable!() };
    parts.scope = Scope::Period { from, to, first, end };
    expect![[r#"
        entries/000000000000.jsonl, entry 5: its time is in the period, but the range leaves it out [scope]
        entries/000000000000.jsonl, entry 12: its time is in the period, but the range leaves it out [scope]
    "#]]
    .assert_eq(&faults(&verify(&assemble(&parts, &key()).unwrap(), &trust())));
}

#[test]
fn entries_that_a_bundle_should_have_and_has_not_are_named() {
    let ledger = small_ledger();
    let id = ledger.items.keys().next().unwrap().clone();
    let verdict = |parts: &Parts| faults(&verify(&assemble(parts, &key()).unwrap(), &trust()));
    let without = |parts: &Parts, at: usize| {
        let mut parts = parts.clone();
        parts.entries.remove(at);
        parts
    };
    expect![[r#"
        entries/000000000000.jsonl, entry 8: entry 8 is missing [gap]
        entries/000000000000.jsonl, entry 9, item 01890a5d-ac96-774b-bcce-000000000001: its version is 9; 8 was expected [version_gap]
        documents/e1e88ad59c107ce9b774976f6d99220ebb646272fccb9aa1a6d64a35b69a5c05.json: no entry of this bundle names it [document]
    "#]].assert_eq(&verdict(&without(&ledger.period_parts(3, 12), 8)));
    let item = ledger.item_parts(&id);
    let mut shorter = without(&item, 3);
    shorter.proofs.remove(3);
    expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: its version is 4; 3 was expected [version_gap]
        documents/93eb6f05d08a024bbcd4730e780c7acab50109bd82cd5e5759ea66f5a008ee3e.json: no entry of this bundle names it [document]
    "#]].assert_eq(&verdict(&shorter));
    let mut unproved = item.clone();
    unproved.proofs.remove(3);
    expect![[r#"
        entries/000000000000.jsonl, entry 3: nothing proves that it is in the log [proof]
    "#]]
    .assert_eq(&verdict(&unproved));
    let mut no_rules = item.clone();
    no_rules.definitions.clear();
    expect![[r#"
        entries/000000000000.jsonl, entry 1, item 01890a5d-ac96-774b-bcce-000000000001: the definition sha256:83435355fec8619aeca46414354f2f4296d3b7c276625092787916dcb7c8efd7 is not in the bundle [definition]
    "#]].assert_eq(&verdict(&no_rules));
    let mut no_map = item;
    no_map.role_maps.clear();
    expect![[r#"
        entries/000000000000.jsonl, entry 0: it pins the role map sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5, which is not in the bundle [role_map]
    "#]].assert_eq(&verdict(&no_map));
}

/// Without one of its entries, and without its proof if it has one of its own.
fn without_entry(parts: &Parts, index: u64) -> Parts {
    let mut parts = parts.clone();
    let at = |bytes: &Vec<u8>| serde_json::from_slice::<pilot_core::entry::Entry>(bytes).unwrap().index;
    parts.entries.retain(|bytes| at(bytes) != index);
    parts.proofs.retain(|(proved, _)| *proved != index);
    parts
}

#[test]
fn a_bundle_without_the_start_that_was_in_force_does_not_hold() {
    // A stranger approves; without the start, no role map says so.
    let mut ledger = Ledger::default();
    let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("low")).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", Value::Null).unwrap();
    ledger.act(&id, &as_role("mallory", Role::Approver), "approve", "", Value::Null).unwrap();
    let mut parts = without_entry(&ledger.item_parts(&id), 0);
    parts.role_maps.clear();
    let verdict = verify(&assemble(&parts, &key()).unwrap(), &trust());
    assert!(!verdict.holds);
    expect![[r#"
        entries/000000000001.jsonl, entry 1, item 01890a5d-ac96-774b-bcce-000000000001: the start of the service that was in force is not in the bundle [start]
    "#]].assert_eq(&faults(&verdict));
}

#[test]
fn a_start_that_cannot_be_read_says_nothing_to_rely_on_and_the_bundle_does_not_hold() {
    let mut ledger = Ledger::default();
    ledger.start(Some(&role_map(&CAST)));
    let mut start = ledger.read(ledger.size() - 1);
    // Something that only another program can read, in a place that does not matter to the role map.
    start.details.as_mut().unwrap()["credentials"]["added"] = serde_json::json!([{"role": "emperor"}]);
    start.index = ledger.size();
    ledger.append(&start);
    let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("low")).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", Value::Null).unwrap();
    let verdict = verify(&assemble(&ledger.item_parts(&id), &key()).unwrap(), &trust());
    assert!(!verdict.holds);
    assert!(faults(&verdict).contains("what this start says cannot be read"), "{}", faults(&verdict));
}

#[test]
fn a_start_that_the_next_one_names_as_its_predecessor_cannot_be_withheld() {
    let mut ledger = Ledger::default();
    let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("high")).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", Value::Null).unwrap();
    let without_ben: Vec<_> = CAST.into_iter().filter(|(name, _)| *name != "ben").collect();
    ledger.start(Some(&role_map(&without_ben)));
    ledger.act(&id, &actor("ben"), "approve", "", Value::Null).unwrap();
    ledger.start(Some(&role_map(&CAST)));
    ledger.act(&id, &actor("bea"), "approve", "", Value::Null).unwrap();
    let mut parts = without_entry(&ledger.item_parts(&id), 3);
    parts.role_maps.retain(|map| *map == role_map(&CAST));
    expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: the start of the service at entry 3, which was in force, is not in the bundle [start]
    "#]].assert_eq(&faults(&verify(&assemble(&parts, &key()).unwrap(), &trust())));
}

#[test]
fn a_period_that_withholds_its_neighbours_does_not_hold() {
    let ledger = small_ledger();
    let whole = ledger.period_parts(6, 12);
    let verdict = |parts: &Parts| faults(&verify(&assemble(parts, &key()).unwrap(), &trust()));
    expect![[r#"
        entry 12: the entry just after the period is missing, so nothing shows that the range is complete [scope]
        documents/54a49e8998058eb5061fa04fc331453330595b18a4a5dd765b8ecc8e6d9b33aa.json: no entry of this bundle names it [document]
    "#]]
    .assert_eq(&verdict(&without_entry(&whole, 12)));
    // The entry before it is of an item in the period: its history has a gap, too.
    assert!(verdict(&without_entry(&whole, 5)).contains("entry 5: the entry just before the period is missing"));
    // The last entry of the period left out, and the range said to end before it.
    let mut shorter = ledger.period_parts(6, 11);
    let (Scope::Period { to, .. }, Scope::Period { from, first, end, .. }) = (&whole.scope, &shorter.scope) else {
        unreachable!()
    };
    shorter.scope = Scope::Period { from: *from, to: *to, first: *first, end: *end };
    assert!(verdict(&shorter).contains("entry 11: its time is in the period, but the range leaves it out"));
    assert!(verdict(&without_entry(&shorter, 11)).contains("entry 11: the entry just after the period is missing"));
}

#[test]
fn a_ledger_without_a_role_map_says_that_roles_were_not_checked() {
    let mut ledger = Ledger::default();
    ledger.start(None);
    let id = ledger.whole_operation("Rotate", "low");
    let verdict = verify(&ledger.item_bundle(&id), &trust());
    assert!(verdict.holds);
    let control = verdict.controls.iter().find(|control| control.name == Control::RoleMap).unwrap();
    expect![[r#"Finding { name: RoleMap, outcome: NotChecked, detail: "in 0 of 1 item; not in 1: the start at entry 1 pins no role map" }"#]].assert_eq(&format!("{control:?}"));
}
