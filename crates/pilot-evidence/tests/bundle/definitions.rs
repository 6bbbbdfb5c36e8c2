//! Definitions in a bundle: as canonical JSON for verifiers, and as text for people.

use expect_test::expect;
use pilot_core::document::ContentDigest;
use pilot_core::workflow::builtin::{EMERGENCY_OPERATION, builtin};
use pilot_evidence::bundle::zip::read;
use pilot_evidence::bundle::{BundleWriter, assemble, definition_path, definition_text_path};
use pilot_evidence::sample::{key, small_ledger};
use pilot_evidence::verify::{Verdict, verify};

use crate::bundle::verdicts::{faults, trust};

/// The verdict on a bundle with other files, signed by the log all the same.
fn verdict(instead: impl Fn(&str, &[u8]) -> Vec<(String, Vec<u8>)>) -> Verdict {
    let ledger = small_ledger();
    let parts = ledger.item_parts(ledger.items.keys().next().unwrap());
    let bundle = assemble(&parts, &key()).unwrap();
    let mut writer = BundleWriter::new(parts.scope.clone(), parts.made);
    for file in read(&bundle).unwrap().into_iter().filter(|file| file.path != "manifest") {
        for (path, bytes) in instead(file.path, file.bytes) {
            writer.add(&path, &bytes).unwrap();
        }
    }
    verify(&writer.finish(&key()).unwrap(), &trust())
}

fn as_it_is(path: &str, bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    vec![(path.to_owned(), bytes.to_vec())]
}

/// The verdict on a bundle without some of its files.
fn without(left_out: &[&str]) -> Verdict {
    verdict(|path, bytes| if left_out.contains(&path) { Vec::new() } else { as_it_is(path, bytes) })
}

#[test]
fn a_definition_is_there_as_json_and_as_text_and_either_is_enough() {
    let [definition, _] = builtin();
    let (json, text) = (definition_path(definition.digest()), definition_text_path(definition.digest()));
    assert_eq!(faults(&without(&[])), "");
    // As bundles were before they had the JSON.
    assert_eq!(faults(&without(&[&json])), "");
    assert_eq!(faults(&without(&[&text])), "");
    let neither = without(&[&json, &text]);
    assert!(faults(&neither).contains("is not in the bundle [definition]"), "{}", faults(&neither));
}

#[test]
fn a_text_that_says_something_else_than_the_json_is_found() {
    let [definition, _] = builtin();
    let text = definition_text_path(definition.digest());
    let other = verdict(|path, bytes| {
        let is_text = path == text;
        as_it_is(path, if is_text { EMERGENCY_OPERATION.as_bytes() } else { bytes })
    });
    assert!(faults(&other).contains("its rules have the digest"), "{}", faults(&other));
}

#[test]
fn json_that_is_not_canonical_or_not_named_by_its_digest_is_found() {
    let [definition, _] = builtin();
    let json = definition_path(definition.digest());
    let with_space = |bytes: &[u8]| [b" ".as_slice(), bytes].concat();
    let not_canonical = verdict(|path, bytes| {
        let spaced = with_space(bytes);
        let renamed = definition_path(ContentDigest::of_bytes(&spaced).as_str());
        if path == json { vec![(renamed, spaced)] } else { as_it_is(path, bytes) }
    });
    expect![[r#"
        definitions/ebd758ae1f428d5c71a2309504b720de2a42de3053582e679368eb703248d890.json: this is not in canonical form, so its SHA-256 is not the digest of its rules [format]
    "#]].assert_eq(&faults(&not_canonical));
    let misnamed =
        verdict(|path, bytes| as_it_is(path, &if path == json { with_space(bytes) } else { bytes.to_vec() }));
    expect![[r#"
        definitions/83435355fec8619aeca46414354f2f4296d3b7c276625092787916dcb7c8efd7.json: its bytes have the digest sha256:ebd758ae1f428d5c71a2309504b720de2a42de3053582e679368eb703248d890 [format]
    "#]].assert_eq(&faults(&misnamed));
}
