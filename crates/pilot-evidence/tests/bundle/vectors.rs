//! The test vectors in the docs are the ones that are generated, byte for byte.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pilot_evidence::sample::vectors::{Vector, index, vectors};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/audit/vectors")
}

#[test]
fn the_vectors_in_the_docs_are_the_ones_that_are_generated() {
    let (directory, vectors) = (directory(), vectors());
    let mut files: Vec<_> = vectors.iter().map(|vector| (vector.file(), vector.bundle.clone())).collect();
    files.push(("index.json".to_owned(), index(&vectors).into_bytes()));
    let names: BTreeSet<_> = files.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names.len(), files.len(), "two vectors have the same name");
    let there = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.filter(|name| name != "README.md").collect::<BTreeSet<_>>(), names);
    for (name, bytes) in files {
        let stored = std::fs::read(directory.join(&name)).unwrap();
        assert!(stored == bytes, "{name} differs; the example `sample_bundles` writes it again");
    }
}

#[test]
fn each_kind_of_verdict_is_among_the_vectors_and_names_say_which() {
    let vectors = vectors();
    let of = |name: &str| vectors.iter().find(|vector| vector.name == name).unwrap().answer();
    for name in [
        "item",
        "period",
        "period-in-the-middle",
        "emergency",
        "machine-proposes",
        "machine-approves",
        "timestamped",
        "cosigned",
        "dated",
        "no-entries",
    ] {
        assert_eq!(of(name)["verdict"], "holds", "{}", of(name));
    }
    for name in ["without-documents", "without-one-document", "end-not-seen"] {
        assert_eq!(of(name)["verdict"], "holds_as_far_as_checked", "{}", of(name));
    }
    let forged = vectors.iter().filter(|vector| vector.name.starts_with("forged-")).map(Vector::answer);
    for answer in forged {
        let what = answer["what"].as_str().unwrap();
        let rules =
            answer["faults"].as_array().unwrap().iter().map(|fault| format!("[{}]", fault["rule"].as_str().unwrap()));
        assert!(rules.clone().any(|rule| what.ends_with(&rule)), "{answer}");
    }
    for name in [
        "start-withheld",
        "version-withheld",
        "neighbour-withheld",
        "proof-of-another",
        "flipped-bit",
        "cut-off",
        "stranger",
        "credential-removed",
        "dated-2099",
        "backdated",
        "fork",
        "not-cosigned",
        "timer-with-a-comment",
        "document-member-twice",
        "document-with-spaces",
        "document-member-unknown",
        "document-short-nonce",
        "document-not-json",
    ] {
        assert_eq!(of(name)["verdict"], "does_not_hold", "{}", of(name));
    }
}
