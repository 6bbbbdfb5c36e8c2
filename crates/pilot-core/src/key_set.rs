//! The keys an identity provider publishes (RFC 7517), read for one purpose: to check signatures of access tokens.
//!
//! A key that cannot or should not be used for that is ignored, with the reason; the others are still used. Something
//! that is not a key set at all is an error, and the caller keeps the set it had.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use crate::access_token::{Algorithm, KeyKind};
use crate::json::{self, Bounds};
use crate::limits::{ANSWER_VALUES_MAX, KEY_SET_BYTES_MAX, KEY_SET_KEYS_MAX};

const BOUNDS: Bounds = Bounds { depth: 8, values: ANSWER_VALUES_MAX };
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// Members that only private and shared keys have.
const SECRET: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeySetFault {
    #[error("the key set has more than {} KiB", KEY_SET_BYTES_MAX / 1024)]
    TooLarge,
    #[error("the key set has more than {KEY_SET_KEYS_MAX} keys")]
    TooMany,
    #[error("the key set is not a strict JSON object with a list of keys")]
    Malformed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet {
    pub keys: Vec<Key>,
    /// The position of each key that is not used, and the reason.
    pub passed_over: Vec<(usize, &'static str)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub key_id: String,
    /// The only algorithm it may be used with, if it names one.
    pub algorithm: Option<Algorithm>,
    pub material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl Key {
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        self.material.kind() == algorithm.key_kind() && self.algorithm.is_none_or(|only| only == algorithm)
    }
}

impl Material {
    pub fn kind(&self) -> KeyKind {
        match self {
            Material::Rsa { .. } => KeyKind::Rsa,
            Material::P256(_) => KeyKind::P256,
            Material::P384(_) => KeyKind::P384,
            Material::Ed25519(_) => KeyKind::Ed25519,
        }
    }
}

impl KeySet {
    pub fn parse(bytes: &[u8]) -> Result<KeySet, KeySetFault> {
        if bytes.len() > KEY_SET_BYTES_MAX {
            return Err(KeySetFault::TooLarge);
        }
        let value = json::parse(bytes, BOUNDS).map_err(|_| KeySetFault::Malformed)?;
        let list = value.get("keys").and_then(Value::as_array).ok_or(KeySetFault::Malformed)?;
        if list.len() > KEY_SET_KEYS_MAX {
            return Err(KeySetFault::TooMany);
        }
        let mut set = KeySet { keys: Vec::new(), passed_over: Vec::new() };
        for (at, value) in list.iter().enumerate() {
            match read_key(value, list) {
                Ok(key) => set.keys.push(key),
                Err(reason) => set.passed_over.push((at, reason)),
            }
        }
        Ok(set)
    }

    pub fn find(&self, key_id: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.key_id == key_id)
    }
}

fn read_key(value: &Value, list: &[Value]) -> Result<Key, &'static str> {
    let key = value.as_object().ok_or("is not an object")?;
    let key_id = key.get("kid").and_then(Value::as_str).ok_or("has no kid")?;
    // It would be unclear which of them a token means.
    if list.iter().filter(|other| other.get("kid").and_then(Value::as_str) == Some(key_id)).count() > 1 {
        return Err("shares its kid with another key");
    }
    if SECRET.iter().any(|name| key.contains_key(*name)) {
        return Err("is published with its private part, so anyone can sign with it");
    }
    if key.get("use").is_some_and(|purpose| purpose.as_str() != Some("sig")) {
        return Err("is not meant for signatures");
    }
    let verifies = |list: &Vec<Value>| list.iter().any(|operation| operation.as_str() == Some("verify"));
    if key.get("key_ops").is_some_and(|operations| !operations.as_array().is_some_and(verifies)) {
        return Err("is not meant for verifying signatures");
    }
    let algorithm = match key.get("alg") {
        None => None,
        Some(name) => Some(name.as_str().and_then(Algorithm::named).ok_or("is for an unsupported algorithm")?),
    };
    let material = read_material(key)?;
    let key = Key { key_id: key_id.to_owned(), algorithm, material };
    if algorithm.is_some_and(|algorithm| !key.fits(algorithm)) {
        return Err("has a type that does not match its alg");
    }
    Ok(key)
}

fn read_material(key: &Map<String, Value>) -> Result<Material, &'static str> {
    let name = |member: &str| key.get(member).and_then(Value::as_str).unwrap_or("");
    let bytes = |member: &str| BASE64URL_NOPAD.decode(name(member).as_bytes()).unwrap_or_default();
    match (name("kty"), name("crv")) {
        ("RSA", _) => read_rsa(bytes("n"), bytes("e")),
        ("EC", "P-256") => point(&bytes("x"), &bytes("y"), 32).map(Material::P256),
        ("EC", "P-384") => point(&bytes("x"), &bytes("y"), 48).map(Material::P384),
        ("OKP", "Ed25519") => {
            let x = bytes("x");
            if x.len() == 32 { Ok(Material::Ed25519(x)) } else { Err("has a point of the wrong length") }
        }
        _ => Err("has an unsupported type"),
    }
}

fn read_rsa(modulus: Vec<u8>, exponent: Vec<u8>) -> Result<Material, &'static str> {
    let bits = modulus.len() * 8 - modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
    if modulus.first() == Some(&0) || !RSA_BITS.contains(&bits) {
        return Err("is an RSA key of fewer than 2,048 or more than 8,192 bits");
    }
    // At least 65,537, odd, and short enough that checking stays cheap.
    let number = exponent.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    if exponent.len() > 4 || exponent.first() == Some(&0) || number < 65_537 || number % 2 == 0 {
        return Err("has an RSA exponent that is even, too small or too large");
    }
    Ok(Material::Rsa { modulus, exponent })
}

fn point(x: &[u8], y: &[u8], length: usize) -> Result<Vec<u8>, &'static str> {
    if x.len() != length || y.len() != length {
        return Err("has a point of the wrong length");
    }
    Ok([&[4], x, y].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(keys: &str, expected: &Expect) {
        let n = BASE64URL_NOPAD.encode(&[0xFF; 256]);
        let x = BASE64URL_NOPAD.encode(&[7; 32]);
        let keys = keys.replace('N', &n).replace('X', &x);
        let verdict = match KeySet::parse(keys.as_bytes()) {
            Ok(set) => {
                let used = set.keys.iter().map(|key| format!("{} {:?}", key.key_id, key.material.kind()));
                let passed = set.passed_over.iter().map(|(at, reason)| format!("{at} {reason}"));
                used.chain(passed).collect::<Vec<_>>().join("\n")
            }
            Err(fault) => fault.to_string(),
        };
        expected.assert_eq(&verdict);
    }

    #[test]
    fn keys_of_each_kind_are_read() {
        check(
            r#"{"keys":[
                {"kty":"RSA","kid":"a","use":"sig","alg":"RS256","n":"N","e":"AQAB","x5t":"ignored"},
                {"kty":"EC","kid":"b","crv":"P-256","x":"X","y":"X","key_ops":["verify"]},
                {"kty":"OKP","kid":"c","crv":"Ed25519","x":"X"}
            ]}"#,
            &expect![[r#"
                a Rsa
                b P256
                c Ed25519"#]],
        );
        check(r#"{"keys":[]}"#, &expect![""]);
    }

    #[test]
    fn a_key_that_must_not_be_used_is_passed_over_and_the_others_are_kept() {
        check(
            r#"{"keys":[
                {"kty":"RSA","kid":"good","n":"N","e":"AQAB"},
                {"kty":"RSA","n":"N","e":"AQAB"},
                {"kty":"RSA","kid":"twin","n":"N","e":"AQAB"},
                {"kty":"OKP","kid":"twin","crv":"Ed25519","x":"X"},
                {"kty":"RSA","kid":"private","n":"N","e":"AQAB","d":"AQAB"},
                {"kty":"oct","kid":"shared","k":"AQAB"},
                {"kty":"oct","kid":"hollow"},
                {"kty":"RSA","kid":"enc","use":"enc","n":"N","e":"AQAB"},
                {"kty":"RSA","kid":"signs","key_ops":["sign"],"n":"N","e":"AQAB"},
                {"kty":"RSA","kid":"HS","alg":"HS256","n":"N","e":"AQAB"},
                {"kty":"RSA","kid":"none","alg":"none","n":"N","e":"AQAB"},
                {"kty":"RSA","kid":"ES","alg":"ES256","n":"N","e":"AQAB"},
                {"kty":"RSA","kid":"short","n":"AQAB","e":"AQAB"},
                {"kty":"RSA","kid":"empty","n":"","e":"AQAB"},
                {"kty":"RSA","kid":"three","n":"N","e":"Aw"},
                {"kty":"EC","kid":"k1","crv":"secp256k1","x":"X","y":"X"},
                {"kty":"EC","kid":"384","crv":"P-384","x":"X","y":"X"},
                {"kty":"OKP","kid":"x","crv":"X25519","x":"X"},
                7
            ]}"#,
            &expect![[r#"
                good Rsa
                1 has no kid
                2 shares its kid with another key
                3 shares its kid with another key
                4 is published with its private part, so anyone can sign with it
                5 is published with its private part, so anyone can sign with it
                6 has an unsupported type
                7 is not meant for signatures
                8 is not meant for verifying signatures
                9 is for an unsupported algorithm
                10 is for an unsupported algorithm
                11 has a type that does not match its alg
                12 is an RSA key of fewer than 2,048 or more than 8,192 bits
                13 is an RSA key of fewer than 2,048 or more than 8,192 bits
                14 has an RSA exponent that is even, too small or too large
                15 has an unsupported type
                16 has a point of the wrong length
                17 has an unsupported type
                18 is not an object"#]],
        );
    }

    #[test]
    fn what_is_no_key_set_or_too_large_a_one_is_a_fault() {
        for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[],"keys":[]}"#, "<html>"] {
            check(text, &expect!["the key set is not a strict JSON object with a list of keys"]);
        }
        check(&format!("{{\"keys\":[{}1]}}", "1,".repeat(64)), &expect!["the key set has more than 64 keys"]);
        let long = format!("{{\"keys\":[\"{}\"]}}", "x".repeat(KEY_SET_BYTES_MAX));
        check(&long, &expect!["the key set has more than 128 KiB"]);
    }
}
