//! Bundles that someone, or something, has changed.

use pilot_evidence::bundle::zip::{Packed, ZipWriter, read};
use pilot_evidence::sample::small_ledger;
use pilot_evidence::verify::{Check, verify};
use pilot_testing::Dice;

use crate::bundle::verdicts::{faults, trust};

const CHANGES: u32 = 500;

/// A small generator: a seed gives the same choices everywhere.
/// Two different numbers.
fn two_below(dice: &mut Dice, end: usize) -> (usize, usize) {
    let one = dice.below(end);
    (one, (one + 1 + dice.below(end - 1)) % end)
}

/// Whether a changed bundle is refused, and the place is named.
pub fn is_found(bundle: &[u8]) -> bool {
    let verdict = verify(bundle, &trust());
    let named = |text: &str| {
        text.contains("byte ") || text.contains('/') || text.contains("manifest") || text.contains("checkpoint")
    };
    !verdict.holds && !verdict.faults.is_empty() && named(&faults(&verdict))
}

fn repacked<'b>(files: impl IntoIterator<Item = Packed<'b>>) -> Vec<u8> {
    let mut zip = ZipWriter::default();
    for file in files {
        assert!(zip.add(file.path, file.bytes));
    }
    zip.finish()
}

/// Changes of the bytes as they lie on a disk.
fn crude(bundle: &[u8], dice: &mut Dice) -> (String, Vec<u8>) {
    let mut changed = bundle.to_vec();
    let at = dice.below(bundle.len());
    let what = match dice.below(5) {
        0 => {
            changed[at] ^= 1 << dice.below(8);
            format!("a bit of byte {at} flipped")
        }
        1 => {
            let byte = u8::try_from(dice.below(256)).unwrap();
            changed.insert(at, byte);
            format!("{byte} inserted at {at}")
        }
        2 => {
            changed.remove(at);
            format!("byte {at} removed")
        }
        3 => {
            changed.truncate(at);
            format!("cut off at {at}")
        }
        _ => {
            let length = 1 + dice.below(64.min(bundle.len() - at));
            changed.drain(at..at + length);
            format!("{length} bytes removed at {at}")
        }
    };
    (what, changed)
}

/// Changes by someone who knows the format, and makes container and checksums anew.
fn skilled(bundle: &[u8], dice: &mut Dice) -> (String, Vec<u8>) {
    let mut files = read(bundle).unwrap();
    let (one, other) = two_below(dice, files.len());
    let path = files[one].path;
    match dice.below(5) {
        0 => {
            files.swap(one, other);
            (format!("files {one} and {other} swapped"), repacked(files))
        }
        1 => {
            let must_be_there = !path.starts_with("documents/");
            files.remove(one);
            let bundle = repacked(files);
            // A document may be left out; that is for other tests.
            if must_be_there { (format!("{path} removed"), bundle) } else { crude(&bundle, dice) }
        }
        2 => {
            let (path, bytes) = (format!("{path}x"), files[one].bytes.to_vec());
            let copy = Packed { path: &path, bytes: &bytes, ..files[one] };
            files.insert(other, copy);
            (format!("{path} added"), repacked(files))
        }
        3 => {
            let mut bytes = files[one].bytes.to_vec();
            if bytes.is_empty() {
                bytes.push(b'x');
            } else {
                let at = dice.below(bytes.len());
                bytes[at] = bytes[at].wrapping_add(1);
            }
            files[one].bytes = &bytes;
            (format!("a byte of {path} changed, checksum and all"), repacked(files))
        }
        _ => {
            let lines = files[one].bytes.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
            let mut changed = lines.clone();
            if lines.len() > 1 {
                let (first, second) = two_below(dice, lines.len());
                changed.swap(first, second);
            } else {
                changed.push(b"\n");
            }
            let bytes = changed.concat();
            let is_same = bytes == files[one].bytes;
            files[one].bytes = &bytes;
            let bundle = repacked(files);
            if is_same { crude(&bundle, dice) } else { (format!("lines of {path} swapped"), bundle) }
        }
    }
}

#[test]
fn every_changed_inserted_removed_or_reordered_byte_is_found_and_named() {
    let ledger = small_ledger();
    let id = ledger.items.keys().next().unwrap();
    let bundles = [ledger.period_bundle(4, 20), ledger.item_bundle(id)];
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut dice = Dice::new(seed);
    for number in 0..CHANGES {
        let bundle = &bundles[dice.below(2)];
        let (what, changed) = if number % 2 == 0 { crude(bundle, &mut dice) } else { skilled(bundle, &mut dice) };
        assert_ne!(changed, *bundle, "{what}, seed {seed}");
        assert!(is_found(&changed), "change {number} of seed {seed}: {what}");
    }
}

#[test]
fn a_changed_file_is_named_by_its_path() {
    let bundle = small_ledger().period_bundle(4, 20);
    for file in read(&bundle).unwrap() {
        let Some(at) = file.bytes.len().checked_sub(2) else { continue };
        let mut changed = bundle.clone();
        changed[usize::try_from(file.at).unwrap() + at] ^= 4;
        let verdict = verify(&changed, &trust());
        let fault = verdict.faults.first().unwrap();
        assert_eq!(fault.file.as_deref(), Some(file.path));
        assert!(matches!(fault.check, Check::Manifest | Check::Files));
    }
}
