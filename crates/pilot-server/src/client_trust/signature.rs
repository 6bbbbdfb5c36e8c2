//! What certificates and revocation lists have in common: a signature by an issuer, and dates.

use pilot_core::time::Time;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use x509_parser::time::ASN1Time;

/// Tries all algorithms: the one a signature names was chosen by its author, and the key decides which it can be.
pub(super) fn is_signature(issuer: &CertificateDer<'_>, message: &[u8], signature: &[u8]) -> bool {
    let Ok(issuer) = webpki::EndEntityCert::try_from(issuer) else { return false };
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms.all;
    algorithms.iter().any(|algorithm| issuer.verify_signature(*algorithm, message, signature).is_ok())
}

pub(super) fn time(at: ASN1Time) -> Time {
    Time::from_unix_micros(at.timestamp().saturating_mul(1_000_000))
}
