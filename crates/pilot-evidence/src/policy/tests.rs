//! Policies as the specification writes them, and every way to get one wrong.

use super::*;
use crate::cosignature::CosignerKey;
use crate::note::NoteKey;

fn log(seed: u8) -> String {
    NoteKey::generate(&format!("log{seed}.example"), &[seed; 32]).unwrap().verifier().to_string()
}

fn witness(seed: u8) -> String {
    CosignerKey::generate(&format!("w{seed}.example"), &[seed; 32]).unwrap().verifier().to_string()
}

/// Replaces `LOG1` and `W1` and their like by keys.
fn written(text: &str) -> String {
    let mut text = text.to_owned();
    for seed in 1..=6 {
        text = text.replace(&format!("LOG{seed}"), &log(seed)).replace(&format!("KEY{seed}"), &witness(seed));
    }
    text
}

fn parse(text: &str) -> Result<Policy, PolicyError> {
    Policy::parse(written(text).as_bytes())
}

const TWO_LEVELS: &str = "# two organisations\nlog LOG1\n\nwitness X1 KEY1\nwitness X2\tKEY2 https://x2.example/\n  witness X3 KEY3\ngroup X 2 X1 X2 X3\nwitness Y1 KEY4\nwitness Y2 KEY5\ngroup Y any Y1 Y2\ngroup both all X Y\nquorum both\n";

#[test]
fn the_specifications_example_needs_two_of_one_group_and_one_of_the_other() {
    let policy = parse(TWO_LEVELS).unwrap();
    let at = |times: [u64; 5]| policy.vouched_at(&times.map(|time| Some(time).filter(|time| *time > 0)));
    assert_eq!(at([1, 1, 0, 1, 0]), Some(1));
    assert_eq!(at([1, 0, 0, 1, 1]), None, "one of the first group is too few");
    assert_eq!(at([1, 1, 1, 0, 0]), None, "none of the second group");
    assert_eq!(at([10, 30, 20, 5, 25]), Some(20), "the latest moment that the whole quorum vouches for");
    assert_eq!(at([9_999, 3, 2, 5, 1]), Some(3), "one witness cannot postdate it");
}

#[test]
fn a_quorum_can_be_one_witness_or_none() {
    let one = parse("log LOG1\nwitness w KEY1\nwitness v KEY2\nquorum w").unwrap();
    assert_eq!(one.vouched_at(&[None, Some(7)]), None);
    assert_eq!(one.vouched_at(&[Some(3), Some(7)]), Some(3));
    assert!(one.requires_witnesses());
    let none = parse("log LOG1\nlog LOG2 https://two.example\nquorum none\n").unwrap();
    assert!(!none.requires_witnesses());
    assert_eq!(none.logs().len(), 2);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (text, line, said) in [
        ("log LOG1\n", 1, "no quorum line"),
        ("quorum none\n", 1, "no log line"),
        ("log LOG1\r\nquorum none\n", 1, "control character"),
        ("log LOG1\nquorum none\nquorum none\n", 3, "second quorum"),
        ("log LOG1\nlog LOG1\nquorum none\n", 2, "already in the policy"),
        ("log LOG1\nwitness a KEY1\nwitness b KEY1\nquorum a\n", 3, "already in the policy"),
        ("log LOG1\nwitness a KEY1\nwitness a KEY2\nquorum a\n", 3, "already in use"),
        ("log LOG1\nwitness none KEY1\nquorum none\n", 2, "already in use"),
        ("log LOG1\nquorum a\nwitness a KEY1\n", 2, "no witness or group above this line has the name a"),
        ("log LOG1\nwitness a KEY1\ngroup g 2 a\nquorum g\n", 3, "threshold"),
        ("log LOG1\nwitness a KEY1\ngroup g 0 a\nquorum g\n", 3, "threshold"),
        ("log LOG1\nwitness a KEY1\ngroup g 01 a\nquorum g\n", 3, "threshold"),
        ("log LOG1\nwitness a KEY1\ngroup g some a\nquorum g\n", 3, "threshold"),
        ("log LOG1\nwitness a KEY1\ngroup g any\nquorum g\n", 3, "write it as: group NAME"),
        ("log LOG1\nwitness a KEY1\ngroup g any a a\nquorum g\n", 3, "already a member"),
        ("log LOG1\nwitness a KEY1\ngroup g any a\ngroup h any a\nquorum h\n", 4, "already a member"),
        ("log LOG1\nwitness a KEY1\ngroup g any none\nquorum g\n", 3, "has the name none"),
        ("log KEY1\nquorum none\n", 1, "wrong type"),
        ("log LOG1\nwitness a LOG2\nquorum a\n", 2, "wrong type"),
        ("log LOG1x\nquorum none\n", 1, "not a verifier key"),
        ("log\nquorum none\n", 1, "write it as: log KEY"),
        ("log LOG1 u v\nquorum none\n", 1, "write it as: log KEY"),
        ("logs LOG1\nquorum none\n", 1, "unknown word"),
        ("log LOG1\nquorum\n", 2, "write it as: quorum NAME"),
        ("log LOG1\nquorum none # really\n", 2, "write it as: quorum NAME"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.line == line && error.to_string().contains(said), "{text:?}: {error}");
    }
    let long = format!("log {}\nquorum none\n#{}\n", log(1), "x".repeat(POLICY_BYTES_MAX));
    assert!(Policy::parse(long.as_bytes()).unwrap_err().to_string().contains("longer than"));
    let many: String = (0..=LINES_OF_A_KIND_MAX)
        .map(|seed| format!("log {}\n", log(u8::try_from(seed).unwrap())))
        .chain(["quorum none\n".to_owned()])
        .collect();
    assert!(Policy::parse(many.as_bytes()).unwrap_err().to_string().contains("more than"));
}

#[test]
fn names_are_bytes_and_need_no_encoding() {
    let (before, after) = (written("log LOG1\nwitness "), written("KEY1\nquorum "));
    let text = [before.as_bytes(), b"\xff\xfe ", after.as_bytes(), b"\xff\xfe\n"];
    assert!(Policy::parse(&text.concat()).unwrap().requires_witnesses());
}
