//! The program as its user runs it.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::process::Command;

use data_encoding::BASE64;
use expect_test::{ExpectFile, expect, expect_file};
use pilot_core::role::Role;
use pilot_evidence::sample::{Ledger, actor, as_role, key, payload, small_ledger};
use pilot_testing::Scratch;

fn file(scratch: &Scratch, name: &str, bytes: &[u8]) -> String {
    scratch.write(name, bytes).to_string_lossy().into_owned()
}

/// Exit code, standard output and standard error.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_pilot-verify")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

#[test]
fn a_bundle_that_holds_ends_with_0_and_a_changed_one_with_1() {
    let scratch = Scratch::new();
    let ledger = small_ledger();
    let bundle = ledger.period_bundle(0, ledger.size());
    let whole = file(&scratch, "whole.zip", &bundle);
    let line = key().verifier().to_string();
    let key_file = file(&scratch, "log.pub", format!("{line}\n").as_bytes());
    for key in [&line, &key_file] {
        let (code, out, err) = run(&[&whole, "--key", key]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.ends_with("The evidence holds. Not checked: witnesses, complete, times, as pinned.\n"), "{out}");
    }
    let mut changed = bundle;
    changed[100] ^= 1;
    let changed = file(&scratch, "changed.zip", &changed);
    let (code, out, _) = run(&["--key", &line, &changed]);
    assert_eq!(code, 1);
    expect!["The evidence does NOT hold: checkpoint: its bytes were changed: they do not match the hash in the manifest [files]"].assert_eq(out.lines().last().unwrap());
    let (code, out, _) = run(&[&changed, "--key", &line, "--output", "json"]);
    assert_eq!(code, 1);
    assert!(out.starts_with("{\n  \"holds\": false,"), "{out}");
}

#[test]
fn a_bundle_with_documents_left_out_ends_with_4_unless_that_is_allowed() {
    use pilot_evidence::bundle::redact::{Redaction, redact};
    let scratch = Scratch::new();
    let ledger = small_ledger();
    let (smaller, _) = redact(&ledger.period_bundle(0, ledger.size()), &Redaction::All).unwrap();
    let (smaller, line) = (file(&scratch, "smaller.zip", &smaller), key().verifier().to_string());
    let (code, out, err) = run(&[&smaller, "--key", &line]);
    assert_eq!((code, err.as_str()), (4, ""), "{out}");
    assert!(out.contains("The evidence holds AS FAR AS IT COULD BE CHECKED"), "{out}");
    let (code, out, _) = run(&[&smaller, "--key", &line, "--output", "json"]);
    assert_eq!(code, 4);
    assert!(out.contains("\"verdict\": \"holds_as_far_as_checked\""), "{out}");
    assert_eq!(run(&[&smaller, "--key", &line, "--allow-left-out"]).0, 0);
}

#[test]
fn wrong_usage_ends_with_2_and_a_missing_file_with_3() {
    let scratch = Scratch::new();
    let line = key().verifier().to_string();
    let bundle = file(&scratch, "b.zip", b"");
    let check = |code: i32, arguments: &[&str], said: &str| {
        let (ended, out, err) = run(arguments);
        assert_eq!((ended, out.as_str()), (code, ""), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
    };
    check(2, &[&bundle], "--key KEY is needed, or --policy FILE");
    check(2, &["--key", &line], "a bundle and --key are needed");
    check(2, &[&bundle, "--key"], "--key needs a value");
    check(2, &[&bundle, "--key", &line, "--what"], "not recognised");
    check(2, &[&bundle, "--key", &line, &bundle], "not recognised");
    check(2, &[&bundle, "--key", &line.replace("+ARl", "+ARk")], "--key: ");
    check(2, &[&bundle, "--key", &line, "--witness-key", &line], "has the wrong type");
    check(2, &[&bundle, "--key", &line, "--witnesses", "1"], "1 are required, but 0 keys are given");
    check(2, &[&bundle, "--key", "xx"], "--key: neither a key");
    check(2, &[&bundle, "--key", "nowhere.pub"], "nowhere.pub");
    check(3, &[&bundle, "--key", "/"], "--key: neither a key");
    check(3, &["nowhere.zip", "--key", &line], "nowhere.zip");
    let (code, out, _) = run(&[&bundle, "--key", &line]);
    assert_eq!(code, 1);
    expect![
        "The evidence does NOT hold: the bundle: byte 0: this is not a bundle: it does not begin with a file [container]"
    ]
    .assert_eq(out.lines().last().unwrap());
    assert_eq!(run(&["--help"]).0, 0);
}

/// Bundles and what is said about them, for readers in other languages: the browser's verifier must give the same answer
/// to the byte (`console/src/verifier/verifier.test.ts`). `UPDATE_EXPECT=1` writes them.
#[test]
fn what_is_said_about_four_bundles_is_kept_for_other_readers() {
    use pilot_evidence::bundle::redact::{Redaction, redact};
    let ledger = small_ledger();
    let whole = ledger.item_bundle(ledger.items.keys().next().unwrap());
    let (redacted, _) = redact(&whole, &Redaction::All).unwrap();
    let mut changed = whole.clone();
    changed[100] ^= 1;
    keep(&whole, 0, &expect_file!["bundles/whole.base64"], &expect_file!["bundles/whole.json"]);
    keep(&redacted, 4, &expect_file!["bundles/redacted.base64"], &expect_file!["bundles/redacted.json"]);
    keep(&changed, 1, &expect_file!["bundles/changed.base64"], &expect_file!["bundles/changed.json"]);
    keep(&forged(), 1, &expect_file!["bundles/forged.base64"], &expect_file!["bundles/forged.json"]);
    expect_file!["bundles/log.pub"].assert_eq(&(key().verifier().to_string() + "\n"));
}

/// Signed by the log itself, and yet against the rules: someone approves what they proposed. Its title hides something.
fn forged() -> Vec<u8> {
    let mut ledger = Ledger::default();
    let title = "Remove \u{202e}nothing";
    let id = ledger.create("controlled-operation", &actor("ana"), title, payload("low")).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", serde_json::Value::Null).unwrap();
    ledger.force(&id, Some(&as_role("ana", Role::Approver)), |entry| {
        entry.action = Some("approve".into());
        entry.to = Some("approved".into());
    });
    ledger.item_bundle(&id)
}

fn keep(bundle: &[u8], code: i32, bytes: &ExpectFile, said: &ExpectFile) {
    let scratch = Scratch::new();
    let path = file(&scratch, "bundle.zip", bundle);
    let (ended, out, err) = run(&[&path, "--key", &key().verifier().to_string(), "--output", "json"]);
    assert_eq!((ended, err.as_str()), (code, ""), "{out}");
    bytes.assert_eq(&(BASE64.encode(bundle) + "\n"));
    said.assert_eq(&out);
}
