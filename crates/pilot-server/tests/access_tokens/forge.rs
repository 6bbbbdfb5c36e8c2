//! Makes tokens: honest ones, and any that can be thought of. The keys are drawn once for the whole program.

use std::sync::LazyLock;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
};
use data_encoding::BASE64URL_NOPAD;
use pilot_core::access_token::Rules;
use pilot_core::key_set::KeySet;
use pilot_core::time::Time;
use pilot_server::identity::oauth::signature::verify;
use pilot_setup::config::Oauth as Section;
use serde_json::{Map, Value, json};

pub const NOW: i64 = 1_800_000_000;

/// The section of the configuration with only what is required, and these lines.
pub fn section(lines: &str) -> Section {
    let needed = "issuer = 'https://issuer.example'\naudience = 'https://pilot.example'\n";
    toml::from_str(&format!("{needed}{lines}")).unwrap()
}

pub fn rules() -> Rules {
    section("").rules()
}

struct Keys {
    rsa: RsaKeyPair,
    other: RsaKeyPair,
    p256: EcdsaKeyPair,
    p256_der: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let p256 = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let document = p256.to_pkcs8v1().unwrap();
    Keys {
        rsa: RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
        other: RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
        p256_der: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref()).unwrap(),
        p256,
        p384: EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap(),
        ed25519: Ed25519KeyPair::generate().unwrap(),
    }
});

pub fn encoded(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

/// The public key comes in DER, where 256 bytes of modulus stand between nine of frame and five of exponent.
fn modulus(key: &RsaKeyPair) -> Vec<u8> {
    key.public_key().as_ref()[9..265].to_vec()
}

fn rsa(kid: &str, key: &RsaKeyPair) -> Value {
    json!({"kty": "RSA", "kid": kid, "n": encoded(&modulus(key)), "e": "AQAB"})
}

fn ec(kid: &str, curve: &str, point: &[u8]) -> Value {
    let (x, y) = point[1..].split_at(point.len() / 2);
    json!({"kty": "EC", "kid": kid, "crv": curve, "x": encoded(x), "y": encoded(y)})
}

fn with(mut key: Value, member: &str, value: Value) -> Value {
    key[member] = value;
    key
}

/// What the provider publishes: good keys, and every kind that must not be used.
pub fn published() -> Value {
    let keys = &*KEYS;
    let p384 = ec("p384", "P-384", keys.p384.public_key().as_ref());
    json!({"keys": [
        with(rsa("rsa", &keys.rsa), "use", json!("sig")),
        rsa("rsa-other", &keys.other),
        with(rsa("rsa-only-rs256", &keys.rsa), "alg", json!("RS256")),
        ec("p256", "P-256", keys.p256.public_key().as_ref()),
        p384,
        json!({"kty": "OKP", "kid": "ed25519", "crv": "Ed25519", "x": encoded(keys.ed25519.public_key().as_ref())}),
        rsa("twice", &keys.rsa),
        rsa("twice", &keys.other),
        with(rsa("enc", &keys.rsa), "use", json!("enc")),
        with(rsa("private", &keys.rsa), "d", json!("AQAB")),
        json!({"kty": "oct", "kid": "oct", "k": encoded(&[1; 32])}),
        json!({"kty": "RSA", "kid": "short", "n": encoded(&[0xFF; 128]), "e": "AQAB"}),
        json!({"kty": "EC", "kid": "off-curve", "crv": "P-256", "x": encoded(&[1; 32]), "y": encoded(&[1; 32])}),
    ]})
}

/// Only these keys of a set.
pub fn keys_in(kids: &[&str], set: &Value) -> Value {
    let list = set["keys"].as_array().unwrap().iter().filter(|key| kids.iter().any(|kid| key["kid"] == *kid));
    json!({"keys": list.collect::<Vec<_>>()})
}

/// `ok`, or the name of the fault.
pub fn verdict(token: &str) -> String {
    verdict_by(&rules(), token)
}

pub fn verdict_by(rules: &Rules, token: &str) -> String {
    let keys = KeySet::parse(published().to_string().as_bytes()).unwrap();
    match verify(token.as_bytes(), &keys, rules, Time::from_unix_micros(NOW * 1_000_000)) {
        Ok(_) => "ok".to_owned(),
        Err(fault) => format!("{fault:?}"),
    }
}

#[derive(Clone)]
enum Signer {
    Rsa(&'static dyn RsaEncoding),
    P256,
    P256Der,
    P384,
    Ed25519,
    Hmac,
    Stranger,
    Fixed(Vec<u8>),
}

#[derive(Clone)]
pub struct Forge {
    header: Map<String, Value>,
    header_text: Option<String>,
    claims: Map<String, Value>,
    /// Members written after those of `claims`, as they are.
    further: String,
    whole_claims: Option<Vec<u8>>,
    signer: Signer,
}

impl Forge {
    pub fn honest() -> Forge {
        let header = json!({"alg": "RS256", "typ": "at+jwt", "kid": "rsa"});
        let claims = json!({
            "iss": "https://issuer.example", "aud": "https://pilot.example", "sub": "ana", "client_id": "console",
            "jti": "token-1", "iat": NOW - 60, "nbf": NOW - 60, "exp": NOW + 600,
        });
        Forge::exactly(header, claims)
    }

    /// A token with this header and these claims, signed by the key `rsa`.
    pub fn exactly(header: Value, claims: Value) -> Forge {
        let (Value::Object(header), Value::Object(claims)) = (header, claims) else { panic!("two objects") };
        Forge {
            header,
            header_text: None,
            claims,
            further: String::new(),
            whole_claims: None,
            signer: Signer::Rsa(&RSA_PKCS1_SHA256),
        }
    }

    pub fn header(mut self, name: &str, value: Value) -> Forge {
        self.header.insert(name.into(), value);
        self
    }

    pub fn without_header(mut self, name: &str) -> Forge {
        self.header.remove(name);
        self
    }

    pub fn kid(self, kid: &str) -> Forge {
        self.header("kid", json!(kid))
    }

    pub fn header_text(mut self, text: &str) -> Forge {
        self.header_text = Some(text.into());
        self
    }

    pub fn claim(mut self, name: &str, value: Value) -> Forge {
        self.claims.insert(name.into(), value);
        self
    }

    pub fn without_claim(mut self, name: &str) -> Forge {
        self.claims.remove(name);
        self
    }

    /// Adds a member as it is written here, a second time if need be.
    pub fn claims_text(mut self, member: &str) -> Forge {
        self.further = format!(",{member}");
        self
    }

    pub fn whole_claims(self, text: &str) -> Forge {
        self.whole_claims_bytes(text.as_bytes())
    }

    pub fn whole_claims_bytes(mut self, bytes: &[u8]) -> Forge {
        self.whole_claims = Some(bytes.to_vec());
        self
    }

    /// By the key that is for this algorithm, which the header then names.
    pub fn signed_by(mut self, algorithm: &str) -> Forge {
        let (signer, kid) = match algorithm {
            "PS256" => (Signer::Rsa(&RSA_PSS_SHA256), "rsa"),
            "RS512" => (Signer::Rsa(&RSA_PKCS1_SHA512), "rsa"),
            "ES256" => (Signer::P256, "p256"),
            "ES384" => (Signer::P384, "p384"),
            "EdDSA" => (Signer::Ed25519, "ed25519"),
            _ => panic!("{algorithm}"),
        };
        self.signer = signer;
        self.header("alg", json!(algorithm)).kid(kid)
    }

    pub fn der(mut self) -> Forge {
        self.signer = Signer::P256Der;
        self
    }

    pub fn hmac_by_public_key(mut self) -> Forge {
        self.signer = Signer::Hmac;
        self.header("alg", json!("HS256"))
    }

    pub fn signed_by_a_stranger(mut self) -> Forge {
        self.signer = Signer::Stranger;
        self
    }

    pub fn unsigned(self) -> Forge {
        self.signature(&[])
    }

    pub fn signature(mut self, bytes: &[u8]) -> Forge {
        self.signer = Signer::Fixed(bytes.to_vec());
        self
    }

    pub fn token(&self) -> String {
        let header = self.header_text.clone().unwrap_or_else(|| json!(self.header).to_string());
        let claims = self.whole_claims.clone().unwrap_or_else(|| {
            let text = json!(self.claims).to_string();
            format!("{}{}}}", text.strip_suffix('}').unwrap(), self.further).into_bytes()
        });
        let message = format!("{}.{}", encoded(header.as_bytes()), encoded(&claims));
        format!("{message}.{}", encoded(&self.sign(message.as_bytes())))
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let keys = &*KEYS;
        let random = SystemRandom::new();
        let rsa = |key: &RsaKeyPair, encoding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; key.public_modulus_len()];
            key.sign(encoding, &random, message, &mut signature).unwrap();
            signature
        };
        match &self.signer {
            Signer::Rsa(encoding) => rsa(&keys.rsa, *encoding),
            Signer::P256 => keys.p256.sign(&random, message).unwrap().as_ref().to_vec(),
            Signer::P256Der => keys.p256_der.sign(&random, message).unwrap().as_ref().to_vec(),
            Signer::P384 => keys.p384.sign(&random, message).unwrap().as_ref().to_vec(),
            Signer::Ed25519 => keys.ed25519.sign(message).as_ref().to_vec(),
            Signer::Hmac => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, &modulus(&keys.rsa));
                hmac::sign(&key, message).as_ref().to_vec()
            }
            Signer::Stranger => rsa(&RsaKeyPair::generate(KeySize::Rsa2048).unwrap(), &RSA_PKCS1_SHA256),
            Signer::Fixed(signature) => signature.clone(),
        }
    }
}
