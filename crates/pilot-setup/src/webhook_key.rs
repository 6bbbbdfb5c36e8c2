//! Keys that sign webhooks, as Standard Webhooks writes them: `whsk_…` with its public half `whpk_…`, or `whsec_…`.

use std::fmt;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use data_encoding::{BASE64, BASE64_NOPAD};
use zeroize::Zeroizing;

use crate::config::Signing;
use crate::random;

const PRIVATE: &str = "whsk_";
const PUBLIC: &str = "whpk_";
const SHARED: &str = "whsec_";
const SEED_BYTES: usize = 32;
/// The standard's bounds.
const SHARED_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookKeyError {
    #[error("must be one line that begins with {0}, followed by base64; `pilot webhook key` makes one")]
    Prefix(&'static str),
    #[error("is not base64 after {0}")]
    Encoding(&'static str),
    #[error("is not an Ed25519 key: it has {0} bytes, and 32 (the seed) or 64 (with the public key) are needed")]
    Ed25519(usize),
    #[error("is not an Ed25519 key: its two halves do not belong together")]
    Halves,
    #[error("is a secret of {0} bytes, and 24 to 64 are allowed")]
    Shared(usize),
}

/// It cannot be printed or cloned.
pub enum WebhookKey {
    Ed25519(Box<Ed25519KeyPair>),
    Hmac(Box<hmac::Key>),
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WebhookKey::Ed25519(_) => "WebhookKey(ed25519)",
            WebhookKey::Hmac(_) => "WebhookKey(hmac)",
        })
    }
}

impl WebhookKey {
    /// White space around the key, such as the end of its line, is ignored. No message contains any part of it.
    pub fn parse(signing: Signing, text: &str) -> Result<WebhookKey, WebhookKeyError> {
        let prefix = match signing {
            Signing::Ed25519 => PRIVATE,
            Signing::Hmac => SHARED,
        };
        let encoded = text.trim().strip_prefix(prefix).ok_or(WebhookKeyError::Prefix(prefix))?;
        let encoded = encoded.trim_end_matches('=').as_bytes();
        let raw = Zeroizing::new(BASE64_NOPAD.decode(encoded).map_err(|_| WebhookKeyError::Encoding(prefix))?);
        match signing {
            Signing::Ed25519 => ed25519(&raw).map(|pair| WebhookKey::Ed25519(Box::new(pair))),
            Signing::Hmac if !SHARED_BYTES.contains(&raw.len()) => Err(WebhookKeyError::Shared(raw.len())),
            Signing::Hmac => Ok(WebhookKey::Hmac(Box::new(hmac::Key::new(hmac::HMAC_SHA256, &raw)))),
        }
    }

    /// A new one, as its file has it.
    pub fn generate(signing: Signing) -> Result<Zeroizing<String>, random::NoRandomness> {
        let seed = Zeroizing::new(random::bytes::<SEED_BYTES>()?);
        Ok(Zeroizing::new(match signing {
            Signing::Hmac => format!("{SHARED}{}", BASE64.encode(&*seed)),
            Signing::Ed25519 => {
                let public = ed25519(&*seed).map(|pair| pair.public_key().as_ref().to_vec()).unwrap_or_default();
                let whole = Zeroizing::new([&*seed, public.as_slice()].concat());
                format!("{PRIVATE}{}", BASE64.encode(&whole))
            }
        }))
    }

    /// What receivers verify with, if that is not the secret itself.
    pub fn public(&self) -> Option<String> {
        match self {
            WebhookKey::Ed25519(pair) => Some(format!("{PUBLIC}{}", BASE64.encode(pair.public_key().as_ref()))),
            WebhookKey::Hmac(_) => None,
        }
    }

    /// With its version, as the header has it.
    pub fn sign(&self, message: &[u8]) -> String {
        match self {
            WebhookKey::Ed25519(pair) => format!("v1a,{}", BASE64.encode(pair.sign(message).as_ref())),
            WebhookKey::Hmac(key) => format!("v1,{}", BASE64.encode(hmac::sign(key, message).as_ref())),
        }
    }
}

fn ed25519(raw: &[u8]) -> Result<Ed25519KeyPair, WebhookKeyError> {
    let halves = || WebhookKeyError::Halves;
    match raw.split_at_checked(SEED_BYTES) {
        Some((seed, [])) => Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| halves()),
        Some((seed, public)) if public.len() == SEED_BYTES => {
            Ed25519KeyPair::from_seed_and_public_key(seed, public).map_err(|_| halves())
        }
        _ => Err(WebhookKeyError::Ed25519(raw.len())),
    }
}

/// What is signed: the id and the time of the delivery with its body.
pub fn signed_text(id: &str, timestamp: i64, body: &[u8]) -> Vec<u8> {
    [format!("{id}.{timestamp}.").as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

    fn key(signing: Signing, text: &str) -> Result<WebhookKey, String> {
        WebhookKey::parse(signing, text).map_err(|error| error.to_string())
    }

    /// The example of the standard's own documents and libraries.
    #[test]
    fn the_standard_s_example_gives_the_standard_s_signature() {
        let key = key(Signing::Hmac, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let text = signed_text("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
        assert_eq!(key.sign(&text), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    /// RFC 8032, 7.1, test 3.
    #[test]
    fn an_ed25519_key_signs_as_the_standard_of_signatures_says() {
        let seed = "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
        let public = "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025";
        let signature = "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac\
                         18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a";
        let hex = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap();
        for raw in [hex(seed), hex(&format!("{seed}{public}"))] {
            let key = key(Signing::Ed25519, &format!("whsk_{}", BASE64.encode(&raw))).unwrap();
            assert_eq!(key.sign(&hex("af82")), format!("v1a,{}", BASE64.encode(&hex(signature))));
            assert_eq!(key.public().unwrap(), format!("whpk_{}", BASE64.encode(&hex(public))));
        }
    }

    #[test]
    fn a_generated_key_is_read_back_and_its_public_half_verifies() {
        for signing in [Signing::Ed25519, Signing::Hmac] {
            let text = WebhookKey::generate(signing).unwrap();
            let key = WebhookKey::parse(signing, &text).unwrap();
            assert_ne!(*text, *WebhookKey::generate(signing).unwrap());
            let Some(public) = key.public() else { continue };
            let public = BASE64.decode(public.strip_prefix("whpk_").unwrap().as_bytes()).unwrap();
            let signature = key.sign(b"message");
            let signature = BASE64.decode(signature.strip_prefix("v1a,").unwrap().as_bytes()).unwrap();
            UnparsedPublicKey::new(&ED25519, &public).verify(b"message", &signature).unwrap();
            assert!(UnparsedPublicKey::new(&ED25519, &public).verify(b"messagf", &signature).is_err());
        }
    }

    #[test]
    fn what_is_not_a_key_is_refused_without_being_quoted() {
        let short = format!("whsk_{}", BASE64.encode(&[7; 31]));
        let strange = format!("whsk_{}", BASE64.encode(&[7; 64]));
        for (signing, text, why) in [
            (Signing::Ed25519, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "begins with whsk_"),
            (Signing::Hmac, "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "begins with whsec_"),
            (Signing::Hmac, "", "begins with whsec_"),
            (Signing::Hmac, "whsec_MfKQ9r8GKYqr!", "not base64"),
            (Signing::Hmac, "whsec_MfKQ9r8G", "6 bytes"),
            (Signing::Ed25519, short.as_str(), "31 bytes"),
            (Signing::Ed25519, strange.as_str(), "do not belong together"),
        ] {
            let error = key(signing, text).unwrap_err();
            assert!(error.contains(why) && !error.contains("MfKQ"), "{error}");
        }
    }
}
