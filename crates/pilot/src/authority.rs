//! Timestamping authorities that a verifier trusts: whether one of them has signed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pilot_evidence::timestamp::{Authorities, Authority, Signed, TIME_STAMPING};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::exit::Failure;

struct Certified {
    anchors: Vec<TrustAnchor<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Those that are certified by a CA whose certificate is in one of these PEM files.
pub(crate) fn authorities(files: &[PathBuf]) -> Result<Authorities, Failure> {
    let mut anchors = Vec::new();
    for path in files {
        let wrong = |why: String| Failure::Usage(format!("--tsa: {}: {why}", path.display()));
        let text = std::fs::read(path).map_err(|error| Failure::environment(path.display(), error))?;
        let before = anchors.len();
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|error| wrong(format!("it is not PEM: {error}")))?;
            let anchor = anchor_from_trusted_cert(&certificate)
                .map_err(|error| wrong(format!("a certificate in it: {error}")))?;
            anchors.push(anchor.to_owned());
        }
        if anchors.len() == before {
            return Err(wrong("it has no certificate; PEM is expected, with -----BEGIN CERTIFICATE-----".into()));
        }
    }
    let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
    Ok(Authorities(Arc::new(Certified { anchors, algorithms })))
}

impl Authority for Certified {
    fn check(&self, signed: &Signed<'_>) -> Result<(), String> {
        let certificate = CertificateDer::from(signed.certificate);
        let others: Vec<_> = signed.certificates.iter().map(|other| CertificateDer::from(*other)).collect();
        let certified = EndEntityCert::try_from(&certificate).map_err(|error| format!("its certificate: {error}"))?;
        let seconds = u64::try_from(signed.at.unix_micros() / 1_000_000).unwrap_or(0);
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let purpose = KeyUsage::required(TIME_STAMPING);
        certified
            .verify_for_usage(self.algorithms.all, &self.anchors, &others, at, purpose, None, None)
            .map_err(|error| format!("its certificate is not trusted for timestamps at {}: {error}", signed.at))?;
        // Each algorithm checks that the key is of its kind.
        let is_signed = self
            .algorithms
            .all
            .iter()
            .any(|algorithm| certified.verify_signature(*algorithm, signed.message, signed.signature).is_ok());
        if is_signed { Ok(()) } else { Err("its signature is wrong".into()) }
    }
}
