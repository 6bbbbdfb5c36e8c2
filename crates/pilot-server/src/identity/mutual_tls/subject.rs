//! Whom a certificate names: its SPIFFE ID if it has one, otherwise its subject in RFC 4514 form.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use pilot_core::time::Time;
use x509_parser::der_parser::asn1_rs::{Any, Tag};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate, X509Name};

pub(super) struct Subject {
    pub name: String,
    pub not_before: Time,
    pub not_after: Time,
}

/// `None` if the certificate names nobody, or more than one: several SPIFFE IDs are not one identity.
pub(super) fn read(der: &[u8], trust_domain: Option<&str>) -> Option<Subject> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let alternatives = certificate.subject_alternative_name().ok()?;
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
        ([id], domain) if is_spiffe => Some((*id).to_owned()).filter(|id| is_in(id, domain)),
        (_, Some(_)) => None,
        _ if is_spiffe => None,
        (_, None) => distinguished(certificate.subject()),
    };
    let time = |seconds: i64| Time::from_unix_micros(seconds.saturating_mul(1_000_000));
    let validity = certificate.validity();
    Some(Subject {
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

/// As `openssl x509 -noout -subject -nameopt RFC2253` prints it: the last part first.
fn distinguished(name: &X509Name<'_>) -> Option<String> {
    let mut text = String::new();
    let parts: Vec<_> = name.iter_rdn().collect();
    for (index, part) in parts.into_iter().rev().enumerate() {
        if index > 0 {
            text.push(',');
        }
        for (index, attribute) in part.iter().enumerate() {
            if index > 0 {
                text.push('+');
            }
            let oid = attribute.attr_type().to_id_string();
            let short = SHORT_NAMES.iter().find(|(known, _)| *known == oid).map(|(_, short)| *short);
            match (short, value_of(attribute.attr_value())) {
                (Some(short), Some(value)) => {
                    let _ = write!(text, "{short}={}", escaped(&value));
                }
                // A longer one would need a longer length field, and nobody has such a name.
                _ if attribute.attr_value().data.len() > 127 => return None,
                _ => {
                    let value = attribute.attr_value();
                    let _ = write!(text, "{oid}=#{:02x}{:02x}", value.tag().0, value.data.len());
                    text.push_str(&HEXLOWER.encode(value.data));
                }
            }
        }
    }
    Some(text).filter(|text| !text.is_empty())
}

/// Attributes that have a short name in RFC 4514 and openssl.
const SHORT_NAMES: [(&str, &str); 10] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// The string types in which names are written today.
fn value_of(value: &Any<'_>) -> Option<String> {
    let is_text = [Tag::Utf8String, Tag::PrintableString, Tag::Ia5String].contains(&value.tag());
    std::str::from_utf8(value.data).ok().filter(|_| is_text).map(str::to_owned)
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (index, character) in value.chars().enumerate() {
        let is_edge = (character == ' ' && (index == 0 || index == last)) || (character == '#' && index == 0);
        if is_edge || matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
            text.push('\\');
        }
        text.push(character);
    }
    text
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
        read(certificate.der(), domain).map(|subject| subject.name)
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
