//! Timestamps of checkpoints (RFC 3161): what a timestamping authority is asked, and what its reply says.
//!
//! Everything is read and compared here, except whether a certificate is trusted and a signature is right: that needs
//! RSA or ECDSA and a chain of certificates, and is left to an [`Authority`].

mod der;

use std::fmt;
use std::str::FromStr as _;
use std::sync::Arc;

use der::{BOOLEAN, CONTEXT, INTEGER, NULL, OCTETS, OID, Reader, SEQUENCE, SET, TIME, Value, write};
use pilot_core::time::Time;
use sha2::{Digest, Sha256, Sha384, Sha512};

// Object identifiers, as DER has them.
const SHA_256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const SHA_384: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02];
const SHA_512: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03];
const SIGNED_DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02];
const TST_INFO: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x10, 0x01, 0x04];
const CONTENT_TYPE: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x03];
const MESSAGE_DIGEST: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x04];
const SIGNING_CERTIFICATE_V2: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x10, 0x02, 0x2F];

/// What a certificate that may sign timestamps has as its purpose: `id-kp-timeStamping`.
pub const TIME_STAMPING: &[u8] = &[0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08];

/// Who is trusted to say what time it was.
pub trait Authority: Send + Sync {
    /// Whether this certificate could be trusted for timestamps at this time, and has signed the message. The error is a
    /// clause that says why not.
    fn check(&self, signed: &Signed<'_>) -> Result<(), String>;
}

/// What someone has signed.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'t> {
    /// The signer's, as DER.
    pub certificate: &'t [u8],
    /// Others that came with it.
    pub certificates: &'t [&'t [u8]],
    pub at: Time,
    pub message: &'t [u8],
    pub signature: &'t [u8],
}

/// An [`Authority`] that can be part of what a verifier is given.
#[derive(Clone)]
pub struct Authorities(pub Arc<dyn Authority>);

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorities")
    }
}

impl PartialEq for Authorities {
    fn eq(&self, other: &Authorities) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Why a reply is not a timestamp of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    #[error("the authority refused (status {0})")]
    Refused(u8),
    #[error("it is not a timestamp reply in DER that could be read")]
    Format,
    #[error("it is a timestamp of something else")]
    Other,
    #[error("it answers another request")]
    Nonce,
    #[error("what it signs is not what it says")]
    Digest,
    #[error("{0}")]
    Untrusted(String),
}

/// Asks for a timestamp of these bytes. The authority's certificate is to come with the reply.
pub fn request(stamped: &[u8], nonce: [u8; 8]) -> Vec<u8> {
    let algorithm = write(SEQUENCE, &[&write(OID, &[SHA_256]), &write(NULL, &[])]);
    let imprint = write(SEQUENCE, &[&algorithm, &write(OCTETS, &[&Sha256::digest(stamped)])]);
    let (version, wanted) = (write(INTEGER, &[&[1]]), write(BOOLEAN, &[&[0xFF]]));
    write(SEQUENCE, &[&version, &imprint, &write(INTEGER, &[&integer(nonce)]), &wanted])
}

/// The shortest form of a positive number.
fn integer(digits: [u8; 8]) -> Vec<u8> {
    let mut digits: Vec<u8> = digits.iter().copied().skip_while(|digit| *digit == 0).collect();
    if digits.first().is_none_or(|first| *first >= 0x80) {
        digits.insert(0, 0);
    }
    digits
}

/// A reply to [`request`], taken apart.
#[derive(Debug)]
pub struct Timestamp<'r> {
    /// According to the authority.
    pub at: Time,
    imprint: &'r [u8],
    nonce: Option<&'r [u8]>,
    certificates: Vec<&'r [u8]>,
    /// The signer's certificate by its hash, if the signer names it that way, and which hash that is.
    signer: Option<(&'r [u8], &'r [u8])>,
    /// As they are signed: with the tag of a set.
    attributes: Vec<u8>,
    signature: &'r [u8],
}

impl<'r> Timestamp<'r> {
    /// Reads a reply. That it is signed by someone is not checked yet.
    pub fn parse(reply: &'r [u8]) -> Result<Timestamp<'r>, TimestampError> {
        let mut outer = Reader(reply);
        let response = outer.expect(SEQUENCE).filter(|_| outer.is_done()).ok_or(TimestampError::Format)?;
        let mut parts = response.inside();
        let status = parts.expect(SEQUENCE).and_then(|status| status.inside().expect(INTEGER));
        match status.ok_or(TimestampError::Format)?.contents {
            // Granted, and granted with modifications.
            [0 | 1] => {}
            [status] => return Err(TimestampError::Refused(*status)),
            _ => return Err(TimestampError::Format),
        }
        let token = parts.expect(SEQUENCE).filter(|_| parts.is_done()).ok_or(TimestampError::Format)?;
        let signed_data = signed_data(token).ok_or(TimestampError::Format)?;
        let info = Info::read(signed_data.info).ok_or(TimestampError::Format)?;
        let signer = Signer::read(signed_data.signer).ok_or(TimestampError::Format)?;
        if signer.message_digest != digest(signer.algorithm, signed_data.info).ok_or(TimestampError::Format)? {
            return Err(TimestampError::Digest);
        }
        let certificates = signed_data.certificates;
        let Signer { attributes, certificate, signature, .. } = signer;
        let Info { at, imprint, nonce } = info;
        Ok(Timestamp { at, imprint, nonce, certificates, signer: certificate, attributes, signature })
    }

    /// Whether it is of these bytes.
    pub fn check_of(&self, stamped: &[u8]) -> Result<(), TimestampError> {
        if self.imprint == Sha256::digest(stamped).as_slice() { Ok(()) } else { Err(TimestampError::Other) }
    }

    /// Whether a signer's certificate came with it, without which nobody can check it.
    pub fn has_certificate(&self) -> bool {
        !self.certificates.is_empty()
    }

    /// Whether it answers the request with this number.
    pub fn check_nonce(&self, nonce: [u8; 8]) -> Result<(), TimestampError> {
        if self.nonce == Some(&integer(nonce)) { Ok(()) } else { Err(TimestampError::Nonce) }
    }

    /// Whether one of its certificates is trusted and has signed it.
    pub fn check_signature(&self, authority: &dyn Authority) -> Result<(), TimestampError> {
        let is_named = |certificate: &&&[u8]| {
            self.signer.is_none_or(|(algorithm, hash)| digest(algorithm, certificate).is_some_and(|own| own == hash))
        };
        let mut why = "the certificate that signed it did not come with it".to_owned();
        for certificate in self.certificates.iter().filter(is_named) {
            let (message, signature) = (&self.attributes, self.signature);
            match authority.check(&Signed {
                certificate,
                certificates: &self.certificates,
                at: self.at,
                message,
                signature,
            }) {
                Ok(()) => return Ok(()),
                Err(error) => why = error,
            }
        }
        Err(TimestampError::Untrusted(why))
    }
}

struct SignedData<'r> {
    info: &'r [u8],
    certificates: Vec<&'r [u8]>,
    signer: Value<'r>,
}

/// The parts of a CMS token with exactly one signer.
fn signed_data(token: Value<'_>) -> Option<SignedData<'_>> {
    let mut content = token.inside();
    content.expect(OID).filter(|kind| kind.contents == SIGNED_DATA)?;
    let mut parts = content.expect(CONTEXT[0])?.only(SEQUENCE)?.inside();
    parts.expect(INTEGER)?;
    parts.expect(SET)?;
    let mut encapsulated = parts.expect(SEQUENCE)?.inside();
    encapsulated.expect(OID).filter(|kind| kind.contents == TST_INFO)?;
    let info = encapsulated.expect(CONTEXT[0])?.only(OCTETS)?.contents;
    let mut certificates = Vec::new();
    let mut set = parts.optional(CONTEXT[0]).map_or(Reader(&[]), |set| set.inside());
    while !set.is_done() {
        certificates.push(set.next()?.whole);
    }
    parts.optional(CONTEXT[1]);
    let signer = parts.expect(SET)?.only(SEQUENCE)?;
    parts.is_done().then_some(SignedData { info, certificates, signer })
}

/// What the authority says.
struct Info<'r> {
    imprint: &'r [u8],
    at: Time,
    nonce: Option<&'r [u8]>,
}

impl<'r> Info<'r> {
    fn read(bytes: &'r [u8]) -> Option<Info<'r>> {
        let mut outer = Reader(bytes);
        let mut parts = outer.expect(SEQUENCE).filter(|_| outer.is_done())?.inside();
        parts.expect(INTEGER).filter(|version| version.contents == [1])?;
        parts.expect(OID)?;
        let mut imprint = parts.expect(SEQUENCE)?.inside();
        imprint.expect(SEQUENCE)?.inside().expect(OID).filter(|algorithm| algorithm.contents == SHA_256)?;
        let imprint = imprint.expect(OCTETS)?.contents;
        parts.expect(INTEGER)?;
        let at = moment(parts.expect(TIME)?.contents)?;
        parts.optional(SEQUENCE);
        parts.optional(BOOLEAN);
        let nonce = parts.optional(INTEGER).map(|nonce| nonce.contents);
        Some(Info { imprint, at, nonce })
    }
}

/// `YYYYMMDDhhmmss`, with a fraction or without, and `Z`.
fn moment(text: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.len() != 14 || !is_number(seconds) || !is_number(fraction) {
        return None;
    }
    let part = |from: usize, to: usize| seconds.get(from..to).unwrap_or_default();
    let (date, clock) = ([part(0, 4), part(4, 6), part(6, 8)], [part(8, 10), part(10, 12), part(12, 14)]);
    let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Time::from_str(&format!("{}T{}.{micros}Z", date.join("-"), clock.join(":"))).ok()
}

struct Signer<'r> {
    /// The hash of what is signed.
    algorithm: &'r [u8],
    attributes: Vec<u8>,
    message_digest: &'r [u8],
    certificate: Option<(&'r [u8], &'r [u8])>,
    signature: &'r [u8],
}

impl<'r> Signer<'r> {
    fn read(signer: Value<'r>) -> Option<Signer<'r>> {
        let mut parts = signer.inside();
        parts.expect(INTEGER)?;
        // Who signed, by issuer and number or by key. The signature shows whether it is so.
        parts.next()?;
        let algorithm = parts.expect(SEQUENCE)?.inside().expect(OID)?.contents;
        let set = parts.expect(CONTEXT[0])?;
        let (mut kind, mut message_digest, mut certificate) = (None, None, None);
        let mut attributes = set.inside();
        while !attributes.is_done() {
            let mut attribute = attributes.expect(SEQUENCE)?.inside();
            let (name, values) = (attribute.expect(OID)?.contents, attribute.expect(SET)?);
            let place = match name {
                CONTENT_TYPE => &mut kind,
                MESSAGE_DIGEST => &mut message_digest,
                SIGNING_CERTIFICATE_V2 => &mut certificate,
                _ => continue,
            };
            // Each may occur once, with one value.
            let mut inside = values.inside();
            let value = inside.next().filter(|_| inside.is_done())?;
            if place.replace(value).is_some() {
                return None;
            }
        }
        kind.filter(|kind| kind.tag == OID && kind.contents == TST_INFO)?;
        let certificate = match certificate {
            Some(certificate) => Some(named(certificate)?),
            None => None,
        };
        parts.expect(SEQUENCE)?;
        let signature = parts.expect(OCTETS)?.contents;
        Some(Signer {
            algorithm,
            attributes: write(SET, &[set.contents]),
            message_digest: message_digest.filter(|digest| digest.tag == OCTETS)?.contents,
            certificate,
            signature,
        })
    }
}

/// The first certificate that a signer names, which is its own: which hash, and the hash. SHA-256 is the default.
fn named(certificate: Value<'_>) -> Option<(&[u8], &[u8])> {
    let mut first = certificate.inside().expect(SEQUENCE)?.inside().expect(SEQUENCE)?.inside();
    let algorithm = match first.optional(SEQUENCE) {
        Some(algorithm) => algorithm.inside().expect(OID)?.contents,
        None => SHA_256,
    };
    Some((algorithm, first.expect(OCTETS)?.contents))
}

fn digest(algorithm: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    match algorithm {
        SHA_256 => Some(Sha256::digest(bytes).to_vec()),
        SHA_384 => Some(Sha384::digest(bytes).to_vec()),
        SHA_512 => Some(Sha512::digest(bytes).to_vec()),
        _ => None,
    }
}

/// A reply of the form that an authority gives, with a signature that only a credulous one accepts.
#[cfg(feature = "sample")]
pub fn sample_reply(stamped: &[u8], at: Time) -> Vec<u8> {
    let oid = |oid: &[u8]| write(OID, &[oid]);
    let number = |number: u8| write(INTEGER, &[&[number]]);
    let algorithm = write(SEQUENCE, &[&oid(SHA_256)]);
    let imprint = write(SEQUENCE, &[&algorithm, &write(OCTETS, &[&Sha256::digest(stamped)])]);
    let clock: String = at.to_string().chars().take(19).filter(char::is_ascii_digit).collect();
    let moment = write(TIME, &[clock.as_bytes(), b"Z"]);
    let info = write(SEQUENCE, &[&number(1), &oid(&[0x2A, 3]), &imprint, &number(1), &moment]);
    let attribute = |name: &[u8], value: &[u8]| write(SEQUENCE, &[&oid(name), &write(SET, &[value])]);
    let attributes = write(
        CONTEXT[0],
        &[
            &attribute(CONTENT_TYPE, &oid(TST_INFO)),
            &attribute(MESSAGE_DIGEST, &write(OCTETS, &[&Sha256::digest(&info)])),
        ],
    );
    let name = write(SEQUENCE, &[]);
    let signer =
        write(SEQUENCE, &[&number(1), &name, &algorithm, &attributes, &algorithm, &write(OCTETS, &[b"signed"])]);
    let encapsulated = write(SEQUENCE, &[&oid(TST_INFO), &write(CONTEXT[0], &[&write(OCTETS, &[&info])])]);
    let certificates = write(CONTEXT[0], &[&write(SEQUENCE, &[b"a certificate"])]);
    let signed_data = write(
        SEQUENCE,
        &[&number(3), &write(SET, &[&algorithm]), &encapsulated, &certificates, &write(SET, &[&signer])],
    );
    let token = write(SEQUENCE, &[&oid(SIGNED_DATA), &write(CONTEXT[0], &[&signed_data])]);
    write(SEQUENCE, &[&write(SEQUENCE, &[&number(0)]), &token])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &[u8] = b"log.example.org\n1\n";

    fn at() -> Time {
        "2026-11-15T08:00:00Z".parse().unwrap_or(Time::EPOCH)
    }

    #[test]
    fn a_request_is_what_rfc_3161_says() {
        let bytes = request(NOTE, [0, 0, 0, 0, 0, 0, 0, 0x80]);
        let digest = Sha256::digest(NOTE);
        let expected = [
            &[0x30, 0x3D, 2, 1, 1, 0x30, 0x31, 0x30, 0x0D, 6, 9][..],
            SHA_256,
            &[5, 0, 4, 0x20],
            &digest,
            &[2, 2, 0, 0x80, 1, 1, 0xFF],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn no_changed_byte_of_a_reply_changes_what_it_says_and_a_part_of_one_is_refused() {
        let reply = sample_reply(NOTE, at());
        let timestamp = Timestamp::parse(&reply).map(|timestamp| (timestamp.at, timestamp.check_of(NOTE)));
        assert_eq!(timestamp, Ok((at(), Ok(()))));
        for place in 0..reply.len() {
            let mut changed = reply.clone();
            if let Some(byte) = changed.get_mut(place) {
                *byte ^= 1;
            }
            let says = Timestamp::parse(&changed).map(|timestamp| (timestamp.at, timestamp.check_of(NOTE)));
            assert!(says.is_err() || says == timestamp, "byte {place}: {says:?}");
            assert!(Timestamp::parse(reply.get(..place).unwrap_or_default()).is_err(), "cut off at {place}");
        }
    }

    #[test]
    fn times_are_read_with_and_without_a_fraction_and_in_no_other_way() {
        for (text, read) in [
            ("20261115080000Z", Some("2026-11-15T08:00:00.000000Z")),
            ("20261115080000.25Z", Some("2026-11-15T08:00:00.250000Z")),
            ("20261115080000.1234567Z", Some("2026-11-15T08:00:00.123456Z")),
            ("20261115080000", None),
            ("202611150800Z", None),
            ("20261115080000+0100", None),
            ("20261315080000Z", None),
            ("2026111508000xZ", None),
            ("20261115080000.Z", None),
        ] {
            assert_eq!(moment(text.as_bytes()).map(|at| at.to_string()).as_deref(), read, "{text}");
        }
    }

    #[test]
    fn a_refusal_is_said_with_its_status() {
        let refused = write(SEQUENCE, &[&write(SEQUENCE, &[&write(INTEGER, &[&[2]])])]);
        assert_eq!(Timestamp::parse(&refused).map(|_| ()), Err(TimestampError::Refused(2)));
    }
}
