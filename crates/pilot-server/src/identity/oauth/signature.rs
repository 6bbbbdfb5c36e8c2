//! Checks signatures of access tokens, with the cryptography library that TLS uses.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use pilot_core::access_token::{Algorithm, Claims, Fault, Rules, Signed, Unverified, Verified};
use pilot_core::key_set::{Key, KeySet, Material};
use pilot_core::time::Time;

/// The whole verdict on a token: its shape, its key, its signature, then its claims. Pure, so that every forged and
/// confused token can be tried on it.
pub fn verify(token: &[u8], keys: &KeySet, rules: &Rules, now: Time) -> Result<Verified, Fault> {
    let unverified = Unverified::read(token, rules)?;
    claims_of(unverified, keys, rules)?.at(rules, now)
}

pub fn claims_of(unverified: Unverified<'_>, keys: &KeySet, rules: &Rules) -> Result<Claims, Fault> {
    let key = keys.find(&unverified.key_id).ok_or(Fault::UnknownKey)?;
    unverified.verify(rules, |signed| match key.fits(signed.algorithm) {
        false => Err(Fault::OtherKey),
        true if is_signed(key, signed) => Ok(()),
        true => Err(Fault::Signature),
    })
}

fn is_signed(key: &Key, Signed { algorithm, message, signature }: &Signed<'_>) -> bool {
    // A key is used according to its own kind, never according to what the token says.
    match (&key.material, algorithm) {
        (Material::Rsa { modulus, exponent }, algorithm) => rsa(*algorithm).is_some_and(|parameters| {
            let key = RsaPublicKeyComponents { n: modulus.as_slice(), e: exponent.as_slice() };
            key.verify(parameters, message, signature).is_ok()
        }),
        (Material::P256(point), Algorithm::Es256) => by(&ECDSA_P256_SHA256_FIXED, point, message, signature),
        (Material::P384(point), Algorithm::Es384) => by(&ECDSA_P384_SHA384_FIXED, point, message, signature),
        (Material::Ed25519(point), Algorithm::EdDsa) => by(&ED25519, point, message, signature),
        (Material::P256(_) | Material::P384(_) | Material::Ed25519(_), _) => false,
    }
}

fn by(algorithm: &'static dyn VerificationAlgorithm, point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => None,
    }
}
