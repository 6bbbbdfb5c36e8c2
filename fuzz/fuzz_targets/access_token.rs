//! A token anyone sent, and a key set a provider published: read without surprise, and nothing believed unsigned.
#![no_main]

mod cost;

use libfuzzer_sys::fuzz_target;
use pilot_core::access_token::{
    Algorithm, ClaimPath, ClientClaim, Demands, Needed, RoleDemand, Rules, SubjectClaim, TokenIdClaim, TokenType,
    Unverified, find_signed,
};
use pilot_core::key_set::KeySet;
use pilot_core::limits::{ACCESS_TOKEN_BYTES_MAX, KEY_SET_BYTES_MAX};
use pilot_core::role::Role;
use pilot_core::time::Time;

fuzz_target!(|text: &[u8]| {
    check(text);
    for bytes_max in [ACCESS_TOKEN_BYTES_MAX, KEY_SET_BYTES_MAX] {
        if let Some(text) = cost::grown(text, b"", bytes_max) {
            cost::bounded(text.len(), || check(&text));
        }
    }
});

fn check(text: &[u8]) {
    let rules = Rules {
        issuer: "https://id.example".into(),
        audience: "https://pilot.example".into(),
        algorithms: vec![Algorithm::Rs256, Algorithm::Es256],
        leeway_seconds: 30,
        lifetime_seconds_max: 86_400,
        token_types: vec![TokenType::AccessToken, TokenType::Jwt, TokenType::Absent],
        client_claim: ClientClaim::Azp,
        subject_claim: SubjectClaim::Oid,
        token_id_claim: TokenIdClaim::Digest,
        demands: Demands {
            clients: vec!["console".into()],
            scopes: vec!["pilot".into()],
            acr: vec!["2".into()],
            amr: vec!["mfa".into()],
            roles: ClaimPath::parse("realm_access.roles").map(|claim| RoleDemand {
                claim,
                values: [(Role::Approver, Needed::OneOf(vec!["approver".into()]))].into(),
            }),
        },
    };
    let now = Time::from_unix_micros(1_800_000_000_000_000);
    if let Ok(token) = Unverified::read(text, &rules) {
        assert!(!token.key_id.is_empty());
        let claims = token.verify(&rules, |signed| {
            assert!(rules.algorithms.contains(&signed.algorithm));
            Ok(())
        });
        if let Ok(verified) = claims.and_then(|claims| claims.at(&rules, now)) {
            assert!(verified.expires_at > now && !verified.subject.is_empty() && !verified.token_id.is_empty());
        }
        // What is read as a token is found as one, wherever it stands.
        assert!(find_signed(text).is_some());
    }
    if let Some(found) = find_signed(text) {
        assert!(text[found].iter().filter(|byte| **byte == b'.').count() == 2);
    }
    if let Ok(set) = KeySet::parse(text) {
        for key in &set.keys {
            assert!(set.find(&key.key_id) == Some(key));
        }
    }
}
