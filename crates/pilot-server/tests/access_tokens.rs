//! Access tokens: the honest ones come in; forged and confused ones do not, each for the reason meant for it.

mod demands;
mod forge;
mod identity;
mod providers;

use std::time::Duration;

use forge::{Forge, NOW, keys_in, published, rules, verdict};
use pilot_core::key_set::KeySet;
use pilot_core::time::Time;
use pilot_server::identity::oauth::signature::verify;
use serde_json::{Value, json};

/// What is tried, and what becomes of it.
type Case = (&'static str, Forge, &'static str);

fn check(cases: Vec<Case>) {
    let faults: Vec<_> = cases
        .into_iter()
        .filter_map(|(what, forge, expected)| {
            let found = verdict(&forge.token());
            (found != expected).then(|| format!("{what}: {found}, not {expected}"))
        })
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn honest() -> Forge {
    Forge::honest()
}

#[test]
fn honest_tokens_come_in_with_every_algorithm_that_is_pinned() {
    check(vec![
        ("RS256", honest(), "ok"),
        ("PS256", honest().signed_by("PS256"), "ok"),
        ("ES256", honest().signed_by("ES256"), "ok"),
        ("EdDSA", honest().signed_by("EdDSA"), "ok"),
        ("typ as a media type", honest().header("typ", json!("application/at+jwt")), "ok"),
        ("typ in other letter case", honest().header("typ", json!("AT+JWT")), "ok"),
        ("audience in a list", honest().claim("aud", json!(["https://other.example", "https://pilot.example"])), "ok"),
        ("not before, long ago", honest().claim("nbf", json!(NOW - 100)), "ok"),
        ("without not before", honest().without_claim("nbf"), "ok"),
        ("expired within the leeway", honest().claim("exp", json!(NOW - 29)), "ok"),
        ("issued within the leeway", honest().claim("iat", json!(NOW + 30)), "ok"),
        ("more claims than we read", honest().claim("scope", json!("a b")).claim("roles", json!(["approver"])), "ok"),
        ("a thumbprint in the header", honest().header("x5t", json!("abc")), "ok"),
        ("as long as may be", honest().claim("filler", json!("x".repeat(5_300))), "ok"),
    ]);
}

#[test]
fn a_token_cannot_choose_how_it_is_checked() {
    check(vec![
        ("alg none", honest().header("alg", json!("none")).unsigned(), "Algorithm"),
        ("alg none with a signature", honest().header("alg", json!("none")), "Algorithm"),
        ("alg None", honest().header("alg", json!("None")).unsigned(), "Algorithm"),
        ("alg NONE", honest().header("alg", json!("NONE")).unsigned(), "Algorithm"),
        ("alg empty", honest().header("alg", json!("")), "Algorithm"),
        ("alg missing", honest().without_header("alg"), "Algorithm"),
        ("alg a number", honest().header("alg", json!(256)), "Algorithm"),
        ("alg a list", honest().header("alg", json!(["RS256"])), "Algorithm"),
        ("alg null", honest().header("alg", Value::Null), "Algorithm"),
        ("alg in small letters", honest().header("alg", json!("rs256")), "Algorithm"),
        ("alg with a space", honest().header("alg", json!("RS256 ")), "Algorithm"),
        ("HS256 by the public key's modulus", honest().hmac_by_public_key(), "Algorithm"),
        ("HS512", honest().header("alg", json!("HS512")), "Algorithm"),
        ("an algorithm that is known but not pinned", honest().signed_by("RS512"), "Algorithm"),
        ("ES384, not pinned", honest().signed_by("ES384"), "Algorithm"),
        ("RSA key, said to be ES256", honest().header("alg", json!("ES256")), "OtherKey"),
        ("EC key, said to be RS256", honest().signed_by("ES256").header("alg", json!("RS256")), "OtherKey"),
        ("Ed25519 key, said to be ES256", honest().signed_by("EdDSA").header("alg", json!("ES256")), "OtherKey"),
        (
            "a key published for RS256 alone, used for PS256",
            honest().signed_by("PS256").kid("rsa-only-rs256"),
            "OtherKey",
        ),
        ("PS256 signature said to be RS256", honest().signed_by("PS256").header("alg", json!("RS256")), "Signature"),
        ("RS256 signature said to be PS256", honest().header("alg", json!("PS256")), "Signature"),
    ]);
}

#[test]
fn a_token_cannot_bring_its_own_key() {
    let own = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"});
    check(vec![
        ("jku", honest().header("jku", json!("https://evil.example/keys")), "OwnKey"),
        ("jku at the issuer", honest().header("jku", json!("https://issuer.example/jwks")), "OwnKey"),
        ("jwk", honest().header("jwk", own), "OwnKey"),
        ("x5u", honest().header("x5u", json!("https://evil.example/cert")), "OwnKey"),
        ("x5c", honest().header("x5c", json!(["MIIB"])), "OwnKey"),
        ("crit", honest().header("crit", json!(["exp"])), "Critical"),
        ("crit empty", honest().header("crit", json!([])), "Critical"),
        ("b64 false", honest().header("b64", json!(false)), "Critical"),
        ("zip", honest().header("zip", json!("DEF")), "Critical"),
        ("nested JWT", honest().header("cty", json!("JWT")), "Critical"),
        ("encrypted header", honest().header("enc", json!("A256GCM")), "Critical"),
    ]);
}

#[test]
fn a_kid_is_a_name_and_nothing_else() {
    check(vec![
        ("missing", honest().without_header("kid"), "KeyId"),
        ("empty", honest().kid(""), "KeyId"),
        ("a number", honest().header("kid", json!(1)), "KeyId"),
        ("null", honest().header("kid", Value::Null), "KeyId"),
        ("a list", honest().header("kid", json!(["rsa"])), "KeyId"),
        ("too long", honest().kid(&"k".repeat(257)), "KeyId"),
        ("with a line break", honest().kid("rsa\n"), "KeyId"),
        ("with a zero byte", honest().kid("rsa\0"), "Header"),
        ("unknown", honest().kid("nobody"), "UnknownKey"),
        ("a path", honest().kid("../../../../dev/null"), "UnknownKey"),
        ("SQL", honest().kid("x' UNION SELECT 'secret' --"), "UnknownKey"),
        ("a shell", honest().kid("$(id)"), "UnknownKey"),
        ("an address", honest().kid("https://evil.example/key"), "UnknownKey"),
        ("in other letter case", honest().kid("RSA"), "UnknownKey"),
        ("with a space", honest().kid("rsa "), "UnknownKey"),
        ("another good key's", honest().kid("rsa-other"), "Signature"),
        ("given twice in the key set", honest().kid("twice"), "UnknownKey"),
        ("of a key for encryption", honest().kid("enc"), "UnknownKey"),
        ("of a shared secret", honest().kid("oct"), "UnknownKey"),
        ("of a key published with its private part", honest().kid("private"), "UnknownKey"),
        ("of an RSA key of 1,024 bits", honest().kid("short"), "UnknownKey"),
        ("of a key on another curve", honest().signed_by("ES256").kid("p384"), "OtherKey"),
        ("of a point that is on no curve", honest().signed_by("ES256").kid("off-curve"), "Signature"),
    ]);
}

#[test]
fn only_an_access_token_counts() {
    check(vec![
        ("typ missing", honest().without_header("typ"), "Type"),
        ("typ JWT", honest().header("typ", json!("JWT")), "Type"),
        ("an ID token", honest().header("typ", json!("id+jwt")), "Type"),
        ("a logout token", honest().header("typ", json!("logout+jwt")), "Type"),
        ("a proof of possession", honest().header("typ", json!("dpop+jwt")), "Type"),
        ("typ with a parameter", honest().header("typ", json!("at+jwt; v=1")), "Type"),
        ("typ a number", honest().header("typ", json!(1)), "Type"),
        ("an ID token's audience: the client", honest().claim("aud", json!("console")), "Audience"),
    ]);
}

#[test]
fn issuer_and_audience_are_compared_to_the_letter() {
    check(vec![
        ("iss missing", honest().without_claim("iss"), "Issuer"),
        ("iss of another", honest().claim("iss", json!("https://evil.example")), "Issuer"),
        ("iss with a slash more", honest().claim("iss", json!("https://issuer.example/")), "Issuer"),
        ("iss in other letter case", honest().claim("iss", json!("https://Issuer.example")), "Issuer"),
        ("iss with http", honest().claim("iss", json!("http://issuer.example")), "Issuer"),
        ("iss as a beginning", honest().claim("iss", json!("https://issuer.example.evil.example")), "Issuer"),
        ("iss in a list", honest().claim("iss", json!(["https://issuer.example"])), "Issuer"),
        ("aud missing", honest().without_claim("aud"), "Audience"),
        ("aud of another", honest().claim("aud", json!("https://other.example")), "Audience"),
        ("aud with a slash more", honest().claim("aud", json!("https://pilot.example/")), "Audience"),
        ("aud empty list", honest().claim("aud", json!([])), "Audience"),
        ("aud list of others", honest().claim("aud", json!(["https://a.example", "https://b.example"])), "Audience"),
        ("aud list with something else in it", honest().claim("aud", json!(["https://pilot.example", 1])), "Audience"),
        ("aud an object", honest().claim("aud", json!({"https://pilot.example": true})), "Audience"),
        ("aud null", honest().claim("aud", Value::Null), "Audience"),
        ("aud with a wildcard", honest().claim("aud", json!("*")), "Audience"),
    ]);
}

#[test]
fn times_are_whole_seconds_that_make_sense() {
    check(vec![
        ("exp missing", honest().without_claim("exp"), "Times"),
        ("exp a text", honest().claim("exp", json!("9999999999")), "Times"),
        ("exp a date", honest().claim("exp", json!("2099-01-01T00:00:00Z")), "Times"),
        ("exp null", honest().claim("exp", Value::Null), "Times"),
        ("exp true", honest().claim("exp", json!(true)), "Times"),
        ("exp a fraction", honest().claim("exp", json!(1_800_000_600.5)), "Times"),
        ("exp negative", honest().claim("exp", json!(-1)), "Times"),
        ("exp beyond the year 9999", honest().claim("exp", json!(9_007_199_254_740_991_i64)), "Times"),
        (
            "exp beyond what JSON holds",
            honest().without_claim("exp").claims_text(r#""exp":99999999999999999999"#),
            "Claims",
        ),
        ("exp infinite", honest().without_claim("exp").claims_text(r#""exp":1e999"#), "Claims"),
        (
            "exp written as a float: a number is one number",
            honest().without_claim("exp").claims_text(&format!(r#""exp":{}e0"#, NOW + 600)),
            "ok",
        ),
        ("exp past", honest().claim("exp", json!(NOW - 30)), "Expired"),
        ("exp before iat", honest().claim("iat", json!(NOW)).claim("exp", json!(NOW)), "Times"),
        ("exp before nbf", honest().claim("nbf", json!(NOW + 900)), "Times"),
        ("iat missing", honest().without_claim("iat"), "Times"),
        ("iat a text", honest().claim("iat", json!("1")), "Times"),
        ("iat negative", honest().claim("iat", json!(-5)), "Times"),
        ("iat in the future", honest().claim("iat", json!(NOW + 31)), "Early"),
        ("nbf in the future", honest().claim("nbf", json!(NOW + 31)), "Early"),
        ("nbf a text, which some readers skip", honest().claim("nbf", json!("x")), "Times"),
        ("nbf null", honest().claim("nbf", Value::Null), "Times"),
        ("lives too long", honest().claim("exp", json!(NOW + 86_400)), "LongLived"),
        ("issued in 1970, to live long", honest().claim("iat", json!(0)), "LongLived"),
    ]);
}

#[test]
fn a_token_says_of_whom_it_speaks_and_which_one_it_is() {
    check(vec![
        ("sub missing", honest().without_claim("sub"), "Subject"),
        ("sub empty", honest().claim("sub", json!("")), "Subject"),
        ("sub a number", honest().claim("sub", json!(7)), "Subject"),
        ("sub a list", honest().claim("sub", json!(["ana", "ben"])), "Subject"),
        ("sub too long", honest().claim("sub", json!("x".repeat(513))), "Subject"),
        ("sub with a line break", honest().claim("sub", json!("ana\nben")), "Subject"),
        ("jti missing", honest().without_claim("jti"), "TokenId"),
        ("jti empty", honest().claim("jti", json!("")), "TokenId"),
        ("jti a number", honest().claim("jti", json!(7)), "TokenId"),
        ("jti too long", honest().claim("jti", json!("x".repeat(513))), "TokenId"),
        ("client_id missing", honest().without_claim("client_id"), "Client"),
        ("client_id a number", honest().claim("client_id", json!(1)), "Client"),
        ("bound to its holder's key", honest().claim("cnf", json!({"jkt": "abc"})), "Bound"),
        ("someone acting for another", honest().claim("act", json!({"sub": "ben"})), "Delegated"),
    ]);
}

#[test]
fn a_text_two_readers_could_take_differently_is_refused() {
    let token = honest().token();
    let [header, claims, signature]: [&str; 3] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    let flipped = |text: &str, at: usize| {
        let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
        format!("{}{other}{}", &text[..at], &text[at + 1..])
    };
    for (what, token, expected) in [
        ("nothing", String::new(), "Shape"),
        ("dots alone", ".".repeat(40), "Shape"),
        ("two parts", format!("{header}.{claims}"), "Shape"),
        ("four parts", format!("{token}.{signature}"), "Shape"),
        ("five parts, encrypted", format!("{token}.{signature}.{signature}"), "Shape"),
        ("a dot at the end", format!("{token}."), "Shape"),
        ("a dot at the beginning", format!(".{token}"), "Shape"),
        ("no signature", format!("{header}.{claims}."), "Shape"),
        ("no claims", format!("{header}..{signature}"), "Shape"),
        ("no header", format!(".{claims}.{signature}"), "Shape"),
        ("padding", format!("{header}.{claims}.{signature}="), "Shape"),
        ("padding in the header", format!("{header}==.{claims}.{signature}"), "Shape"),
        ("a space at the end", format!("{token} "), "Shape"),
        ("a line break inside", format!("{header}.\n{claims}.{signature}"), "Shape"),
        ("plain base64", format!("{header}.{claims}.+/{}", &signature[2..]), "Shape"),
        ("percent-encoded dots", token.replace('.', "%2e"), "Shape"),
        ("JSON serialisation", format!("{{\"payload\":\"{claims}\",\"signatures\":[]}}"), "Shape"),
        ("too long", format!("{token}{}", "A".repeat(8_192)), "Shape"),
        ("a changed header", format!("{}.{claims}.{signature}", forge::encoded(b"{}")), "Algorithm"),
        ("a changed claim", format!("{header}.{}.{signature}", flipped(claims, 20)), "Signature"),
        ("a changed signature", format!("{header}.{claims}.{}", flipped(signature, 20)), "Signature"),
        ("a shorter signature", format!("{header}.{claims}.{}", &signature[..340]), "Signature"),
        ("a signature of one byte", format!("{header}.{claims}.AA"), "Signature"),
        ("claims of another token", swapped(&token), "Signature"),
    ] {
        assert_eq!(verdict(&token), expected, "{what}");
    }
    check(vec![
        ("a header that is a list", honest().header_text("[]"), "Header"),
        ("a header that is no JSON", honest().header_text("alg"), "Header"),
        ("alg twice", honest().header_text(r#"{"alg":"none","alg":"RS256","typ":"at+jwt","kid":"rsa"}"#), "Header"),
        (
            "a header with something after it",
            honest().header_text(r#"{"alg":"RS256","typ":"at+jwt","kid":"rsa"}x"#),
            "Header",
        ),
        ("a header behind a space", honest().header_text(r#" {"alg":"RS256","typ":"at+jwt","kid":"rsa"}"#), "Header"),
        ("alg behind escapes", honest().header_text(r#"{"\u0061lg":"RS256","typ":"at+jwt","kid":"rsa"}"#), "Header"),
        ("deep nesting", honest().header("x", deep(40)), "Header"),
        ("claims that are a list", honest().whole_claims("[]"), "Claims"),
        ("claims that are a JWT", honest().whole_claims(&token), "Claims"),
        ("claims that are no UTF-8", honest().whole_claims_bytes(b"{\"sub\":\"\xFF\"}"), "Claims"),
        ("sub twice", honest().claims_text(r#""sub":"ben""#), "Claims"),
        ("exp twice", honest().claims_text(&format!(r#""exp":{}"#, NOW + 600)), "Claims"),
        ("a name twice, once escaped", honest().claims_text(r#""s\u0075b":"ben""#), "Claims"),
        ("ES256 in DER", honest().signed_by("ES256").der(), "Signature"),
        ("ES256 of zeros", honest().signed_by("ES256").signature(&[0; 64]), "Signature"),
        ("ES256 too short", honest().signed_by("ES256").signature(&[1; 63]), "Signature"),
        ("EdDSA of zeros", honest().signed_by("EdDSA").signature(&[0; 64]), "Signature"),
        ("RS256 of zeros", honest().signature(&[0; 256]), "Signature"),
        ("signed by a key nobody published", honest().signed_by_a_stranger(), "Signature"),
    ]);
}

/// The header and signature of one token with the claims of another.
fn swapped(token: &str) -> String {
    let other = honest().claim("sub", json!("ben")).token();
    let claims = other.split('.').nth(1).unwrap();
    let own: Vec<_> = token.split('.').collect();
    format!("{}.{claims}.{}", own[0], own[2])
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

#[test]
fn a_verified_token_says_who_and_until_when() {
    let keys = KeySet::parse(published().to_string().as_bytes()).unwrap();
    let token = honest().claim("exp", json!(NOW + 60)).token();
    let at = |seconds: i64| Time::from_unix_micros((NOW + seconds) * 1_000_000);
    let verified = verify(token.as_bytes(), &keys, &rules(), at(0)).unwrap();
    assert_eq!((verified.subject.as_str(), verified.client_id.as_str()), ("ana", "console"));
    assert_eq!((verified.token_id.as_str(), verified.expires_at), ("token-1", at(60).plus(Duration::from_secs(30))));
    // It counts until then, and not a second longer.
    assert!(verify(token.as_bytes(), &keys, &rules(), at(89)).is_ok());
    assert!(verify(token.as_bytes(), &keys, &rules(), verified.expires_at).is_err());
}

#[test]
fn no_change_of_a_single_character_makes_another_valid_token() {
    let keys = KeySet::parse(published().to_string().as_bytes()).unwrap();
    let token = honest().signed_by("EdDSA").token();
    let now = Time::from_unix_micros(NOW * 1_000_000);
    assert!(verify(token.as_bytes(), &keys, &rules(), now).is_ok());
    for at in 0..token.len() {
        for change in [1_u8, 2, 4, 8, 16, 32, 64] {
            let mut changed = token.clone().into_bytes();
            changed[at] ^= change;
            assert!(verify(&changed, &keys, &rules(), now).is_err(), "at {at}, bit {change}");
        }
    }
}

#[test]
fn no_other_key_set_lets_a_token_in() {
    let token = honest().token();
    let now = Time::from_unix_micros(NOW * 1_000_000);
    for set in [json!({"keys": []}), keys_in(&["rsa-other"], &published()), keys_in(&["p256"], &published())] {
        let keys = KeySet::parse(set.to_string().as_bytes()).unwrap();
        assert!(verify(token.as_bytes(), &keys, &rules(), now).is_err());
    }
}

/// As if someone had made the permit issuer's keys known as a provider's, and the token said everything an access token
/// has to say.
#[test]
fn a_permit_token_is_never_an_access_token_even_if_its_issuer_were_the_provider() {
    let keys = pilot_setup::permit_key::PermitKeys::generate().unwrap();
    let claims = json!({
        "iss": rules().issuer, "aud": rules().audience, "sub": "ana", "client_id": "ana", "jti": "j",
        "iat": NOW, "nbf": NOW, "exp": NOW + 60,
    });
    let token = keys.sign(keys.signing_id(), &claims).unwrap();
    let known = KeySet::parse(keys.published().to_string().as_bytes()).unwrap();
    let now = Time::from_unix_micros(NOW * 1_000_000);
    let refused = verify(token.as_bytes(), &known, &rules(), now).err().map(|fault| format!("{fault:?}"));
    assert_eq!(refused.as_deref(), Some("Type"));
}
