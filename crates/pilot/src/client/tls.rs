//! The client's side of TLS: who issues the service's certificate.

use std::io;
use std::path::Path;

use pilot_wire::outgoing::{Issuers, Outgoing, OutgoingError, Pair, TrustError};
use rustls::CertificateError;

use crate::exit::Failure;

/// Trusts the issuers in this file and no others, or those the system trusts.
pub(super) fn outgoing(is_encrypted: bool, ca_file: Option<&Path>, own: Option<&Pair>) -> Result<Outgoing, Failure> {
    let issuers = ca_file.map_or(Issuers::SystemAnd(None), Issuers::Only);
    let outgoing = if is_encrypted { Outgoing::trusting(&issuers, own) } else { Ok(Outgoing::plain()) };
    outgoing.map_err(refused)
}

pub(crate) fn refused(error: TrustError) -> Failure {
    match error {
        TrustError::Unreadable { path, cause } => Failure::environment(path.display(), cause),
        TrustError::Unusable { .. } | TrustError::Pair { .. } => Failure::Usage(error.to_string()),
        TrustError::Nobody => {
            let remedy = "name the issuer of the service's certificate with --ca-file or PILOT_CA_FILE";
            Failure::Environment(format!("this system has no trusted certificates; {remedy}"))
        }
        TrustError::Tls(error) => Failure::environment("TLS", error),
    }
}

/// What TLS did not like, if that was the cause.
pub(crate) fn fault(error: &OutgoingError) -> Option<&rustls::Error> {
    let OutgoingError::Failed(cause) = error else { return None };
    cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
}

/// The commonest refusals have a remedy.
pub(super) fn explained(error: &OutgoingError) -> Option<&'static str> {
    match fault(error)? {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => Some(
            "its certificate was issued by an authority that is not trusted here; name that authority with --ca-file or PILOT_CA_FILE",
        ),
        // The library has no name for it that could be matched.
        rustls::Error::InvalidCertificate(fault) if format!("{fault:?}").contains("CaUsedAsEndEntity") => {
            Some("its certificate is a CA certificate (CA:TRUE); a service needs one with CA:FALSE")
        }
        rustls::Error::InvalidMessage(_) => Some("it does not speak TLS; is it http rather than https?"),
        _ => None,
    }
}
