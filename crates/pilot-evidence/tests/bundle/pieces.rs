//! Bundles that are read piece by piece, as from a disk.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;

use pilot_core::time::Time;
use pilot_evidence::bundle::source::Source;
use pilot_evidence::bundle::zip::ZipWriter;
use pilot_evidence::bundle::{ListedFile, Manifest, Scope};
use pilot_evidence::sample::{key, small_ledger};
use pilot_evidence::verify::{Stage, verify, verify_from};
use sha2::{Digest, Sha256};

use crate::bundle::verdicts::{faults, trust};

/// Bytes that are somewhere else. What is read each time can depend on how often something was read before.
fn elsewhere<'b>(bundle: &'b [u8], change: impl Fn(usize, &mut [u8]) -> io::Result<()> + 'b) -> Source<'b> {
    let reads = Cell::new(0);
    let read_at = move |at: u64, buffer: &mut [u8]| {
        let at = usize::try_from(at).unwrap();
        buffer.copy_from_slice(&bundle[at..at + buffer.len()]);
        change(reads.replace(reads.get() + 1), buffer)
    };
    Source::Elsewhere { length: bundle.len() as u64, read_at: Box::new(read_at) }
}

#[test]
fn a_bundle_has_the_same_verdict_in_memory_and_read_piece_by_piece() {
    let ledger = small_ledger();
    let item = ledger.item_bundle(ledger.items.keys().next().unwrap());
    let cut = &item[..item.len() - 100];
    for bundle in [&ledger.period_bundle(0, 21)[..], &ledger.period_bundle(9, 15), &item, cut, b"", b"PK\x03\x04"] {
        let apart = verify_from(&elsewhere(bundle, |_, _| Ok(())), &trust(), &mut |_, _, _| {}).unwrap();
        assert_eq!(apart, verify(bundle, &trust()));
    }
}

#[test]
fn those_who_wait_see_the_bundle_read_and_then_the_entries_replayed() {
    let bundle = small_ledger().period_bundle(0, 21);
    let mut seen = Vec::new();
    let mut watch = |stage, done, total| {
        assert!(done < total, "{done} of {total}");
        seen.push((stage, done));
    };
    verify_from(&bundle.as_slice().into(), &trust(), &mut watch).unwrap();
    assert_eq!(seen[0].0, Stage::Reading);
    assert_eq!(seen.last().unwrap().0, Stage::Replaying);
    assert!(seen.is_sorted_by_key(|(stage, done)| (*stage == Stage::Replaying, *done)), "{seen:?}");
}

/// Whatever is read a second time must be what was checked the first time: someone may write to the file meanwhile.
#[test]
fn a_bundle_that_changes_or_fails_while_it_is_read_gets_no_verdict_or_does_not_hold() {
    let bundle = small_ledger().period_bundle(0, 21);
    let count = Cell::new(0);
    let counting = elsewhere(&bundle, |number, _| {
        count.set(number + 1);
        Ok(())
    });
    assert!(verify_from(&counting, &trust(), &mut |_, _, _| {}).unwrap().holds);
    let (mut refused, mut unread) = (0, 0);
    for changed in 0..count.get() {
        let flipped = elsewhere(&bundle, |number, buffer| {
            if number >= changed {
                for byte in buffer.iter_mut() {
                    *byte ^= 1;
                }
            }
            Ok(())
        });
        match verify_from(&flipped, &trust(), &mut |_, _, _| {}) {
            Ok(verdict) => {
                assert!(!verdict.holds, "changed from read {changed} on");
                refused += 1;
            }
            Err(error) => {
                assert_eq!(error.to_string(), "the bundle changed while it was being read");
                unread += 1;
            }
        }
        let failing = elsewhere(
            &bundle,
            |number, _| if number == changed { Err(io::Error::other("broken disk")) } else { Ok(()) },
        );
        let error = verify_from(&failing, &trust(), &mut |_, _, _| {}).unwrap_err();
        assert_eq!(error.to_string(), "broken disk", "at read {changed}");
    }
    assert!(refused > 0 && unread > 0, "{refused} refused, {unread} without a verdict");
}

/// A bundle of one file, whose manifest lists these paths with its hash.
fn listing(path: &str, bytes: &[u8], listed: &[&str]) -> Vec<u8> {
    let mut zip = ZipWriter::default();
    assert!(zip.add(path, bytes));
    let sha256 = Sha256::digest(bytes).into();
    let manifest = Manifest {
        origin: key().verifier().name,
        scope: Scope::Period { from: Time::EPOCH, to: Time::EPOCH, first: 0, end: 0 },
        made: Time::EPOCH,
        cosigned: None,
        absent: BTreeMap::new(),
        files: listed.iter().map(|path| ListedFile { sha256, path: (*path).into() }).collect(),
    };
    assert!(zip.add("manifest", manifest.sign(&key()).as_bytes()));
    zip.finish()
}

#[test]
fn a_manifest_that_lists_itself_or_a_file_twice_is_refused() {
    let document = format!("documents/{}.json", "0".repeat(64));
    for (listed, what) in [
        (vec!["checkpoint", "manifest"], "manifest: it lists itself [files]"),
        (vec!["checkpoint", "checkpoint"], "manifest: it lists a file twice [files]"),
        // These may be left out, but not be listed twice.
        (vec!["checkpoint", &document, &document], "manifest: it lists a file twice [files]"),
    ] {
        let verdict = verify(&listing("checkpoint", b"a", &listed), &trust());
        assert!(faults(&verdict).lines().any(|fault| fault == what), "{listed:?}: {}", faults(&verdict));
    }
}

#[test]
fn a_file_that_is_larger_than_one_of_its_name_can_be_is_refused_before_it_is_read() {
    for (path, most) in [
        ("checkpoint", 8),
        ("documents/0000000000000000000000000000000000000000000000000000000000000000.json", 8),
        ("entries/000000000000.jsonl", 32),
    ] {
        let bytes = vec![b'a'; (most << 20) + 1];
        let bundle = listing(path, &bytes, &[path]);
        let largest = Cell::new(0);
        let source = elsewhere(&bundle, |_, buffer| {
            largest.set(largest.get().max(buffer.len()));
            Ok(())
        });
        let verdict = verify_from(&source, &trust(), &mut |_, _, _| {}).unwrap();
        let expected = format!("{path}: it has {} bytes, more than such a file can have [files]\n", bytes.len());
        assert_eq!(faults(&verdict), expected);
        assert!(largest.get() <= 1 << 20, "{} bytes were read at once", largest.get());
    }
}
