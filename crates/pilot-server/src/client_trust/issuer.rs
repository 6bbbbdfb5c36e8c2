//! A certificate in `client_ca`.

use pilot_core::time::Time;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::signature::{is_signature, time};
use crate::distinguished::distinguished;

pub(super) struct Issuer {
    pub der: CertificateDer<'static>,
    pub name: String,
    /// The same as it stands in the certificate, as those below it name it.
    pub subject: Vec<u8>,
    pub not_after: Time,
    key: Vec<u8>,
    above: Vec<u8>,
    signed: (Vec<u8>, Vec<u8>),
}

impl Issuer {
    /// `None` if it is not the certificate of an issuer, or names nobody. Anyone whose own certificate counted as an
    /// issuer's could issue certificates for everyone.
    pub(super) fn read(der: CertificateDer<'static>) -> Option<Issuer> {
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let may_sign = parsed.key_usage().ok()?.is_none_or(|usage| usage.value.key_cert_sign());
        let name = Some(parsed.subject()).filter(|_| parsed.is_ca() && may_sign).and_then(distinguished)?;
        let (subject, above) = (parsed.subject().as_raw().to_vec(), parsed.issuer().as_raw().to_vec());
        let key = parsed.public_key().raw.to_vec();
        let signed = (parsed.tbs_certificate.as_ref().to_vec(), parsed.signature_value.data.to_vec());
        let not_after = time(parsed.validity().not_after);
        Some(Issuer { der, name, subject, not_after, key, above, signed })
    }

    /// The name and the key make an issuer; its certificate may be renewed.
    pub(super) fn is_same_as(&self, other: &Issuer) -> bool {
        self.key == other.key && self.subject == other.subject
    }

    fn is_issued_by(&self, other: &Issuer) -> bool {
        let (message, signature) = &self.signed;
        self.above == other.subject && !self.is_same_as(other) && is_signature(&other.der, message, signature)
    }

    /// The one that nobody else in the list has issued. One whose own root is in the list stays by itself: a certificate by
    /// which another authority vouches for it does not make it part of that one, which could then name its people. Two that
    /// issued each other are ended by the number of steps.
    pub(super) fn top<'i>(&'i self, all: &'i [Issuer]) -> &'i Issuer {
        let mut top = self;
        for _ in all {
            if let Some(root) = all.iter().find(|other| other.is_same_as(top) && other.above == other.subject) {
                return root;
            }
            match all.iter().find(|other| top.is_issued_by(other)) {
                Some(above) => top = above,
                None => break,
            }
        }
        top
    }
}
