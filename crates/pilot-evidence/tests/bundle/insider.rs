//! Forgeries that take the log's own key. What the rules do not show must be shown by what the reader knows from
//! elsewhere: witnesses, pins, the previous period.

use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::{Expect, expect};
use pilot_core::actor::Actor;
use pilot_core::document::{ContentDigest, Document};
use pilot_core::entry::Entry;
use pilot_core::entry::details::{ChangedCredentials, Changes, Details, Named, OneCredential, RevokedCredential};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_evidence::bundle::{Parts, assemble};
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::cosignature::CosignerKey;
use pilot_evidence::merkle::Hash;
use pilot_evidence::sample::{CAST, Ledger, actor, as_role, cosigned, key, payload, role_map, small_ledger};
use pilot_evidence::timestamp::{Authorities, Authority, Signed, sample_reply};
use pilot_evidence::verify::{Check, Conclusion, Gap, Outcome, Pins, Trust, Verdict, predecessor, verify};
use serde_json::{Value, json};

use super::verdicts::{faults, trust};

fn witness() -> CosignerKey {
    CosignerKey::generate("w.example", &[9; 32]).unwrap()
}

fn witnessed() -> Trust {
    Trust::witnessed(key().verifier(), vec![witness().verifier()], 1)
}

fn seconds(ledger: &Ledger) -> u64 {
    u64::try_from(ledger.now.unix_micros()).unwrap() / 1_000_000
}

/// The verdict on these parts, cosigned at this time.
fn seen(parts: &Parts, at: u64, trust: &Trust) -> Verdict {
    let checkpoint = cosigned(&parts.checkpoint, &witness(), at);
    verify(&assemble(&Parts { checkpoint, ..parts.clone() }, &key()).unwrap(), trust)
}

fn check(verdict: &Verdict, expected: &Expect) {
    expected.assert_eq(&faults(verdict));
    assert_eq!(verdict.exit_code(true), 1, "{}", verdict.sentence());
}

#[test]
fn a_period_that_ends_with_the_log_needs_a_cosignature_from_after_its_end() {
    let ledger = small_ledger();
    // Two entries are withheld: the log's tree ends before them, and the period claims to last until now.
    let mut short = ledger.clone();
    short.entries.truncate(19);
    let parts = short.period_parts(0, short.size());
    let end = seconds(&ledger);
    let hidden = seen(&parts, end - 70 * 3600, &witnessed());
    assert_eq!(faults(&hidden), "");
    assert_eq!(hidden.verdict, Conclusion::HoldsAsFarAsChecked);
    assert_eq!(hidden.gaps, BTreeSet::from([Gap::EndOfPeriod]));
    assert_eq!([hidden.exit_code(false), hidden.exit_code(true)], [4, 4], "no document is missing");
    expect!["The evidence holds AS FAR AS IT COULD BE CHECKED: nothing shows that the period is complete at its end. Not checked: complete, as pinned."]
        .assert_eq(&hidden.sentence());
    let whole = ledger.period_parts(0, ledger.size());
    for at in [end, end + 1, end + 500] {
        assert_eq!(seen(&whole, at, &witnessed()).verdict, Conclusion::Holds);
    }
    // A period that ends before the log does has its successor as proof.
    assert_eq!(seen(&ledger.period_parts(0, 20), end, &witnessed()).verdict, Conclusion::Holds);
}

#[test]
fn an_entry_dated_after_witnesses_saw_it_is_found() {
    let ledger = Ledger::at("2099-01-01T00:00:00Z".parse().unwrap());
    let parts = ledger.period_parts(0, 1);
    check(
        &seen(&parts, 1_794_733_200, &witnessed()),
        &expect![[r#"
            entries/000000000000.jsonl, entry 0: its time is 2099-01-01T00:00:00.000000Z, but it had already been seen at 2026-11-15T09:00:00.000000Z [clock]
        "#]],
    );
    // Clocks may differ a little.
    let parts = small_ledger().period_parts(0, small_ledger().size());
    for (early, holds) in [(0, true), (590, true), (610, false)] {
        let at = seconds(&small_ledger()) - early;
        assert_eq!(seen(&parts, at, &witnessed()).holds, holds, "{early} s");
    }
}

#[test]
fn kept_checkpoints_bound_the_times_of_entries_on_both_sides() {
    let mut ledger = Ledger::default();
    let id = ledger.whole_operation("Rotate the signing key", "low");
    let (size, begun) = (ledger.size(), seconds(&ledger));
    // Witnesses saw nine entries half an hour later; what came after is dated before that.
    ledger.remark(&id, &actor("ada"), "backdated");
    let at = begun + 1800;
    let kept = |ledger: &Ledger, size: u64, at: u64| ledger.kept(size, &witness(), at);
    for of_item in [true, false] {
        let parts = if of_item { ledger.item_parts(&id) } else { ledger.period_parts(0, ledger.size()) };
        let honest = Parts { kept: vec![kept(&ledger, size, begun + 300)], ..parts.clone() };
        assert_eq!(faults(&seen(&honest, at, &witnessed())), "");
        let early = Parts { kept: vec![kept(&ledger, size, at)], ..parts.clone() };
        check(
            &seen(&early, at, &witnessed()),
            &expect![[r#"
                entries/000000000000.jsonl, entry 9: its time is 2026-11-15T08:00:09.000000Z, but it had not been seen at 2026-11-15T08:30:09.000000Z [clock]
            "#]],
        );
        let late = Parts { kept: vec![kept(&ledger, 3, begun - 3600)], ..parts.clone() };
        check(
            &seen(&late, at, &witnessed()),
            &expect![[r#"
                entries/000000000000.jsonl, entry 0: its time is 2026-11-15T08:00:00.000000Z, but it had already been seen at 2026-11-15T07:00:09.000000Z; the same is true of 2 later entries [clock]
            "#]],
        );
        // Without the proof, it could be of any history.
        let (size, note, _) = kept(&ledger, size, begun);
        let unproved = Parts { kept: vec![(size, note, None)], ..parts };
        assert_eq!(seen(&unproved, at, &witnessed()).holds, !of_item, "in a period the entries show it");
    }
}

#[test]
fn a_kept_checkpoint_of_another_history_is_found() {
    let (ledger, mut other) = (small_ledger(), Ledger::default());
    other.whole_operation("Something else", "low");
    let parts = ledger.period_parts(0, ledger.size());
    let kept = vec![other.kept(5, &witness(), seconds(&ledger))];
    let verdict = seen(&Parts { kept, ..parts.clone() }, seconds(&ledger), &witnessed());
    check(
        &verdict,
        &expect![[r#"
        checkpoint: the log has another root at 5 entries [checkpoint]
    "#]],
    );
    let (_, note, _) = other.kept(5, &witness(), 1);
    let kept = Checkpoint::open(&note, &key().verifier()).unwrap();
    let pinned = Trust { pins: Pins { checkpoint: Some(kept), ..Pins::default() }, ..trust() };
    check(
        &verify(&assemble(&parts, &key()).unwrap(), &pinned),
        &expect![[r#"
            checkpoint: the log has another root at 5 entries; you kept cKFMHYD/pu4v2JzV6LrqYJai1+naY6UJJGxeA1LTfgY= for 5 entries [pinned_checkpoint]
        "#]],
    );
    let own = Checkpoint::open(&ledger.kept(5, &witness(), 1).1, &key().verifier()).unwrap();
    let pinned = Trust { pins: Pins { checkpoint: Some(own), ..Pins::default() }, ..trust() };
    assert!(verify(&assemble(&parts, &key()).unwrap(), &pinned).holds);
    let apart = verify(&ledger.period_bundle(10, 15), &pinned);
    assert!(apart.holds && !apart.checks.iter().any(|check| check.detail.contains("kept checkpoint as given")));
}

/// The verdict on a ledger whose first content is written like this.
fn with_content(write: impl Fn(&str) -> String) -> Verdict {
    let mut ledger = Ledger::default();
    let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("high")).unwrap();
    let (digest, written) = ledger.documents.pop_first().unwrap();
    let bytes = write(std::str::from_utf8(&written).unwrap()).into_bytes();
    let forged = ContentDigest::of_bytes(&bytes);
    let entry = ledger.entries[1].clone();
    let entry = String::from_utf8(entry).unwrap().replace(digest.as_str(), forged.as_str());
    ledger.entries[1] = entry.into_bytes();
    ledger.documents.insert(forged, bytes);
    verify(&ledger.item_bundle(&id), &trust())
}

type Write = fn(&str) -> String;

#[test]
fn documents_that_two_readers_could_understand_differently_are_refused() {
    assert!(with_content(str::to_owned).holds);
    let canonical = "a document is not in canonical form, so readers could understand it differently [document]";
    let nonce = "the nonce of a document is not 32 hexadecimal characters [document]";
    let forgeries: [(&str, Write, &str); 8] = [
        (
            "the last of two wins",
            |text| text.replace("\"risk\":\"high\"", "\"risk\":\"high\",\"risk\":\"low\""),
            canonical,
        ),
        ("spaces", |text| text.replace("\":", "\": "), canonical),
        (
            "another order",
            |text| {
                text.replace("{\"nonce\":", "{\"title\":\"Rotate\",\"nonce\":").replace(",\"title\":\"Rotate\"}", "}")
            },
            canonical,
        ),
        ("escapes", |text| text.replace("Rotate", "R\\u006ftate"), canonical),
        (
            "no nonce",
            |text| text.replace("\"nonce\":\"00000000000000000000000000000001\",", ""),
            "a document cannot be read: missing field `nonce`",
        ),
        ("a short nonce", |text| text.replace("00000000000000000000000000000001", "1"), nonce),
        (
            "one member more",
            |text| text.replace("{\"nonce\"", "{\"also\":1,\"nonce\""),
            "a document cannot be read: unknown field `also`",
        ),
        ("no JSON", |_| "approved, of course".to_owned(), "a document cannot be read: expected value"),
    ];
    for (what, write, why) in forgeries {
        let verdict = with_content(write);
        assert!(faults(&verdict).contains(why), "{what}: {}", faults(&verdict));
        assert_eq!(verdict.exit_code(true), 1, "{what}");
    }
}

#[test]
fn a_timer_says_nothing() {
    let mut ledger = small_ledger();
    let words = Document::comment("and everyone agreed", &"0".repeat(32));
    let timer = ledger.size() - 1;
    let entry = Entry { comment: Some(words.digest.clone()), ..ledger.read(timer) };
    assert_eq!(entry.actor_id, None);
    let id = entry.item.clone().unwrap();
    *ledger.entries.last_mut().unwrap() = entry.to_bytes().unwrap();
    ledger.documents.insert(words.digest, words.bytes);
    check(
        &verify(&ledger.item_bundle(&id), &trust()),
        &expect![[r#"
            entries/000000000013.jsonl, entry 20, item 01890a5d-ac96-774b-bcce-00000000001d: its comment is sha256:01449ffbfa6340ba88d0d1bb8397fad3cf172aac0e770e7b344043e80e154900; by the rules it would be not given [other_entry]
        "#]],
    );
}

#[test]
fn only_pinned_definitions_and_role_maps_may_have_been_in_force() {
    let mut ledger = small_ledger();
    ledger.start(Some(&role_map(&[("ana", Role::Initiator), ("mal", Role::Approver)])));
    let bundle = ledger.period_bundle(0, ledger.size());
    let about = verify(&bundle, &trust()).about.unwrap();
    let definitions: BTreeSet<_> = about.definitions.iter().map(|one| one.digest.to_string()).collect();
    let approved = ContentDigest::of_bytes(&role_map(&CAST)).to_string();
    let pinned = |pins: Pins| verify(&bundle, &Trust { pins, ..trust() });
    assert!(pinned(Pins { definitions: definitions.clone(), ..Pins::default() }).holds);
    let other = BTreeSet::from([ContentDigest::of_bytes(b"laxer").to_string()]);
    let laxer = pinned(Pins { definitions: other, ..Pins::default() });
    assert!(faults(&laxer).contains("is not one of those given [pinned_definition]"), "{}", faults(&laxer));
    let strange = pinned(Pins { role_maps: BTreeSet::from([approved]), ..Pins::default() });
    assert!(faults(&strange).contains("is not one of those given [pinned_role_map]"), "{}", faults(&strange));
    assert_eq!(about.role_maps.len(), 2);
    let mut without = Ledger::default();
    without.start(None);
    let pins = Pins { role_maps: about.role_maps.into_iter().collect(), ..Pins::default() };
    let verdict = verify(&without.period_bundle(0, 2), &Trust { pins, ..trust() });
    assert!(faults(&verdict).contains("from this start on no role map was in force"), "{}", faults(&verdict));
}

#[test]
fn a_period_follows_the_previous_one_or_is_refused() {
    let ledger = small_ledger();
    let size = ledger.size();
    let first = predecessor(&ledger.period_bundle(0, 8).into(), &trust(), &mut |_, _, _| {}).unwrap().unwrap();
    let after = |bundle: &[u8]| {
        let pins = Pins { after: Some(first.clone()), ..Pins::default() };
        verify(bundle, &Trust { pins, ..trust() })
    };
    let next = after(&ledger.period_bundle(8, size));
    assert!(next.holds, "{}", faults(&next));
    let credentials = next.controls.last().unwrap();
    assert_eq!(credentials.detail, "in 3 of 3 items", "followed from entry 0: {credentials:?}");
    check(
        &after(&ledger.period_bundle(9, size)),
        &expect![[r#"
        the bundle: the previous period ends before entry 8, and this one begins at 9 [chain]
    "#]],
    );
    let mut other = Ledger::default();
    other.whole_operation("Another history", "low");
    check(
        &after(&other.period_bundle(8, other.size())),
        &expect![[r#"
        the bundle: the previous period is of another history: its root at 8 entries differs [chain]
    "#]],
    );
    let (id, _) = ledger.items.iter().next().unwrap();
    assert!(
        predecessor(&ledger.item_bundle(id).into(), &trust(), &mut |_, _, _| {}).unwrap().is_err(),
        "a bundle about an item is not a period"
    );
}

fn named(who: &str, role: Role, fingerprint: &str) -> Named {
    Named {
        actor_id: Some(who.parse().unwrap()),
        role: Some(role),
        credential_id: None,
        fingerprint: Some(fingerprint.parse().unwrap()),
        expires_at: None,
    }
}

/// A ledger in which ben approves after something happened to credentials.
fn approved_after(change: impl Fn(&Ledger) -> Vec<Details>, who: &Actor) -> Verdict {
    let mut ledger = Ledger::default();
    let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("low")).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", Value::Null).unwrap();
    for details in change(&ledger) {
        ledger.append(&Entry::of_service(ledger.size(), ledger.now, None, &details));
    }
    ledger.pass(120);
    ledger.act(&id, who, "approve", "", Value::Null).unwrap();
    verify(&ledger.period_bundle(0, ledger.size()), &trust())
}

#[test]
fn nobody_acts_without_a_credential_that_the_ledger_knows() {
    let ben = || named("ben", Role::Approver, "0000000000000003");
    let fingerprint = CAST.iter().position(|(name, _)| *name == "ben").unwrap() + 1;
    let ben = || Named { fingerprint: Some(format!("{fingerprint:016x}").parse().unwrap()), ..ben() };
    let removed = |_: &Ledger| {
        let credentials = Changes { removed: vec![ben()], ..Changes::default() };
        vec![Details::CredentialsChanged(ChangedCredentials { credentials })]
    };
    let revoked =
        |_: &Ledger| vec![Details::CredentialRevoked(RevokedCredential { cause: "asked".into(), credential: ben() })];
    let expired = |_: &Ledger| vec![Details::CredentialExpired(OneCredential { credential: ben() })];
    let again = |_: &Ledger| {
        let credentials = Changes { removed: vec![ben()], ..Changes::default() };
        let removed = Details::CredentialsChanged(ChangedCredentials { credentials });
        let credentials = Changes { added: vec![ben()], ..Changes::default() };
        vec![removed, Details::CredentialsChanged(ChangedCredentials { credentials })]
    };
    let passed_on = |_: &Ledger| {
        let credentials =
            Changes { added: vec![Named { actor_id: Some("ana".parse().unwrap()), ..ben() }], ..Changes::default() };
        vec![Details::CredentialsChanged(ChangedCredentials { credentials })]
    };
    assert!(approved_after(|_| Vec::new(), &actor("ben")).holds);
    check(
        &approved_after(passed_on, &actor("ben")),
        &expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: ben acts as approver, but had no credential for that [credential]
    "#]],
    );
    assert!(approved_after(again, &actor("ben")).holds, "a credential may come back");
    check(
        &approved_after(removed, &actor("ben")),
        &expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: ben acts as approver, but their last credential was removed at 2026-11-15T08:00:03.000000Z [credential]
    "#]],
    );
    check(
        &approved_after(revoked, &actor("ben")),
        &expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: ben acts as approver, but their last credential was revoked at 2026-11-15T08:00:03.000000Z [credential]
    "#]],
    );
    check(
        &approved_after(expired, &actor("ben")),
        &expect![[r#"
        entries/000000000000.jsonl, entry 4, item 01890a5d-ac96-774b-bcce-000000000001: ben acts as approver, but their last credential was expired at 2026-11-15T08:00:03.000000Z [credential]
    "#]],
    );
    check(
        &approved_after(|_| Vec::new(), &as_role("mal", Role::Approver)),
        &expect![[r#"
        entries/000000000000.jsonl, entry 3, item 01890a5d-ac96-774b-bcce-000000000001: mal acts as approver, but the role map in force does not list them [role_map]
        entries/000000000000.jsonl, entry 3, item 01890a5d-ac96-774b-bcce-000000000001: mal acts as approver, but had no credential for that [credential]
    "#]],
    );
    let other_role = |_: &Ledger| {
        let credentials =
            Changes { added: vec![named("mal", Role::Auditor, "00000000000000ff")], ..Changes::default() };
        vec![Details::CredentialsChanged(ChangedCredentials { credentials })]
    };
    let verdict = approved_after(other_role, &as_role("mal", Role::Approver));
    assert!(faults(&verdict).contains("mal acts as approver, but had no credential for that"));
}

#[test]
fn strict_means_that_everything_was_checked() {
    let ledger = small_ledger();
    let parts = ledger.period_parts(0, ledger.size());
    let plain = seen(&parts, seconds(&ledger), &witnessed());
    assert_eq!((plain.verdict, plain.exit_code(false)), (Conclusion::Holds, 0));
    let strict = |pins: Pins| seen(&parts, seconds(&ledger), &Trust { pins, strict: true, ..witnessed() });
    let open = strict(Pins::default());
    assert_eq!((open.verdict, open.exit_code(true)), (Conclusion::HoldsAsFarAsChecked, 4));
    assert_eq!(open.gaps, BTreeSet::from([Gap::Strict]));
    let about = open.about.unwrap();
    let pins = Pins {
        definitions: about.definitions.iter().map(|one| one.digest.to_string()).collect(),
        role_maps: about.role_maps.into_iter().collect(),
        ..Pins::default()
    };
    let all = strict(pins);
    assert_eq!((all.verdict, all.exit_code(false)), (Conclusion::Holds, 0), "{}", all.to_text());
    assert!(all.to_json().contains("\"gaps\": []"), "{}", json!(all.gaps));
}

/// Believes every signature, or none.
struct Believes(bool);

impl Authority for Believes {
    fn check(&self, _: &Signed<'_>) -> Result<(), String> {
        if self.0 { Ok(()) } else { Err("its certificate is not trusted".into()) }
    }
}

#[test]
fn timestamps_bound_the_times_of_entries_on_both_sides_if_their_authority_is_trusted() {
    let mut ledger = Ledger::default();
    let id = ledger.whole_operation("Rotate the signing key", "low");
    let (size, begun) = (ledger.size(), ledger.now);
    ledger.remark(&id, &actor("ada"), "backdated");
    let minutes = |minutes: u64| begun.plus(std::time::Duration::from_mins(minutes));
    let stamped = |size: u64, at: Time| {
        let (size, note, proof) = ledger.kept(size, &witness(), 0);
        (size, note.clone(), proof, sample_reply(note.as_bytes(), at))
    };
    let judged = |(size, note, proof, reply): (u64, String, Option<Vec<Hash>>, Vec<u8>),
                  of_item: bool,
                  believes: Option<bool>| {
        let parts = if of_item { ledger.item_parts(&id) } else { ledger.period_parts(0, ledger.size()) };
        let kept = vec![(size, note.clone(), proof)];
        let parts = Parts { timestamps: vec![(size, note, reply)], kept, ..parts };
        let authorities = believes.map(|believes| Authorities(Arc::new(Believes(believes))));
        verify(&assemble(&parts, &key()).unwrap(), &Trust { authorities, ..trust() })
    };
    for of_item in [true, false] {
        assert_eq!(faults(&judged(stamped(size, minutes(5)), of_item, Some(true))), "");
        assert_eq!(
            faults(&judged(stamped(size, minutes(30)), of_item, None)),
            "",
            "nobody is trusted, so nothing is compared"
        );
        check(
            &judged(stamped(size, minutes(30)), of_item, Some(true)),
            &expect![[r#"
                entries/000000000000.jsonl, entry 9: its time is 2026-11-15T08:00:09.000000Z, but it had not been seen at 2026-11-15T08:30:09.000000Z [clock]
            "#]],
        );
        check(
            &judged(stamped(size, Time::from_unix_micros(begun.unix_micros() - 1_800_000_000)), of_item, Some(true)),
            &expect![[r#"
                entries/000000000000.jsonl, entry 0: its time is 2026-11-15T08:00:00.000000Z, but it had already been seen at 2026-11-15T07:30:09.000000Z; the same is true of 8 later entries [clock]
            "#]],
        );
        let untrusted = judged(stamped(size, minutes(30)), of_item, Some(false));
        let times = untrusted.checks.iter().find(|found| found.name == Check::Times).unwrap();
        assert_eq!((faults(&untrusted).as_str(), times.outcome), ("", Outcome::NotChecked), "it says nothing");
        assert!(
            times.detail.ends_with("not counted: timestamps/000000000009.tsr: its certificate is not trusted"),
            "{times:?}"
        );
        let reaches = judged(stamped(size, minutes(5)), of_item, Some(true));
        let times = reaches.checks.iter().find(|found| found.name == Check::Times).unwrap();
        assert_eq!(
            (times.outcome, times.detail.as_str()),
            (Outcome::NotChecked, "the entries before 9 fit; nobody who is trusted has dated those after them")
        );
        let (size, note, proof, _) = stamped(size, begun);
        check(
            &judged((size, note, proof, sample_reply(b"another log", begun)), of_item, None),
            &expect![[r#"
                timestamps/000000000009.tsr: it is a timestamp of something else [timestamp]
            "#]],
        );
    }
}
