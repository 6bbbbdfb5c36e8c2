//! A caller's certificate as a proxy passes it on in a header, in three formats, each read byte by byte and without
//! guessing.

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::limits::HEADER_BLOCK_BYTES_MAX;

/// The caller's certificate, and after it those that lead to its issuer, in DER.
pub type Certificates = Vec<Vec<u8>>;

/// Longer chains occur only in attempts to keep us busy.
pub const CHAIN_MAX: usize = 8;

/// Why a header is not read. It contains nothing of what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    #[error("was sent more than once")]
    Repeated,
    #[error("has more than {HEADER_BLOCK_BYTES_MAX} bytes")]
    TooLong,
    #[error("has more than {CHAIN_MAX} certificates after the caller's own")]
    LongChain,
    #[error("is not a byte sequence, `:base64:`")]
    NotByteSequence,
    #[error("came without `Client-Cert`")]
    ChainOnly,
    #[error("is not exactly one certificate in PEM, URL-encoded as in nginx's `$ssl_client_escaped_cert`")]
    NotEscapedPem,
    #[error("is not a list of keys and values as Envoy writes it")]
    NotPairs,
    #[error("has more than one element, so more than one proxy wrote it or a certificate forged it")]
    SeveralElements,
    #[error("must have exactly one `{0}`")]
    NotOnce(&'static str),
    #[error("must have its `{0}` as URL-encoded PEM, in quotes")]
    NotQuotedPem(&'static str),
    #[error("has a `Hash` that is not the SHA-256 of its `Cert`")]
    OtherHash,
    #[error("has a `Chain` that does not begin with its `Cert`")]
    OtherChain,
}

/// The only line of a header. With two lines, the proxy may have written one and the caller the other.
pub fn only<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Result<Option<&'a [u8]>, Fault> {
    match (lines.next(), lines.next()) {
        (Some(_), Some(_)) => Err(Fault::Repeated),
        (Some(line), None) if line.len() > HEADER_BLOCK_BYTES_MAX => Err(Fault::TooLong),
        (line, _) => Ok(line),
    }
}

/// RFC 9440's `Client-Cert`: one structured byte sequence.
pub fn read_byte_sequence(text: &[u8]) -> Result<Vec<u8>, Fault> {
    let encoded = text.strip_prefix(b":").and_then(|text| text.strip_suffix(b":"));
    let certificate = encoded.and_then(|encoded| BASE64.decode(encoded).ok());
    // An empty one is what a proxy writes that was told to send the header in any case.
    certificate.filter(|der| !der.is_empty()).ok_or(Fault::NotByteSequence)
}

/// RFC 9440's `Client-Cert-Chain`: a list of them, in one line or several.
pub fn read_byte_sequences<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Certificates, Fault> {
    let parts: Vec<_> = lines.flat_map(|line| line.split(|byte| *byte == b',')).take(CHAIN_MAX + 1).collect();
    match parts.len() {
        0..=CHAIN_MAX if parts.iter().map(|part| part.len()).sum::<usize>() > HEADER_BLOCK_BYTES_MAX => {
            Err(Fault::TooLong)
        }
        0..=CHAIN_MAX => parts.into_iter().map(|part| read_byte_sequence(part.trim_ascii())).collect(),
        _ => Err(Fault::LongChain),
    }
}

/// nginx's `$ssl_client_escaped_cert`: one certificate.
pub fn read_escaped_pem(line: &[u8]) -> Result<Certificates, Fault> {
    match take_pem(line) {
        Some((certificate, [])) => Ok(vec![certificate]),
        _ => Err(Fault::NotEscapedPem),
    }
}

const BEGIN: &[u8] = b"-----BEGIN%20CERTIFICATE-----%0A";
const END: &[u8] = b"-----END%20CERTIFICATE-----%0A";
const PEM_LINE_MAX: usize = 64;

/// One certificate in PEM and what follows it, escaped as nginx and Envoy both do: these five escapes occur in a PEM, and
/// any other text is not theirs.
fn take_pem(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(BEGIN)?;
    let (mut base64, mut width) = (Vec::with_capacity(rest.len()), 0);
    while !rest.starts_with(b"-") {
        let (sign, after) = match rest {
            [b'%', b'0', b'A', after @ ..] => (None, after),
            [b'%', b'2', b'B', after @ ..] => (Some(b'+'), after),
            [b'%', b'2', b'F', after @ ..] => (Some(b'/'), after),
            [b'%', b'3', b'D', after @ ..] => (Some(b'='), after),
            [sign, after @ ..] if sign.is_ascii_alphanumeric() => (Some(*sign), after),
            _ => return None,
        };
        match sign {
            Some(sign) => {
                base64.push(sign);
                width += 1;
            }
            None if (1..=PEM_LINE_MAX).contains(&width) => width = 0,
            None => return None,
        }
        rest = after;
    }
    let certificate = BASE64.decode(&base64).ok().filter(|der| !der.is_empty() && width == 0)?;
    Some((certificate, rest.strip_prefix(END)?))
}

/// Envoy's `X-Forwarded-Client-Cert`, if one proxy wrote it about one caller.
///
/// Envoy copies names out of the caller's certificate without quotes, so a certificate can contain a `Cert` of its own
/// choice, or a second element. Envoy's own hash comes with every element and cannot be left out by the caller: it says
/// which certificate was really shown.
pub fn read_xfcc(line: &[u8]) -> Result<Certificates, Fault> {
    let pairs = read_pairs(line)?;
    let quoted = |key| match once(&pairs, key)? {
        Some(Value::Quoted(text)) => Ok(Some(text)),
        Some(Value::Plain(_)) => Err(Fault::NotQuotedPem(key)),
        None => Ok(None),
    };
    let Some(Value::Plain(hash)) = once(&pairs, "Hash")? else { return Err(Fault::NotOnce("Hash")) };
    let certificate = quoted("Cert")?.ok_or(Fault::NotOnce("Cert"))?;
    let Some((certificate, [])) = take_pem(certificate) else { return Err(Fault::NotQuotedPem("Cert")) };
    if HEXLOWER.encode(&Sha256::digest(&certificate)).as_bytes() != hash {
        return Err(Fault::OtherHash);
    }
    let Some(mut rest) = quoted("Chain")? else { return Ok(vec![certificate]) };
    let mut chain = Certificates::new();
    while !rest.is_empty() {
        if chain.len() > CHAIN_MAX {
            return Err(Fault::LongChain);
        }
        let (next, after) = take_pem(rest).ok_or(Fault::NotQuotedPem("Chain"))?;
        chain.push(next);
        rest = after;
    }
    if chain.first() == Some(&certificate) { Ok(chain) } else { Err(Fault::OtherChain) }
}

#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Quoted(&'a [u8]),
    Plain(&'a [u8]),
}

const KEYS: [&str; 7] = ["By", "Hash", "Cert", "Chain", "Subject", "URI", "DNS"];

fn once<'a>(pairs: &[(&str, Value<'a>)], key: &'static str) -> Result<Option<Value<'a>>, Fault> {
    let mut found = pairs.iter().filter(|(name, _)| *name == key).map(|(_, value)| *value);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(Fault::NotOnce(key)),
        (value, None) => Ok(value),
    }
}

/// `Key=value;Key="value"`, to the end of the line.
fn read_pairs(line: &[u8]) -> Result<Vec<(&'static str, Value<'_>)>, Fault> {
    let (mut pairs, mut rest) = (Vec::new(), line);
    loop {
        let named = |key: &'static str| Some((key, rest.strip_prefix(key.as_bytes())?.strip_prefix(b"=")?));
        let (key, text) = KEYS.into_iter().find_map(named).ok_or(Fault::NotPairs)?;
        let (value, after) = take_value(text).ok_or(Fault::NotPairs)?;
        pairs.push((key, value));
        match after {
            [] => return Ok(pairs),
            [b';', after @ ..] => rest = after,
            [b',', ..] => return Err(Fault::SeveralElements),
            _ => return Err(Fault::NotPairs),
        }
    }
}

/// A value and what follows it. In quotes, a backslash takes the sign after it along.
fn take_value(text: &[u8]) -> Option<(Value<'_>, &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|byte| b";,".contains(byte)).unwrap_or(text.len());
        let (plain, after) = text.split_at(end);
        return (!plain.contains(&b'"')).then_some((Value::Plain(plain), after));
    };
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => {
                let (value, after) = quoted.split_at_checked(at)?;
                return Some((Value::Quoted(value), after.strip_prefix(b"\"")?));
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests;
