//! Names in certificates, in RFC 4514 form.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use x509_parser::der_parser::asn1_rs::{Any, Tag};
use x509_parser::prelude::X509Name;

/// As `openssl x509 -noout -subject -nameopt RFC2253,-esc_msb,utf8` prints it: the last part first.
pub(crate) fn distinguished(name: &X509Name<'_>) -> Option<String> {
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
