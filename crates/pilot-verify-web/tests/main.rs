//! The verifier as a page calls it, on the machine that builds it. `console/src/verifier/verifier.test.ts` runs the
//! file for browsers, and compares it with the program.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use expect_test::{Expect, expect};
use pilot_core::visible::visible_json;
use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::sample::{key, small_ledger};
use pilot_evidence::verify::{Trust, verify};
use pilot_verify_web::answer;
use pilot_verify_web::exports::{pilot_answer, pilot_room, pilot_verify};

fn settings(more: &str) -> Vec<u8> {
    format!("{{\"key\":\"{}\"{more}}}", key().verifier()).into_bytes()
}

fn check(settings: &[u8], expected: &Expect) {
    expected.assert_eq(&answer(settings, b""));
}

#[test]
fn the_answer_is_the_verdict_as_the_program_prints_it() {
    let ledger = small_ledger();
    let whole = ledger.period_bundle(0, ledger.size());
    let (redacted, _) = redact(&whole, &Redaction::All).unwrap();
    let mut changed = whole.clone();
    changed[100] ^= 1;
    let cases = [(whole, "\"holds\""), (redacted, "\"holds_as_far_as_checked\""), (changed, "\"does_not_hold\"")];
    for (bundle, verdict) in cases {
        let given = answer(&settings(""), &bundle);
        assert_eq!(given, visible_json(&verify(&bundle, &Trust::log(key().verifier())).to_json()));
        assert!(given.contains(&format!("\"verdict\": {verdict}")), "{given}");
    }
}

#[test]
fn what_is_not_a_bundle_gets_a_verdict_too() {
    for bundle in [&b""[..], b"PK\x05\x06", b"not a zip file at all"] {
        assert!(answer(&settings(""), bundle).contains("\"verdict\": \"does_not_hold\""));
    }
}

#[test]
fn wrong_settings_are_refused_with_the_option_they_belong_to() {
    let line = key().verifier().to_string();
    check(
        br#"{"key":"log.pub"}"#,
        &expect![[
            r#"{"refused":{"option":"key","what":"this is not a verifier key: it should be one line, name+id+base64"}}"#
        ]],
    );
    check(
        format!("{{\"key\":\"{}\"}}", line.replace("+ARl", "+ARk")).as_bytes(),
        &expect![[
            r#"{"refused":{"option":"key","what":"the key does not match its id; the line was changed or cut off"}}"#
        ]],
    );
    check(
        &settings(r#","witness_keys":["a file"]"#),
        &expect![[
            r#"{"refused":{"option":"witness-key","what":"this is not a verifier key: it should be one line, name+id+base64"}}"#
        ]],
    );
    check(
        &settings(&format!(r#","witness_keys":["{line}"]"#)),
        &expect![[
            r#"{"refused":{"option":"witness-key","what":"the key has the wrong type: a log signs with Ed25519 (1), a witness with Ed25519 cosignatures (4)"}}"#
        ]],
    );
    check(
        &settings(r#","witnesses":1"#),
        &expect![[r#"{"refused":{"option":"witnesses","what":"1 are required, but 0 keys are given"}}"#]],
    );
    check(
        br#"{"key":"a+b+c","unknown":1}"#,
        &expect![[
            r#"{"refused":{"option":"settings","what":"unknown field `unknown`, expected one of `key`, `witness_keys`, `witnesses` at line 1 column 24"}}"#
        ]],
    );
}

#[test]
fn room_is_made_for_each_part_and_refused_where_there_is_none() {
    assert!(!pilot_room(0, 10).is_null());
    assert!(!pilot_room(1, 1 << 20).is_null());
    assert!(pilot_room(1, usize::MAX).is_null());
    assert!(pilot_room(2, 1).is_null());
}

#[test]
fn zeros_for_settings_are_answered_like_any_other_wrong_ones() {
    pilot_room(0, 3);
    pilot_room(1, 3);
    assert!(pilot_verify() > 0);
    assert!(!pilot_answer().is_null());
}
