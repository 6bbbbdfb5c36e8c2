//! Access tokens as an identity provider issues them (RFC 9068): signed JSON in three parts.
//!
//! Nothing in a token is trusted before its signature is checked, so its claims cannot be reached earlier:
//! [`Unverified`] does not expose them, and yields them only for a verified signature. Text that could be read in two
//! ways is refused, and so is anything that would supply a key with the token.

use std::ops::Range;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use crate::json::{self, Bounds};
use crate::limits::{ACCESS_TOKEN_BYTES_MAX, ANSWER_VALUES_MAX, SUBJECT_CHARS_MAX, TOKEN_BYTES_MIN};
use crate::time::Time;

const BOUNDS: Bounds = Bounds { depth: 16, values: ANSWER_VALUES_MAX };
/// A key's name is an identifier, not prose.
const KEY_ID_CHARS_MAX: usize = 256;
/// The latest time the calendar library can represent, close to the end of the year 9999.
const SECONDS_MAX: i64 = 253_402_207_199;

/// Why a token is not accepted. For the log and the tests: the caller gets the same answer for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the token is not three parts in base64url")]
    Shape,
    #[error("the token's header is not one strict JSON object")]
    Header,
    #[error("the token's typ is not at+jwt")]
    Type,
    #[error("the token's alg is not one of identity.oauth.algorithms")]
    Algorithm,
    #[error("the token's header uses an extension this service does not support")]
    Critical,
    #[error("the token's header contains or points to a key")]
    OwnKey,
    #[error("the token's kid is missing or malformed")]
    KeyId,
    #[error("the provider publishes no key with the token's kid")]
    UnknownKey,
    #[error("the key with the token's kid is for another algorithm")]
    OtherKey,
    #[error("the token's signature is not by the key it names")]
    Signature,
    #[error("the token's claims are not one strict JSON object")]
    Claims,
    #[error("the token's iss is not identity.oauth.issuer")]
    Issuer,
    #[error("the token's aud does not name identity.oauth.audience")]
    Audience,
    #[error("the token's sub is missing or malformed")]
    Subject,
    #[error("the token's jti is missing or malformed")]
    TokenId,
    #[error("the token's client_id is missing or malformed")]
    Client,
    #[error("the token's exp, iat or nbf is missing or not a whole number of seconds")]
    Times,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet, or was issued in the future; compare the clocks")]
    Early,
    #[error("the token lives longer than identity.oauth.lifetime_minutes_max")]
    LongLived,
    #[error("the token is bound to its holder's key (cnf), which a bearer token does not prove")]
    Bound,
    #[error("the token was delegated (act), and delegation is not supported")]
    Delegated,
}

macro_rules! algorithms {
    ($($variant:ident = $name:literal, $kind:ident;)+) => {
        /// The accepted signature algorithms. There is no `none` and nothing with a shared secret.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Algorithm { $($variant),+ }

        impl Algorithm {
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Algorithm::$variant => $name),+ }
            }

            pub fn named(name: &str) -> Option<Algorithm> {
                match name { $($name => Some(Algorithm::$variant),)+ _ => None }
            }

            pub const fn key_kind(self) -> KeyKind {
                match self { $(Algorithm::$variant => KeyKind::$kind),+ }
            }
        }
    };
}

algorithms! {
    Rs256 = "RS256", Rsa;
    Rs384 = "RS384", Rsa;
    Rs512 = "RS512", Rsa;
    Ps256 = "PS256", Rsa;
    Ps384 = "PS384", Rsa;
    Ps512 = "PS512", Rsa;
    Es256 = "ES256", P256;
    Es384 = "ES384", P384;
    EdDsa = "EdDSA", Ed25519;
}

/// Which keys an algorithm takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// What a token must satisfy to be accepted here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub issuer: String,
    pub audience: String,
    pub algorithms: Vec<Algorithm>,
    pub leeway_seconds: u32,
    pub lifetime_seconds_max: u32,
}

/// A token taken apart, with a header that may be acted on: it says which key to try, and nothing more.
#[derive(Debug)]
pub struct Unverified<'t> {
    pub key_id: String,
    signed: Signed<'t>,
    claims: Vec<u8>,
}

/// What a signature covers.
#[derive(Debug)]
pub struct Signed<'t> {
    pub algorithm: Algorithm,
    /// Byte for byte.
    pub message: &'t [u8],
    pub signature: Vec<u8>,
}

/// The claims of a token that was signed by the issuer and is meant for this service, whether or not it is valid now.
#[derive(Debug)]
pub struct Claims {
    said: Verified,
    expires: i64,
    issued: i64,
    not_before: i64,
}

/// The claims of a token that was signed by the issuer, is meant for this service and is valid now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub subject: String,
    /// The client the token was issued to; the same as `subject` if it acts for itself.
    pub client_id: String,
    pub token_id: String,
    /// Until when it is valid, leeway included.
    pub expires_at: Time,
}

impl<'t> Unverified<'t> {
    pub fn read(token: &'t [u8], rules: &Rules) -> Result<Unverified<'t>, Fault> {
        if !(TOKEN_BYTES_MIN..=ACCESS_TOKEN_BYTES_MAX).contains(&token.len()) {
            return Err(Fault::Shape);
        }
        let mut parts = token.split(|byte| *byte == b'.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Fault::Shape);
        };
        let decoded = |part: &[u8]| BASE64URL_NOPAD.decode(part).ok().filter(|bytes| !bytes.is_empty());
        let message = token.get(..header.len() + 1 + claims.len()).ok_or(Fault::Shape)?;
        let (Some(header), Some(claims)) = (decoded(header), decoded(claims)) else { return Err(Fault::Shape) };
        let (key_id, algorithm) = read_header(&object(&header).ok_or(Fault::Header)?, rules)?;
        let signature = decoded(signature).ok_or(Fault::Shape)?;
        // A header that the leak guard would miss, because of escapes or white space, is refused; no provider writes
        // one.
        if find_signed(token) != Some(0..token.len()) {
            return Err(Fault::Header);
        }
        Ok(Unverified { key_id, signed: Signed { algorithm, message, signature }, claims })
    }

    /// The only way to the claims: through the check of the signature.
    pub fn verify(self, rules: &Rules, check: impl FnOnce(&Signed<'_>) -> Result<(), Fault>) -> Result<Claims, Fault> {
        check(&self.signed)?;
        read_claims(&object(&self.claims).ok_or(Fault::Claims)?, rules)
    }
}

impl Claims {
    pub fn at(&self, rules: &Rules, now: Time) -> Result<Verified, Fault> {
        let leeway = i64::from(rules.leeway_seconds);
        let now = now.unix_micros().div_euclid(1_000_000);
        if now >= self.expires.saturating_add(leeway) {
            return Err(Fault::Expired);
        }
        if now < self.issued.saturating_sub(leeway) || now < self.not_before.saturating_sub(leeway) {
            return Err(Fault::Early);
        }
        if self.expires.saturating_sub(self.issued) > i64::from(rules.lifetime_seconds_max) {
            return Err(Fault::LongLived);
        }
        Ok(self.said.clone())
    }

    pub fn issued_at(&self) -> Time {
        Time::from_unix_micros(self.issued.saturating_mul(1_000_000))
    }

    /// What the token says even if it is not valid now, for those who remember what it said.
    pub fn at_any_time(&self) -> &Verified {
        &self.said
    }
}

fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    match json::parse(bytes, BOUNDS) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}

fn read_header(header: &Map<String, Value>, rules: &Rules) -> Result<(String, Algorithm), Fault> {
    let name = header.get("alg").and_then(Value::as_str).ok_or(Fault::Algorithm)?;
    let algorithm = Algorithm::named(name).filter(|found| rules.algorithms.contains(found));
    let algorithm = algorithm.ok_or(Fault::Algorithm)?;
    let is_access_token = |typ: &str| {
        let typ = typ.to_ascii_lowercase();
        typ == "at+jwt" || typ == "application/at+jwt"
    };
    if !header.get("typ").and_then(Value::as_str).is_some_and(is_access_token) {
        return Err(Fault::Type);
    }
    if ["crit", "b64", "zip", "enc", "cty"].iter().any(|name| header.contains_key(*name)) {
        return Err(Fault::Critical);
    }
    if ["jku", "jwk", "x5u", "x5c"].iter().any(|name| header.contains_key(*name)) {
        return Err(Fault::OwnKey);
    }
    let key_id = text(header, "kid", KEY_ID_CHARS_MAX).ok_or(Fault::KeyId)?;
    Ok((key_id, algorithm))
}

fn read_claims(claims: &Map<String, Value>, rules: &Rules) -> Result<Claims, Fault> {
    if claims.get("iss").and_then(Value::as_str) != Some(rules.issuer.as_str()) {
        return Err(Fault::Issuer);
    }
    if !claims.get("aud").is_some_and(|audience| names(audience, &rules.audience)) {
        return Err(Fault::Audience);
    }
    let subject = text(claims, "sub", SUBJECT_CHARS_MAX).ok_or(Fault::Subject)?;
    let token_id = text(claims, "jti", SUBJECT_CHARS_MAX).ok_or(Fault::TokenId)?;
    let client_id = text(claims, "client_id", SUBJECT_CHARS_MAX).ok_or(Fault::Client)?;
    // The issuer requires proof of possession. Without checking it, a stolen token would be accepted.
    if claims.contains_key("cnf") {
        return Err(Fault::Bound);
    }
    if claims.contains_key("act") {
        return Err(Fault::Delegated);
    }
    let (expires, issued) = (seconds(claims.get("exp"))?, seconds(claims.get("iat"))?);
    let not_before = claims.get("nbf").map_or(Ok(issued), |value| seconds(Some(value)))?;
    if expires <= issued || expires <= not_before {
        return Err(Fault::Times);
    }
    let counts_until = expires.saturating_add(i64::from(rules.leeway_seconds));
    let expires_at = Time::from_unix_micros(counts_until.saturating_mul(1_000_000));
    Ok(Claims { said: Verified { subject, client_id, token_id, expires_at }, expires, issued, not_before })
}

/// Whole seconds. The standard allows a fraction, but nobody writes one, and one reader would round it up, another
/// down.
fn seconds(value: Option<&Value>) -> Result<i64, Fault> {
    let number = value.and_then(Value::as_i64).filter(|number| (0..=SECONDS_MAX).contains(number));
    number.ok_or(Fault::Times)
}

/// One audience, or a list of strings that contains it.
fn names(audience: &Value, wanted: &str) -> bool {
    match audience {
        Value::String(one) => one == wanted,
        Value::Array(list) => list.iter().all(Value::is_string) && list.iter().any(|one| one.as_str() == Some(wanted)),
        _ => false,
    }
}

/// A member that is a string of 1 to this many characters, without control characters.
fn text(object: &Map<String, Value>, name: &str, chars_max: usize) -> Option<String> {
    let text = object.get(name)?.as_str()?;
    let is_sound = (1..=chars_max).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    is_sound.then(|| text.to_owned())
}

/// Where text has the shape of a signed token: three parts of base64url, the first an object with `alg`. It need not be
/// valid or from a provider we know; it is somebody's secret either way.
pub fn find_signed(text: &[u8]) -> Option<Range<usize>> {
    let mut from = 0;
    while let Some(found) = text.get(from..)?.iter().position(|byte| *byte == b'.') {
        let first_dot = from + found;
        from = first_dot + 1;
        let claims = stretch(text.get(from..)?);
        let second_dot = from + claims;
        if claims == 0 || text.get(second_dot) != Some(&b'.') {
            continue;
        }
        let before = text.get(..first_dot)?.iter().rev().take_while(|byte| is_base64url(**byte)).count();
        if let Some(start) = header_in(text.get(first_dot - before..first_dot)?) {
            let end = second_dot + 1 + stretch(text.get(second_dot + 1..).unwrap_or_default());
            return Some(first_dot - before + start..end);
        }
    }
    None
}

/// Where in a stretch of base64url the header of a token begins that ends with the stretch. Each of the four ways to
/// divide the stretch into groups is decoded once, so the time is linear in its length.
fn header_in(stretch: &[u8]) -> Option<usize> {
    // `{` encodes as `e`, whatever follows; and the characters that may follow a brace give one of these two pairs.
    if !stretch.windows(2).any(|pair| pair == b"ey" || pair == b"ew") {
        return None;
    }
    (0..4.min(stretch.len())).find_map(|offset| {
        let decoded = BASE64URL_NOPAD.decode(stretch.get(offset..)?).ok()?;
        if decoded.trim_ascii_end().last() != Some(&b'}') {
            return None;
        }
        let named = decoded.windows(5).rposition(|window| window == b"\"alg\"")?;
        let groups = decoded
            .get(..named)?
            .chunks(3)
            .position(|group| matches!(group, [b'{'] | [b'{', b'"' | b' ' | b'\t' | b'\r' | b'\n', ..]))?;
        Some(offset + groups * 4)
    })
}

fn stretch(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_base64url(**byte)).count()
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(header: &str) -> String {
        format!("{}.{}.c2lnbmF0dXJl", BASE64URL_NOPAD.encode(header.as_bytes()), BASE64URL_NOPAD.encode(b"{\"sub\":1}"))
    }

    #[test]
    fn a_signed_token_is_found_anywhere_by_its_shape() {
        for header in [
            r#"{"alg":"RS256","typ":"at+jwt","kid":"k"}"#,
            r#"{"alg":"none"}"#,
            "{ \"alg\" : \"ES256\" }",
            "{\n\"alg\":\"x\"\n}\n",
            r#"{"kid":"a longer one","alg":"EdDSA"}"#,
        ] {
            let token = signed(header);
            for before in ["", "x", "xx", "xxx", "eyJ", "t=", "\"", "a.b.", "..."] {
                let text = format!("{before}{token}\"}} and more");
                let found = find_signed(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
                assert_eq!(&text[found], token, "{before} {header}");
            }
        }
        let unsigned = format!("{}.e30.", BASE64URL_NOPAD.encode(br#"{"alg":"none"}"#));
        assert_eq!(find_signed(unsigned.as_bytes()), Some(0..unsigned.len()));
    }

    #[test]
    fn what_only_resembles_a_signed_token_is_left_alone() {
        for text in [
            "eyJ and a sentence.with.dots",
            "https://www.example.com/a.b.c?d=e.f.g",
            "sha256.0123456789abcdef.eyJhIjoxfQ",
            "eyJhIjoxfQ.eyJhIjoxfQ.eyJhIjoxfQ",
            &signed(r#"{"alg":"RS256""#),
            &signed(r#"["alg"]"#),
            &signed(r#"{"alg":"RS256"}"#).replace('.', "-"),
        ] {
            assert_eq!(find_signed(text.as_bytes()), None, "{text}");
        }
    }
}
