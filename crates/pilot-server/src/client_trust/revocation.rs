//! A list of revoked certificates.

use pilot_core::time::Time;
use rustls::pki_types::CertificateRevocationListDer;
use x509_parser::prelude::{CertificateRevocationList, FromDer};

use super::issuer::Issuer;
use super::signature::{is_signature, time};
use crate::distinguished::distinguished;

/// The extension by which an issuer divides its list (RFC 5280, 5.2.5).
const DISTRIBUTION_POINT: &str = "2.5.29.28";

pub(super) struct RevocationList {
    pub der: CertificateRevocationListDer<'static>,
    /// As it stands in the list.
    pub issuer: Vec<u8>,
    pub issuer_name: String,
    pub this_update: Time,
    pub next_update: Option<Time>,
    /// Its issuer is in `client_ca`. Otherwise the signature is checked when a client shows the issuer's certificate.
    pub is_verified: bool,
    /// Which part of the issuer's certificates it is about, if it is not about all.
    part: Option<Vec<u8>>,
}

impl RevocationList {
    pub(super) fn read(der: CertificateRevocationListDer<'static>) -> Option<RevocationList> {
        let (_, parsed) = CertificateRevocationList::from_der(&der).ok()?;
        let issuer_name = distinguished(parsed.issuer())?;
        let issuer = parsed.issuer().as_raw().to_vec();
        let (this_update, next_update) = (time(parsed.last_update()), parsed.next_update().map(time));
        let point = parsed.extensions().iter().find(|extension| extension.oid.to_id_string() == DISTRIBUTION_POINT);
        let part = point.map(|extension| extension.value.to_vec());
        Some(RevocationList { issuer, issuer_name, this_update, next_update, is_verified: false, part, der })
    }

    pub(super) fn is_of_the_same_part(&self, other: &RevocationList) -> bool {
        self.issuer == other.issuer && self.part == other.part
    }

    pub(super) fn is_overdue(&self, now: Time) -> bool {
        self.next_update.is_some_and(|at| at <= now)
    }

    pub(super) fn is_signed_by(&self, issuer: &Issuer) -> bool {
        CertificateRevocationList::from_der(&self.der).is_ok_and(|(_, parsed)| {
            is_signature(&issuer.der, parsed.tbs_cert_list.as_ref(), &parsed.signature_value.data)
        })
    }
}
