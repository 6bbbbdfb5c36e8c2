//! The verifier is small enough to read: what it links is counted.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// docs/adr/0054-our-own-judge-of-payloads.md.
const CRATES_MAX: usize = 49;
/// Drawing and explaining is for those who write definitions; `jsonschema` is for the tests of our own judge.
const NOT_LINKED: [&str; 5] = ["pilot-explain", "dagre", "annotate-snippets", "clap", "jsonschema"];

#[test]
fn the_verifier_links_few_crates_and_none_that_draw_or_explain() {
    for package in ["pilot-verify", "pilot-verify-web"] {
        let all = linked(package);
        assert!(all.contains("pilot-core") && all.contains("serde_json"), "the tree has gone somewhere else: {all:?}");
        assert!(all.len() <= CRATES_MAX, "{} crates: {all:?}", all.len());
        for name in NOT_LINKED {
            assert!(!all.contains(name), "{package} links {name}");
        }
    }
}

/// Each crate of the tree, with its version.
fn linked(package: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let options = ["--package", package, "--edges", "normal", "--prefix", "none", "--no-dedupe", "--offline"];
    let output = Command::new(env!("CARGO")).arg("tree").args(options).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    names(lines.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")))
}

/// By name where there is one version, by name and version for a second one.
fn names(crates: impl Iterator<Item = String>) -> BTreeSet<String> {
    let all: BTreeSet<_> = crates.collect();
    let mut seen = BTreeSet::new();
    all.into_iter()
        .map(|one| {
            let name = one.split(' ').next().unwrap().to_owned();
            if seen.insert(name.clone()) { name } else { one }
        })
        .collect()
}
