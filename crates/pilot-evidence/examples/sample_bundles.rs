//! Writes bundles of a made-up ledger, to try the verifier and look at the report:
//! `cargo run -p pilot-evidence --features report,sample --example sample_bundles -- DIRECTORY`; and, with `vectors` after
//! the directory, the test vectors in the docs instead.
#![allow(clippy::unwrap_used, reason = "an example stops at the first surprise")]

use std::path::PathBuf;

use pilot_evidence::report::{assemble_with_report, report};
use pilot_evidence::sample::vectors::{index, vectors};
use pilot_evidence::sample::{Ledger, key, small_ledger};
use pilot_evidence::verify::Trust;

fn main() {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap());
    if std::env::args().nth(2).as_deref() == Some("vectors") {
        let vectors = vectors();
        for vector in &vectors {
            std::fs::write(directory.join(vector.file()), &vector.bundle).unwrap();
        }
        return std::fs::write(directory.join("index.json"), index(&vectors)).unwrap();
    }
    let (key, trust) = (key(), Trust::log(key().verifier()));
    let ledger = small_ledger();
    let first = ledger.items.keys().next().unwrap();
    let mut large = Ledger::default();
    while large.size() < 10_000 {
        large.whole_operation("One of many", if large.size() % 2 == 0 { "low" } else { "high" });
    }
    let bundles = [
        ("item", ledger.item_parts(first)),
        ("period", ledger.period_parts(0, ledger.size())),
        ("large", large.period_parts(0, large.size())),
    ];
    for (name, parts) in bundles {
        let bundle = assemble_with_report(&parts, &key, &trust).unwrap();
        std::fs::write(directory.join(format!("{name}.html")), report(&bundle, &trust).unwrap()).unwrap();
        std::fs::write(directory.join(format!("{name}.zip")), bundle).unwrap();
    }
    std::fs::write(directory.join("log.pub"), key.verifier().to_string() + "\n").unwrap();
}
