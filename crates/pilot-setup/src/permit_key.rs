//! The keys that sign permit tokens: the first signs, and a second one may be published while they are rotated.

use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::{StartError, with_cause};
use crate::private_file::{self, Others};

const FIRST_LINE: &str = "pilot permit keys v1";
/// One that signs, and one that is about to or did until now.
pub const PERMIT_KEYS_MAX: usize = 2;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PermitKeyError {
    #[error("these are not permit keys: expected `{FIRST_LINE}` and then one or two keys, one per line")]
    Format,
    #[error("the cryptography library failed to make or use a key")]
    Library,
    #[error("there are two keys already; retire one of them first: pilot permit key retire KEY-ID")]
    Full,
    #[error("there is no key {0}; `pilot permit key list` shows those there are")]
    NoSuchKey(String),
    #[error("{0} is the only key; create another one first: pilot permit key new")]
    Only(String),
    #[error("{0} signs; let another one sign first: pilot permit key use KEY-ID")]
    Signs(String),
}

/// A private key. It cannot be printed; it is written to its file only.
pub struct PermitKey {
    pair: EcdsaKeyPair,
    document: Zeroizing<Vec<u8>>,
    /// Derived from the public key (RFC 7638), so that the same key has the same name everywhere.
    pub id: String,
}

impl PermitKey {
    fn generate() -> Result<PermitKey, PermitKeyError> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        PermitKey::of(Zeroizing::new(made.map_err(|_| PermitKeyError::Library)?.as_ref().to_vec()))
    }

    fn of(document: Zeroizing<Vec<u8>>) -> Result<PermitKey, PermitKeyError> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &document);
        let pair = pair.map_err(|_| PermitKeyError::Format)?;
        let (x, y) = coordinates(&pair).ok_or(PermitKeyError::Format)?;
        let named = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let id = BASE64URL_NOPAD.encode(&Sha256::digest(named.as_bytes()));
        Ok(PermitKey { pair, document, id })
    }

    /// The public half, as a set of keys publishes it.
    fn public(&self) -> Value {
        let (x, y) = coordinates(&self.pair).unwrap_or_default();
        json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.id, "x": x, "y": y})
    }
}

/// A point is written as a 4, then both coordinates.
fn coordinates(pair: &EcdsaKeyPair) -> Option<(String, String)> {
    let point = pair.public_key().as_ref().strip_prefix(&[4])?;
    let (x, y) = point.split_at_checked(32).filter(|(_, y)| y.len() == 32)?;
    Some((BASE64URL_NOPAD.encode(x), BASE64URL_NOPAD.encode(y)))
}

pub struct PermitKeys {
    /// The one that signs.
    first: PermitKey,
    second: Option<PermitKey>,
}

impl PermitKeys {
    pub fn generate() -> Result<PermitKeys, PermitKeyError> {
        Ok(PermitKeys { first: PermitKey::generate()?, second: None })
    }

    pub fn parse(text: &str) -> Result<PermitKeys, PermitKeyError> {
        let mut lines = text.split_terminator('\n');
        if lines.next() != Some(FIRST_LINE) {
            return Err(PermitKeyError::Format);
        }
        let key = |line: &str| {
            let document = BASE64.decode(line.as_bytes()).map_err(|_| PermitKeyError::Format)?;
            PermitKey::of(Zeroizing::new(document))
        };
        let (first, second) = (lines.next().ok_or(PermitKeyError::Format)?, lines.next());
        let keys = PermitKeys { first: key(first)?, second: second.map(key).transpose()? };
        let is_twice = keys.second.as_ref().is_some_and(|second| second.id == keys.first.id);
        if lines.next().is_some() || is_twice { Err(PermitKeyError::Format) } else { Ok(keys) }
    }

    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(format!("{FIRST_LINE}\n"));
        for key in self.keys() {
            text.push_str(&Zeroizing::new(BASE64.encode(&key.document)));
            text.push('\n');
        }
        text
    }

    fn keys(&self) -> impl Iterator<Item = &PermitKey> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// The names of the keys; the first signs.
    pub fn ids(&self) -> Vec<String> {
        self.keys().map(|key| key.id.clone()).collect()
    }

    pub fn signing_id(&self) -> &str {
        &self.first.id
    }

    /// The public halves (RFC 7517).
    pub fn published(&self) -> Value {
        json!({ "keys": self.keys().map(PermitKey::public).collect::<Vec<_>>() })
    }

    /// A token with these claims, by the key with this name: the one that signs, or the other if a token of it is asked
    /// for again.
    pub fn sign(&self, key_id: &str, claims: &Value) -> Result<String, PermitKeyError> {
        let key = self.keys().find(|key| key.id == key_id);
        let key = key.ok_or_else(|| PermitKeyError::NoSuchKey(key_id.to_owned()))?;
        // Never at+jwt: no service may take it for an access token.
        let header = json!({"alg": "ES256", "kid": key.id, "typ": "JWT"});
        let encode = |part: &Value| BASE64URL_NOPAD.encode(part.to_string().as_bytes());
        let message = format!("{}.{}", encode(&header), encode(claims));
        let signature = key.pair.sign(&SystemRandom::new(), message.as_bytes());
        let signature = signature.map_err(|_| PermitKeyError::Library)?;
        Ok(format!("{message}.{}", BASE64URL_NOPAD.encode(signature.as_ref())))
    }

    /// Adds a key that is published and does not sign yet.
    pub fn with_new(self) -> Result<PermitKeys, PermitKeyError> {
        if self.second.is_some() {
            return Err(PermitKeyError::Full);
        }
        Ok(PermitKeys { second: Some(PermitKey::generate()?), ..self })
    }

    /// Lets this key sign; the other stays published.
    pub fn using(self, id: &str) -> Result<PermitKeys, PermitKeyError> {
        match self.second {
            _ if self.first.id == id => Ok(self),
            Some(second) if second.id == id => Ok(PermitKeys { first: second, second: Some(self.first) }),
            _ => Err(PermitKeyError::NoSuchKey(id.to_owned())),
        }
    }

    /// Removes a key that does not sign.
    pub fn without(self, id: &str) -> Result<PermitKeys, PermitKeyError> {
        match &self.second {
            Some(second) if second.id == id => Ok(PermitKeys { second: None, ..self }),
            Some(_) if self.first.id == id => Err(PermitKeyError::Signs(id.to_owned())),
            None if self.first.id == id => Err(PermitKeyError::Only(id.to_owned())),
            _ => Err(PermitKeyError::NoSuchKey(id.to_owned())),
        }
    }
}

/// Generated at the first start that needs them; refused if the file is damaged or accessible to others.
pub fn load_or_make(path: &Path) -> Result<PermitKeys, StartError> {
    if path.exists() {
        return load(path);
    }
    let keys = PermitKeys::generate().map_err(|error| StartError::Refused(error.to_string()))?;
    let written = private_file::write_new(path, keys.to_text().as_bytes());
    written.map_err(|error| StartError::environment(format!("{}: cannot be written", path.display()), error))?;
    Ok(keys)
}

pub fn load(path: &Path) -> Result<PermitKeys, StartError> {
    let file = private_file::read(path, Others::MayNothing).map_err(|error| StartError::Refused(with_cause(&error)))?;
    let text = Zeroizing::new(String::from_utf8_lossy(&file.bytes).into_owned());
    PermitKeys::parse(&text).map_err(|error| StartError::Refused(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written_and_rotate_through_two() {
        let keys = PermitKeys::generate().unwrap();
        let first = keys.signing_id().to_owned();
        assert_eq!(PermitKeys::parse(&keys.to_text()).unwrap().ids(), keys.ids());
        let error = |result: Result<PermitKeys, PermitKeyError>| result.err().unwrap();
        let again = PermitKeys::parse(&keys.to_text()).unwrap();
        assert_eq!(error(again.without(&first)), PermitKeyError::Only(first.clone()));
        let keys = keys.with_new().unwrap();
        let second = keys.ids().pop().unwrap();
        assert_eq!(keys.signing_id(), first, "a new key is published before it signs");
        let again = || PermitKeys::parse(&keys.to_text()).unwrap();
        assert_eq!(error(again().with_new()), PermitKeyError::Full);
        assert_eq!(error(again().without(&first)), PermitKeyError::Signs(first.clone()));
        assert_eq!(error(again().using("x")), PermitKeyError::NoSuchKey("x".into()));
        let keys = again().using(&second).unwrap();
        assert_eq!(keys.ids(), [second.clone(), first.clone()]);
        let keys = keys.without(&first).unwrap();
        assert_eq!(keys.ids(), [second]);
        assert_eq!(keys.published()["keys"].as_array().unwrap().len(), 1);
        assert!(!keys.published().to_string().contains("\"d\""), "the private half is not published");
    }

    #[test]
    fn what_is_not_a_key_file_is_refused() {
        let text = PermitKeys::generate().unwrap().to_text();
        let line = text.lines().nth(1).unwrap();
        for wrong in
            ["", "pilot permit keys v2\n", FIRST_LINE, &format!("{FIRST_LINE}\nAAAA\n"), &format!("{}{line}\n", *text)]
        {
            assert_eq!(PermitKeys::parse(wrong).err(), Some(PermitKeyError::Format));
        }
    }
}
