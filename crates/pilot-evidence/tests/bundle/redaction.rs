//! Bundles with content left out.

use std::collections::BTreeSet;

use expect_test::expect;
use pilot_core::decide::Unasked;
use pilot_core::document::ContentDigest;
use pilot_core::entry::Entry;
use pilot_evidence::bundle::redact::{RedactError, Redaction, redact};
use pilot_evidence::sample::small_ledger;
use pilot_evidence::verify::{Conclusion, verify};

use crate::bundle::tampering::is_found;
use crate::bundle::verdicts::{faults, trust};

#[test]
fn what_does_not_rest_on_left_out_content_is_still_checked() {
    let ledger = small_ledger();
    let bundle = ledger.period_bundle(0, ledger.size());
    let (smaller, left_out) = redact(&bundle, &Redaction::All).unwrap();
    assert!(smaller.len() < bundle.len());
    assert_eq!(left_out.len(), 11, "contents, comments and inputs");
    let text = String::from_utf8_lossy(&smaller);
    assert!(!text.contains("Rotate the signing key") && !text.contains("read twice"));
    let verdict = verify(&smaller, &trust());
    assert_eq!(verdict.verdict, Conclusion::HoldsAsFarAsChecked);
    expect![[r#"
        Evidence of log.example.org about the period 1970-01-01T00:00:00.000000Z to 2026-11-18T09:00:21.000000Z, entries 0 to 20
        made 2026-11-18T09:00:21.000000Z, 21 entries, 0 documents, 11 files left out
        root nSMNVxqIh6nIA140w4dacEbU6lwo+z9rcoImWa+pf4s= of 21 entries
        checkpoint sha256:5403f9cbb586cbf30bac5b6b7b0e41600c1fd1b5f537f91b86b39ef741712004
        definition sha256:83435355fec8619aeca46414354f2f4296d3b7c276625092787916dcb7c8efd7, controlled-operation v2
        role map   sha256:c3ceaf0538466cd35a1ba50004a5399111f95622f4ea96881a9d8c5b82e168c5

        CHECK         RESULT         DETAIL
        container     ✓ holds        every byte is accounted for
        manifest      ✓ holds        signed by log.example.org
        files         ✓ holds        10 files as listed, 11 left out
        checkpoint    ✓ holds        21 entries, signed by log.example.org
        witnesses     – not checked  no witness key was given, so only the log itself vouches for its history
        in the log    ✓ holds        21 entries, as one piece of the tree
        complete      – not checked  21 entries from 0 on without a gap; that none is missing at its end is only the log's word: no witness is required
        times         – not checked  no witness key was given, so only the service's own clock dates the entries
        as pinned     – not checked  no definition was given; no role map was given
        documents     – not checked  0 documents that match the digests in their entries; missing: 11 left out after the bundle was signed
        by the rules  – not checked  3 items, every move replayed; 17 questions left open because content was left out

        CONTROL            RESULT         DETAIL
        distinct people    ✓ holds        in 3 of 3 items
        quorum             – not checked  in 2 of 3 items; not in 1: approve 2 of 2 (ben, bea); whether more votes were needed: content left out
        window             – not checked  in 2 of 3 items; not in 1: start at 2026-11-15T08:00:06.000000Z in a window that was left out; whether it was inside the window: content left out
        content unchanged  ✓ holds        in 3 of 3 items
        steps in order     – not checked  in 0 of 3 items; not in 3: each step replayed by the rules; whether title and payload fit the definition, whether the payload was complete, whether the comment said anything, whether the inputs allowed it, whether the window had ended: content left out
        times in order     ✓ holds        in 3 of 3 items
        role map           ✓ holds        in 3 of 3 items
        credentials        ✓ holds        in 3 of 3 items

        ITEM                                  RESULT                         DETAIL
        01890a5d-ac96-774b-bcce-000000000001  – not checked: quorum          closed v9, 5 people
        01890a5d-ac96-774b-bcce-000000000012  – not checked: steps in order  rejected v6, 3 people
        01890a5d-ac96-774b-bcce-00000000001d  – not checked: steps in order  expired v3, 1 person

        not checked: whether title and payload fit the definition (entry 1, 10, 14, 18)
        not checked: whether the payload was complete (entry 2, 11, 16, 19)
        not checked: whether the comment said anything (entry 3, 9, 12, 17)
        not checked: whether the inputs allowed it (entry 5, 8)
        not checked: whether more votes were needed (entry 3)
        not checked: whether it was inside the window (entry 6)
        not checked: whether the window had ended (entry 6)

        The evidence holds AS FAR AS IT COULD BE CHECKED: documents were erased or left out. Not checked: witnesses, complete, times, as pinned, documents, by the rules, quorum, window, steps in order.
    "#]].assert_eq(&verdict.to_text());
    assert!(is_found(&smaller[..smaller.len() - 1]));
    assert_eq!(redact(&smaller, &Redaction::All).unwrap(), (smaller, Vec::new()));
}

#[test]
fn a_single_comment_can_be_left_out_and_the_rules_are_asked_all_the_same() {
    let ledger = small_ledger();
    let id = ledger.items.keys().next().unwrap();
    let entries = ledger.entries.iter().map(|bytes| serde_json::from_slice::<Entry>(bytes).unwrap());
    let comment = entries.filter(|entry| entry.item.as_ref() == Some(id)).find_map(|entry| entry.comment).unwrap();
    let only = Redaction::Documents(BTreeSet::from([comment.clone()]));
    let (smaller, left_out) = redact(&ledger.item_bundle(id), &only).unwrap();
    assert_eq!(left_out, [format!("documents/{}.json", &comment.as_str()[7..])]);
    let verdict = verify(&smaller, &trust());
    assert_eq!(faults(&verdict), "");
    assert!(!verdict.items[0].replayed);
    let questions: Vec<_> = verdict.unasked.iter().map(|open| (open.entry, open.question)).collect();
    assert_eq!(questions, [(3, Unasked::Comment)], "nothing else rests on it");
    assert_eq!(verdict.verdict, Conclusion::HoldsAsFarAsChecked);
    let unknown = ContentDigest::of_bytes(b"nothing");
    let refused = redact(&smaller, &Redaction::Documents(BTreeSet::from([unknown.clone()])));
    assert_eq!(refused, Err(RedactError::NoSuchDocument(unknown)));
}
