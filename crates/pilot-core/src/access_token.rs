//! Access tokens as an identity provider issues them (RFC 9068): signed JSON in three parts.
//!
//! Nothing in a token is trusted before its signature is checked, so its claims cannot be reached earlier:
//! [`Unverified`] does not expose them, and yields them only for a verified signature. Text that could be read in two
//! ways is refused, and so is anything that would supply a key with the token.

use std::ops::Range;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde_json::{Map, Value};
use sha2::Digest as _;

use crate::json::{self, Bounds};
use crate::limits::{ACCESS_TOKEN_BYTES_MAX, ANSWER_VALUES_MAX, SUBJECT_CHARS_MAX, TOKEN_BYTES_MIN};
use crate::role_map::{Kind, MappedActor};
use crate::role_set::RoleSet;
use crate::time::Time;

mod demands;
mod fault;
mod names;

pub use demands::{ClaimPath, Demands, Needed, RoleDemand};
pub use fault::Fault;
pub use names::{ClientClaim, SubjectClaim, TokenIdClaim, TokenType};

const BOUNDS: Bounds = Bounds { depth: 16, values: ANSWER_VALUES_MAX };
/// A key's name is an identifier, not prose.
const KEY_ID_CHARS_MAX: usize = 256;
/// The latest time the calendar library can represent, close to the end of the year 9999.
const SECONDS_MAX: i64 = 253_402_207_199;

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
    pub token_types: Vec<TokenType>,
    pub client_claim: ClientClaim,
    pub subject_claim: SubjectClaim,
    pub token_id_claim: TokenIdClaim,
    pub demands: Demands,
}

/// A token taken apart, with a header that may be acted on: it says which key to try, and nothing more.
#[derive(Debug)]
pub struct Unverified<'t> {
    pub key_id: String,
    token_type: TokenType,
    signed: Signed<'t>,
    claims: Vec<u8>,
}

/// What may be acted on in a header.
struct Header {
    key_id: String,
    algorithm: Algorithm,
    token_type: TokenType,
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
    /// The subject to look up in the role map.
    pub subject: String,
    /// The token's own `sub`: the same, unless another claim names the subject.
    pub sub: String,
    /// The client the token was issued to; the same as `sub` if it acts for itself.
    pub client_id: String,
    pub token_id: String,
    /// Until when it is valid, leeway included.
    pub expires_at: Time,
    /// The roles that it does not stand in the way of.
    permitted: RoleSet,
    /// Whether a person signed in as demanded.
    sign_in: Result<(), Fault>,
}

impl Verified {
    /// Whether the token suffices for the actor that the role map says it speaks of.
    pub fn suffices_for(&self, mapped: &MappedActor) -> Result<(), Fault> {
        if mapped.kind == Kind::Human {
            self.sign_in?;
        }
        if self.permitted.contains(mapped.actor.role) { Ok(()) } else { Err(Fault::RoleValue) }
    }
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
        let Header { key_id, algorithm, token_type } = read_header(&object(&header).ok_or(Fault::Header)?, rules)?;
        let signature = decoded(signature).ok_or(Fault::Shape)?;
        // A header that the leak guard would miss, because of escapes or white space, is refused; no provider writes
        // one.
        if find_signed(token) != Some(0..token.len()) {
            return Err(Fault::Header);
        }
        Ok(Unverified { key_id, token_type, signed: Signed { algorithm, message, signature }, claims })
    }

    /// The only way to the claims: through the check of the signature.
    pub fn verify(self, rules: &Rules, check: impl FnOnce(&Signed<'_>) -> Result<(), Fault>) -> Result<Claims, Fault> {
        check(&self.signed)?;
        let claims = object(&self.claims).ok_or(Fault::Claims)?;
        read_claims(&claims, &self, rules)
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

fn read_header(header: &Map<String, Value>, rules: &Rules) -> Result<Header, Fault> {
    let name = header.get("alg").and_then(Value::as_str).ok_or(Fault::Algorithm)?;
    let algorithm = Algorithm::named(name).filter(|found| rules.algorithms.contains(found));
    let algorithm = algorithm.ok_or(Fault::Algorithm)?;
    let typ = header.get("typ").map(|typ| typ.as_str().ok_or(Fault::Type)).transpose()?;
    let token_type = TokenType::of(typ).filter(|found| rules.token_types.contains(found)).ok_or(Fault::Type)?;
    if ["crit", "b64", "zip", "enc", "cty"].iter().any(|name| header.contains_key(*name)) {
        return Err(Fault::Critical);
    }
    if ["jku", "jwk", "x5u", "x5c"].iter().any(|name| header.contains_key(*name)) {
        return Err(Fault::OwnKey);
    }
    let key_id = text(header, "kid", KEY_ID_CHARS_MAX).ok_or(Fault::KeyId)?;
    Ok(Header { key_id, algorithm, token_type })
}

fn read_claims(claims: &Map<String, Value>, token: &Unverified<'_>, rules: &Rules) -> Result<Claims, Fault> {
    if claims.get("iss").and_then(Value::as_str) != Some(rules.issuer.as_str()) {
        return Err(Fault::Issuer);
    }
    let audience = claims.get("aud").filter(|audience| names(audience, &rules.audience)).ok_or(Fault::Audience)?;
    let sub = text(claims, "sub", SUBJECT_CHARS_MAX).ok_or(Fault::Subject)?;
    let client_id = read_client(claims, rules)?;
    if !token.token_type.is_for_access() && !is_for_access(claims, audience, &client_id) {
        return Err(Fault::NotForAccess);
    }
    let subject = read_subject(claims, &sub, &client_id, rules.subject_claim)?;
    let token_id = read_token_id(claims, token.signed.message, rules.token_id_claim)?;
    // The issuer requires proof of possession. Without checking it, a stolen token would be accepted.
    if claims.contains_key("cnf") {
        return Err(Fault::Bound);
    }
    if claims.contains_key("act") {
        return Err(Fault::Delegated);
    }
    rules.demands.check_client(&client_id)?;
    rules.demands.check_scopes(claims)?;
    let (permitted, sign_in) = (rules.demands.roles(claims)?, rules.demands.check_sign_in(claims));
    let (expires, issued) = (seconds(claims.get("exp"))?, seconds(claims.get("iat"))?);
    let not_before = claims.get("nbf").map_or(Ok(issued), |value| seconds(Some(value)))?;
    if expires <= issued || expires <= not_before {
        return Err(Fault::Times);
    }
    let counts_until = expires.saturating_add(i64::from(rules.leeway_seconds));
    let expires_at = Time::from_unix_micros(counts_until.saturating_mul(1_000_000));
    let said = Verified { subject, sub, client_id, token_id, expires_at, permitted, sign_in };
    Ok(Claims { said, expires, issued, not_before })
}

/// The two registered claims must not name another client than the one that is configured does.
fn read_client(claims: &Map<String, Value>, rules: &Rules) -> Result<String, Fault> {
    let client = text(claims, rules.client_claim.as_str(), SUBJECT_CHARS_MAX).ok_or(Fault::Client)?;
    let registered = ["client_id", "azp"].iter().filter_map(|name| claims.get(*name));
    let agree = registered.into_iter().all(|other| other.as_str() == Some(client.as_str()));
    if agree { Ok(client) } else { Err(Fault::Client) }
}

/// For a token whose type could also be that of an ID token. Those are for a client, so their audience names it, and they
/// have claims that tie them to a sign-in; a logout token has `events`. One provider says in a claim what a token is for.
fn is_for_access(claims: &Map<String, Value>, audience: &Value, client_id: &str) -> bool {
    let is_tied = ["nonce", "at_hash", "c_hash", "s_hash", "events"].iter().any(|name| claims.contains_key(*name));
    let says_otherwise = claims.get("typ").is_some_and(|typ| typ.as_str() != Some("Bearer"));
    !is_tied && !says_otherwise && !names(audience, client_id)
}

/// A client that acts for itself may have no other name than its own.
fn read_subject(claims: &Map<String, Value>, sub: &str, client_id: &str, claim: SubjectClaim) -> Result<String, Fault> {
    let acts_for_itself = !claims.contains_key(claim.as_str()) && sub == client_id;
    if claim == SubjectClaim::Sub || acts_for_itself {
        return Ok(sub.to_owned());
    }
    text(claims, claim.as_str(), SUBJECT_CHARS_MAX).ok_or(Fault::Subject)
}

fn read_token_id(claims: &Map<String, Value>, message: &[u8], claim: TokenIdClaim) -> Result<String, Fault> {
    if claim == TokenIdClaim::Digest {
        // Without the signature: some kinds can be written in a second way by anyone, which would be a token with
        // another name.
        let digest = HEXLOWER.encode(&sha2::Sha256::digest(message));
        return Ok(format!("sha256:{}", digest.chars().take(32).collect::<String>()));
    }
    text(claims, claim.as_str(), SUBJECT_CHARS_MAX).ok_or(Fault::TokenId)
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
