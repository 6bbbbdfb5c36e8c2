//! Changes of what goes into a bundle, before the log signs it, and of the bundle after that.

use pilot_core::time::Time;
use serde_json::json;

use super::{Choose, ORIGIN, key, role_map};
use crate::bundle::{Parts, Scope};
use crate::checkpoint::Checkpoint;
use crate::cosignature::{CosignerKey, CosignerVerifier};
use crate::merkle::Hash;
use crate::note::Note;

type Change = (&'static str, fn(&mut Parts, Choose<'_>));

const CHANGES: &[Change] = &[
    ("an entry withheld", withhold),
    ("an entry withheld", withhold),
    ("a role map withheld", |parts, choose| {
        if !parts.role_maps.is_empty() {
            parts.role_maps.remove(choose(parts.role_maps.len()));
        }
    }),
    ("a role map too many", |parts, _| parts.role_maps.push(role_map(&[]))),
    ("definitions withheld", |parts, _| parts.definitions.clear()),
    ("a document too many", |parts, _| parts.documents.push(json!({"comment": "a", "nonce": "b"}).to_string().into())),
    ("documents erased", |parts, choose| parts.documents.retain(|_| choose(2) == 0)),
    ("an entry written otherwise", respell),
    ("an entry written otherwise", respell),
    ("a proof changed", proof),
    ("a proof changed", proof),
    ("the checkpoint changed", checkpoint),
    ("the edge of the period changed", edge),
    ("the period changed", period),
    ("the period changed", period),
];

pub(super) fn change(parts: &mut Parts, choose: Choose<'_>) -> &'static str {
    let (name, change) = CHANGES[choose(CHANGES.len())];
    change(parts, choose);
    name
}

fn withhold(parts: &mut Parts, choose: Choose<'_>) {
    if parts.entries.is_empty() {
        return;
    }
    let at = choose(parts.entries.len());
    let entry: serde_json::Value = serde_json::from_slice(&parts.entries.remove(at)).unwrap();
    let index = entry["index"].as_u64().unwrap();
    if choose(4) > 0 {
        parts.proofs.retain(|(proved, _)| *proved != index);
    }
    if parts.entries.is_empty() {
        parts.documents.clear();
    }
}

/// The same entry, or nearly, in bytes that a ledger does not have.
fn respell(parts: &mut Parts, choose: Choose<'_>) {
    // A file of entries is named after the first one, which has to be read for that.
    let Some(bytes) = parts.entries.get_mut(1 + choose(8)) else { return };
    let text = String::from_utf8(bytes.clone()).unwrap();
    let changed = match choose(9) {
        0 => text.replacen('{', "{ ", 1),
        1 => text.replacen('{', "{\"a\":1,", 1),
        2 => text.replacen("\"at\"", "\"action\":null,\"at\"", 1),
        3 => text.replacen("\"v\":1", "\"v\":2", 1),
        4 => text.replacen("\"v\":1", "\"v\":0", 1),
        5 => text.replacen("\"v\":1", "\"v\":1,\"v\":1", 1),
        6 => text.replacen(".000000Z", "Z", 1),
        7 => text.replacen(".000000Z", "", 1),
        _ => text.replacen("\"index\":", "\"index\":-", 1),
    };
    *bytes = changed.into_bytes();
}

fn some_hash(choose: Choose<'_>) -> Hash {
    Hash::of_leaf(&[u8::try_from(choose(256)).unwrap()])
}

/// Adds, removes or replaces a hash.
fn change_hashes(hashes: &mut Vec<Hash>, choose: Choose<'_>) {
    let hash = some_hash(choose);
    match choose(3) {
        0 => hashes.push(hash),
        1 => drop(hashes.pop()),
        _ => {
            let length = hashes.len();
            if let Some(place) = hashes.get_mut(choose(length.max(1))) {
                *place = hash;
            }
        }
    }
}

fn proof(parts: &mut Parts, choose: Choose<'_>) {
    if parts.proofs.is_empty() {
        return parts.proofs.push((choose(9) as u64, vec![some_hash(choose)]));
    }
    let at = choose(parts.proofs.len());
    match choose(3) {
        0 => drop(parts.proofs.remove(at)),
        1 => parts.proofs[at].0 += 1_000,
        _ => change_hashes(&mut parts.proofs[at].1, choose),
    }
}

fn checkpoint(parts: &mut Parts, choose: Choose<'_>) {
    let text = Note::parse(&parts.checkpoint).unwrap().text;
    let old = Checkpoint::parse(text).unwrap();
    let new = match choose(3) {
        0 => Checkpoint { size: old.size + 1, ..old },
        1 => Checkpoint { root: some_hash(choose), ..old },
        _ => Checkpoint { origin: format!("not.{ORIGIN}"), ..old },
    };
    parts.checkpoint = new.sign(&key());
}

fn edge(parts: &mut Parts, choose: Choose<'_>) {
    let Some(period) = &mut parts.period else { return proof(parts, choose) };
    match choose(4) {
        0 => change_hashes(&mut period.edge, choose),
        1 => change_hashes(&mut period.consistency, choose),
        2 => std::mem::swap(&mut period.from, &mut period.to),
        _ => period.to.clone_from(&parts.checkpoint),
    }
}

/// It says that it begins or ends elsewhere.
fn period(parts: &mut Parts, choose: Choose<'_>) {
    let Some((first_entry, end_entry)) = range(parts) else { return withhold(parts, choose) };
    let Scope::Period { from, to, first, end } = &mut parts.scope else { return };
    let earlier = |time: Time, seconds: i64| Time::from_unix_micros(time.unix_micros() - seconds * 1_000_000);
    match choose(6) {
        0 => *to = earlier(*to, 2),
        1 => *to = earlier(*to, -100_000),
        2 => *from = earlier(*from, 100_000),
        3 => *from = earlier(*from, -2),
        4 => *end = end_entry.saturating_sub(1),
        _ => *first = first_entry + 1,
    }
}

fn witness(number: u8) -> CosignerKey {
    CosignerKey::generate(&format!("w{number}.example"), &[number; 32]).unwrap()
}

/// Cosignatures of some witnesses at some times, and a reader who trusts some of them and asks for so many.
pub(super) fn cosign(parts: &mut Parts, kept_at: &[u64], choose: Choose<'_>) -> (Vec<CosignerVerifier>, usize) {
    if choose(4) > 0 {
        return (Vec::new(), 0);
    }
    let now = u64::try_from(parts.made.unix_micros() / 1_000_000).unwrap_or(0);
    let cosigned = |note: &str, choose: Choose<'_>, now: u64| {
        let text = Note::parse(note).unwrap().text;
        let mut lines = String::new();
        for number in 1..=3_u8 {
            let time = now.saturating_sub([0, 0, 0, 0, 590, 1_000, 40_000_000][choose(7)]);
            lines += &match choose(8) {
                0 | 1 => continue,
                2 if choose(4) == 0 => witness(number).cosign("another text\n", time),
                _ => witness(number).cosign(text, time),
            };
            lines.push('\n');
        }
        note.to_owned() + &lines
    };
    parts.checkpoint = cosigned(&parts.checkpoint, choose, now);
    for ((_, note, _), at) in parts.kept.iter_mut().zip(kept_at) {
        *note = cosigned(note, choose, *at);
    }
    let witnesses: Vec<_> =
        (1..=u8::try_from(1 + choose(3)).unwrap()).map(|number| witness(number).verifier()).collect();
    let needed = choose(witnesses.len() + 1);
    (witnesses, needed)
}

/// The range of a period.
pub(super) fn range(parts: &Parts) -> Option<(u64, u64)> {
    match parts.scope {
        Scope::Item(_) => None,
        Scope::Period { first, end, .. } => Some((first, end)),
    }
}

/// A few bytes changed, added or lost.
pub(super) fn damage(mut bundle: Vec<u8>, choose: Choose<'_>) -> Vec<u8> {
    let at = choose(bundle.len());
    match choose(4) {
        0 => bundle[at] ^= 1 << choose(8),
        1 => bundle.insert(at, 0),
        2 => drop(bundle.remove(at)),
        _ => bundle.truncate(at),
    }
    bundle
}
