//! Notes, checkpoints, cosignatures, proofs, manifests, policies and what witnesses are sent: text that strangers write.
#![no_main]

mod cost;

use libfuzzer_sys::fuzz_target;
use pilot_core::limits::WITNESS_BODY_BYTES_MAX;
use pilot_evidence::bundle::Manifest;
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::cosignature::{CosignerKey, CosignerVerifier};
use pilot_evidence::note::{Note, VerifierKey};
use pilot_evidence::policy::Policy;
use pilot_evidence::sample::key;
use pilot_evidence::tlog_proof::TlogProof;
use pilot_evidence::witness::{AddCheckpoint, parse_cosignatures, parse_size, size_body};

fuzz_target!(|data: &[u8]| {
    check(data);
    if let Some(data) = cost::grown(data, b"\n", WITNESS_BODY_BYTES_MAX) {
        cost::bounded(data.len(), || check(&data));
    }
});

fn check(data: &[u8]) {
    if let Ok(policy) = Policy::parse(data) {
        let unsigned = vec![None; policy.witnesses().len()];
        assert!(policy.vouched_at(&unsigned).is_none(), "nobody vouches");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let witness = CosignerKey::generate("w.example", &[1; 32]).unwrap().verifier();
    if let Ok(note) = Note::parse(text) {
        assert!(text.starts_with(note.text));
        assert!(witness.verify(&note).is_err(), "nobody but the witness can sign");
        let opened = Checkpoint::open(text, &key().verifier());
        assert!(opened.is_err() || opened == Checkpoint::parse(note.text));
    }
    if let Ok(checkpoint) = Checkpoint::parse(text) {
        assert!(text.starts_with(checkpoint.text().trim_end()));
    }
    if let Ok(proof) = TlogProof::parse(text) {
        assert_eq!(proof.to_text(), text);
    }
    if let Ok(request) = AddCheckpoint::parse(text) {
        assert_eq!(request.to_body(), text);
    }
    if let Some(manifest) = Manifest::parse(text) {
        assert_eq!(manifest.text(), text);
    }
    if let Ok(size) = parse_size(text) {
        assert_eq!(size_body(size), text);
    }
    assert!(parse_cosignatures(text, "", &witness).is_err());
    if let Ok(key) = VerifierKey::parse(text) {
        assert_eq!(key.to_string(), text.trim_end());
    }
    if let Ok(key) = CosignerVerifier::parse(text) {
        assert_eq!(key.to_string(), text.trim_end());
    }
}
