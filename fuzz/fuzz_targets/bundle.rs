//! The verifier, on bytes that are no bundle and on bundles that are signed and wrong.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pilot_core::time::Time;
use pilot_evidence::bundle::zip::read;
use pilot_evidence::bundle::{BundleWriter, Manifest};
use pilot_evidence::note::Note;
use pilot_evidence::sample::{key, small_ledger};
use pilot_evidence::verify::{Trust, verify};

static BUNDLES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let ledger = small_ledger();
    let id = ledger.items.keys().next().unwrap().clone();
    [ledger.item_bundle(&id), ledger.period_bundle(4, 20)]
});

/// One file of a bundle replaced, and the manifest signed again: what only the log itself could do.
fn replaced(bundle: &[u8], which: usize, bytes: &[u8]) -> Option<Vec<u8>> {
    let files = read(bundle).ok()?;
    let manifest = std::str::from_utf8(files.last()?.bytes).ok()?;
    let manifest = Manifest::parse(Note::parse(manifest).ok()?.text)?;
    let mut writer = BundleWriter::new(manifest.scope, Time::EPOCH);
    let count = files.len() - 1;
    for (number, file) in files.iter().take(count).enumerate() {
        writer.add(file.path, if number == which % count { bytes } else { file.bytes }).ok()?;
    }
    writer.finish(&key()).ok()
}

fuzz_target!(|data: &[u8]| {
    let trust = Trust::log(key().verifier());
    assert!(!verify(data, &trust).holds, "nobody but the log can sign");
    let [which, rest @ ..] = data else { return };
    let [item, period] = &*BUNDLES;
    let base = if which % 2 == 0 { item } else { period };
    if let Some(bundle) = replaced(base, usize::from(*which) / 2, rest) {
        let verdict = verify(&bundle, &trust);
        assert_eq!(verdict.holds, verdict.faults.is_empty());
        let _ = (verdict.to_text(), verdict.to_json());
    }
});
