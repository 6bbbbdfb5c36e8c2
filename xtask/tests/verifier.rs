//! The verifier is small enough to read: what it links is counted.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Without JSON Schema, which judges payloads (docs/adr/0049-what-the-verifier-links.md).
const OWN_MAX: usize = 48;
const ALL_MAX: usize = 96;
const JSON_SCHEMA: &str = "jsonschema";
/// Drawing and explaining is for those who write definitions.
const NOT_LINKED: [&str; 4] = ["pilot-explain", "dagre", "annotate-snippets", "clap"];

#[test]
fn the_verifier_links_few_crates_and_none_that_draw_or_explain() {
    let all = linked();
    assert!(all.contains("pilot-core") && all.contains(JSON_SCHEMA), "the tree has gone somewhere else: {all:?}");
    let own = without(JSON_SCHEMA);
    assert!(own.len() <= OWN_MAX, "{} crates besides {JSON_SCHEMA} and what it brings: {own:?}", own.len());
    assert!(all.len() <= ALL_MAX, "{} crates: {all:?}", all.len());
    for name in NOT_LINKED {
        assert!(!all.contains(name), "the verifier links {name}");
    }
}

/// Each line of the tree: how deep it is, and a crate with its version.
fn tree() -> Vec<(usize, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let options = ["--package", "pilot-verify", "--edges", "normal", "--prefix", "depth", "--no-dedupe", "--offline"];
    let output = Command::new(env!("CARGO")).arg("tree").args(options).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |line: &str| {
        let name_at = line.find(|sign: char| !sign.is_ascii_digit()).unwrap();
        let (depth, rest) = line.split_at(name_at);
        (depth.parse().unwrap(), rest.split(' ').take(2).collect::<Vec<_>>().join(" "))
    };
    String::from_utf8(output.stdout).unwrap().lines().map(read).collect()
}

fn linked() -> BTreeSet<String> {
    names(tree().into_iter().map(|(_, name)| name))
}

/// Without one crate, and what is linked for its sake only.
fn without(left_out: &str) -> BTreeSet<String> {
    let mut below: Option<usize> = None;
    let kept = tree().into_iter().filter(|(depth, name)| {
        if below.is_some_and(|above| *depth <= above) {
            below = None;
        }
        if below.is_none() && name.split(' ').next() == Some(left_out) {
            below = Some(*depth);
        }
        below.is_none()
    });
    names(kept.map(|(_, name)| name))
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
