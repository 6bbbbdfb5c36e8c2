//! Bundles as chance has them, most of them forged: for comparing verifiers with each other.
//!
//! Everything is signed with the log's own key, except where the container itself is damaged, so only the rules can
//! refuse it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use pilot_core::document::ContentDigest;
use serde_json::json;

use super::days::attempt;
use super::forgeries::{CLEARED, Forgery, Named, STARTED, forge, forgeries};
use super::{Choose, Leaves, Ledger, entries, files, head, key, variants};
use crate::bundle::redact::{Redaction, redact};
use crate::bundle::{Parts, assemble};
use crate::cosignature::CosignerVerifier;
use crate::proof::consistency;
use crate::verify::{Trust, verify};

/// A bundle, and which witnesses its reader trusts.
pub struct Case {
    /// What was done to it.
    pub name: String,
    pub bundle: Vec<u8>,
    pub witnesses: Vec<CosignerVerifier>,
    pub needed: usize,
}

impl Case {
    pub fn make(choose: Choose<'_>) -> Case {
        let (mut name, ledger) = ledger(choose);
        let mut parts = scope(&ledger, choose);
        if choose(4) == 0 {
            name = format!("{name}, {}", files::change(&mut parts, choose));
        }
        let kept_at = if choose(4) == 0 { keep(&ledger, &mut parts, choose) } else { Vec::new() };
        let (witnesses, needed) = files::cosign(&mut parts, &kept_at, choose);
        // A change may ask for a file twice; then there is no bundle to compare.
        let Ok(bundle) = assemble(&parts, &key()) else { return Case::make(choose) };
        let (after, bundle) = finished(bundle, &ledger, choose);
        Case { name: name + after, bundle, witnesses, needed }
    }
}

/// Made once: they are always the same.
static FORGERIES: LazyLock<Vec<Named>> = LazyLock::new(forgeries);

fn ledger(choose: Choose<'_>) -> (String, Ledger) {
    if choose(6) == 0 {
        let (name, _, forgery) = &FORGERIES[choose(FORGERIES.len())];
        return ((*name).to_owned(), forgery.ledger.clone());
    }
    if choose(4) == 0 {
        let mut ledger = far_along(choose);
        let name = entries::change(&mut ledger, choose);
        return (name, ledger);
    }
    let mut ledger = Ledger::default();
    if choose(3) == 0 {
        variants::define(&mut ledger, choose);
    }
    while ledger.items.is_empty() || choose(60) > 0 {
        attempt(&mut ledger, choose);
    }
    let name = match choose(8) {
        0 => "within the rules".to_owned(),
        1 | 2 => {
            forge(&mut ledger, choose);
            "a forced move".to_owned()
        }
        _ => entries::change(&mut ledger, choose),
    };
    (name, ledger)
}

/// An operation that has come a long way, which chance alone seldom brings about.
fn far_along(choose: Choose<'_>) -> Ledger {
    let started = Forgery::new("low").all(&STARTED);
    let forgery = match choose(6) {
        0 => Forgery::new("low").all(&CLEARED),
        1 => started,
        2 => started.all(&[("eve", "heartbeat"), ("eve", "succeed")]),
        3 => started.all(&[("eve", "fail"), ("eve", "retry"), ("eve", "fail"), ("eve", "roll_back")]),
        4 => started.all(&[("eve", "succeed"), ("ben", "accept")]),
        _ => Forgery::emergency(),
    };
    forgery.ledger
}

/// Of the whole ledger, of a period, or of one item.
fn scope(ledger: &Ledger, choose: Choose<'_>) -> Parts {
    let ids: Vec<_> = ledger.items.keys().collect();
    let size = ledger.entries.len();
    match choose(4) {
        0 => ledger.item_parts(ids[choose(ids.len())]),
        1 => {
            let first = choose(size);
            ledger.period_parts(first as u64, (first + 1 + choose(size - first)) as u64)
        }
        _ => ledger.period_parts(0, size as u64),
    }
}

/// Older checkpoints, and when they were signed; sometimes with nothing that proves them, or with the wrong thing.
fn keep(ledger: &Ledger, parts: &mut Parts, choose: Choose<'_>) -> Vec<u64> {
    let (leaves, size) = (ledger.leaves(), ledger.size());
    let sizes: BTreeSet<u64> = (0..=choose(3)).map(|_| 1 + choose(ledger.entries.len()) as u64).collect();
    for kept in &sizes {
        let is_shown = *kept == size || files::range(parts).is_some_and(|(first, end)| (first..=end).contains(kept));
        let proof = consistency(&Leaves(&leaves), *kept, size).unwrap();
        let proof = if is_shown && choose(6) > 0 { None } else { Some(proof) };
        let other = 1 + choose(ledger.entries.len()) as u64;
        let (note, proof) = match choose(8) {
            0 => (head(&leaves, other), proof),
            1 => (head(&leaves, *kept), None),
            2 => (head(&leaves, *kept), Some(vec![leaves[0]])),
            _ => (head(&leaves, *kept), proof),
        };
        parts.kept.push((*kept, note, proof));
    }
    // Some ledgers begin before 1970, and cosignatures cannot.
    let seconds = |size: &u64| u64::try_from(ledger.read(size - 1).at.unix_micros() / 1_000_000).unwrap_or(0);
    sizes.iter().map(seconds).collect()
}

/// Some content left out, or a byte changed, or as it is.
fn finished(bundle: Vec<u8>, ledger: &Ledger, choose: Choose<'_>) -> (&'static str, Vec<u8>) {
    match choose(8) {
        0..3 => {
            let (smaller, _) = redact(&bundle, &Redaction::All).unwrap();
            (", without its documents", smaller)
        }
        3 | 4 => {
            let digests: Vec<ContentDigest> = ledger.documents.keys().cloned().collect();
            let mut smaller = bundle;
            for digest in digests.into_iter().filter(|_| choose(2) == 0) {
                let one = Redaction::Documents([digest].into());
                // Not every document is in every bundle.
                if let Ok((without, _)) = redact(&smaller, &one) {
                    smaller = without;
                }
            }
            (", without some documents", smaller)
        }
        5 if choose(4) == 0 => (", damaged", files::damage(bundle, choose)),
        _ => ("", bundle),
    }
}

/// The verdict on a case as one line of JSON, for whoever compares.
pub fn line(case: &Case) -> String {
    let trust = Trust::witnessed(key().verifier(), case.witnesses.clone(), case.needed);
    let verdict = verify(&case.bundle, &trust);
    let faults: Vec<_> = verdict.faults.iter().map(|fault| json!([fault.rule, fault.entry])).collect();
    let unasked: Vec<_> = verdict.unasked.iter().map(|open| json!([open.entry, open.question])).collect();
    let witnesses: Vec<_> = case.witnesses.iter().map(ToString::to_string).collect();
    json!({
        "name": case.name,
        "key": trust.key.to_string(),
        "witness_keys": witnesses,
        "witnesses": case.needed,
        "verdict": verdict.verdict,
        "gaps": verdict.gaps,
        "faults": faults,
        "unasked": unasked,
        "what": verdict.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
    .to_string()
}
