//! Whom a certificate names: its SPIFFE ID if it has one, otherwise its subject in RFC 4514 form.

use pilot_core::time::Time;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::distinguished::distinguished;

pub(super) struct Subject {
    pub name: String,
    pub not_before: Time,
    pub not_after: Time,
}

/// Refused if the certificate names nobody, or more than one: several SPIFFE IDs are not one identity.
pub(super) fn read(der: &[u8], trust_domain: Option<&str>) -> Result<Subject, &'static str> {
    const UNREADABLE: &str = "the certificate cannot be read";
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| UNREADABLE)?;
    let alternatives = certificate.subject_alternative_name().map_err(|_| UNREADABLE)?;
    let uris: Vec<_> = alternatives
        .iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::URI(uri) => Some(*uri),
            _ => None,
        })
        .collect();
    let is_spiffe = uris.iter().any(|uri| uri.starts_with(SCHEME));
    let name = match (uris.as_slice(), trust_domain) {
        ([id], domain) if is_spiffe => Some((*id).to_owned())
            .filter(|id| is_in(id, domain))
            .ok_or("its SPIFFE ID is malformed or of another trust domain"),
        _ if is_spiffe => Err("it has a SPIFFE ID and other URIs as well"),
        (_, Some(_)) => Err("it has no SPIFFE ID, and trust_domain requires one"),
        (_, None) => distinguished(certificate.subject()).ok_or("its subject is empty or too long"),
    };
    let time = |seconds: i64| Time::from_unix_micros(seconds.saturating_mul(1_000_000));
    let validity = certificate.validity();
    Ok(Subject {
        name: name?,
        not_before: time(validity.not_before.timestamp()),
        not_after: time(validity.not_after.timestamp()),
    })
}

const SCHEME: &str = "spiffe://";

/// A SPIFFE ID has a trust domain and a path, and nothing else.
fn is_in(id: &str, domain: Option<&str>) -> bool {
    let Some((found, path)) = id.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/')) else { return false };
    let is_plain = |text: &str, more: &[u8]| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let has_plain_path = path.split('/').all(|part| is_plain(part, b".-_") && part != "." && part != "..");
    is_plain(found, b".-_") && has_plain_path && domain.is_none_or(|domain| domain == found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::string::Ia5String;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    fn read_of(names: &[(DnType, &str)], uris: &[&str], domain: Option<&str>) -> Option<String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let uri = |uri: &&str| SanType::URI(Ia5String::try_from(*uri).unwrap());
        params.subject_alt_names = uris.iter().map(uri).collect();
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        read(certificate.der(), domain).ok().map(|subject| subject.name)
    }

    #[test]
    fn a_certificate_names_its_spiffe_id_or_else_its_subject_the_last_part_first() {
        let ana = [(DnType::OrganizationName, "Ex, Inc."), (DnType::CommonName, "#ana \"a\" <x>")];
        assert_eq!(read_of(&ana, &[], None).unwrap(), r##"CN=\#ana \"a\" \<x\>,O=Ex\, Inc."##);
        let id = "spiffe://example.org/pilot/runner";
        assert_eq!(read_of(&ana, &[id], None).unwrap(), id);
        assert_eq!(read_of(&ana, &[id], Some("example.org")).unwrap(), id);
        assert_eq!(read_of(&ana, &["https://example.org"], None).unwrap(), r##"CN=\#ana \"a\" \<x\>,O=Ex\, Inc."##);
    }

    #[test]
    fn a_certificate_that_names_nobody_or_two_or_a_stranger_names_no_one() {
        let id = "spiffe://example.org/pilot/runner";
        let ana = [(DnType::CommonName, "ana")];
        assert_eq!(read_of(&[], &[], None), None);
        assert_eq!(read_of(&ana, &[id, "spiffe://example.org/other"], None), None);
        assert_eq!(read_of(&ana, &[id, "https://example.org"], None), None, "SPIFFE: exactly one URI");
        assert_eq!(read_of(&ana, &[id], Some("example.com")), None);
        assert_eq!(read_of(&ana, &[], Some("example.org")), None, "with a trust domain nothing else counts");
        for wrong in [
            "spiffe://example.org",
            "spiffe://example.org/",
            "spiffe://example.org/a//b",
            "spiffe://example.org/a/../b",
            "spiffe://example.org/a?b",
            "spiffe://user@example.org/a",
            "spiffe://example.org:1/a",
            "spiffe:///a",
        ] {
            assert_eq!(read_of(&ana, &[wrong], None), None, "{wrong}");
        }
    }
}
