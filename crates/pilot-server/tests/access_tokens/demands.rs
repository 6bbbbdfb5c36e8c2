//! What the configuration demands of tokens beyond the standard, and what it lets them be called: each can only keep a
//! token out.

use pilot_core::access_token::Rules;
use serde_json::{Value, json};

use crate::access_tokens::forge::{Forge, NOW, section, verdict_by};

/// What is tried, and what becomes of it.
type Case = (&'static str, Forge, &'static str);

#[track_caller]
fn check(lines: &str, cases: Vec<Case>) {
    let rules = section(lines).rules();
    let faults: Vec<_> = cases.into_iter().filter_map(|case| wrong(&rules, case)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn wrong(rules: &Rules, (what, forge, expected): Case) -> Option<String> {
    let found = verdict_by(rules, &forge.token());
    (found != expected).then(|| format!("{what}: {found}, not {expected}"))
}

fn honest() -> Forge {
    Forge::honest()
}

/// As providers issue them that do not follow RFC 9068.
fn plain() -> Forge {
    honest().header("typ", json!("JWT"))
}

#[test]
fn a_token_of_another_client_of_the_provider_is_refused() {
    check(
        "clients = ['console', 'runner']\n",
        vec![
            ("of the console", honest(), "ok"),
            ("of the runner", honest().claim("client_id", json!("runner")), "ok"),
            ("of another", honest().claim("client_id", json!("newsletter")), "OtherClient"),
            ("in other letter case", honest().claim("client_id", json!("Console")), "OtherClient"),
            ("with a space", honest().claim("client_id", json!("console ")), "OtherClient"),
            ("as a beginning", honest().claim("client_id", json!("consol")), "OtherClient"),
            ("both at once", honest().claim("client_id", json!("console runner")), "OtherClient"),
            ("a list", honest().claim("client_id", json!(["console"])), "Client"),
            ("missing", honest().without_claim("client_id"), "Client"),
            ("twice", honest().claims_text(r#""client_id":"newsletter""#), "Claims"),
            ("named by two claims that agree", honest().claim("azp", json!("console")), "ok"),
            ("named by two claims that differ", honest().claim("azp", json!("newsletter")), "Client"),
            ("azp of the wrong kind", honest().claim("azp", json!(["console"])), "Client"),
        ],
    );
    check("", vec![("any client, if none is listed", honest().claim("client_id", json!("newsletter")), "ok")]);
}

#[test]
fn every_required_scope_must_be_in_the_token() {
    let scope = |value: Value| honest().claim("scope", value);
    let scp = |value: Value| honest().claim("scp", value);
    check(
        "scopes_required = ['pilot', 'pilot:write']\n",
        vec![
            ("both", scope(json!("openid pilot:write pilot")), "ok"),
            ("both in scp", scp(json!("pilot pilot:write")), "ok"),
            ("both in a list", scp(json!(["pilot", "openid", "pilot:write"])), "ok"),
            ("with two spaces between", scope(json!("pilot  pilot:write")), "ok"),
            ("one", scope(json!("pilot")), "Scope"),
            ("none", scope(json!("")), "Scope"),
            ("missing", honest(), "Scope"),
            ("in other letter case", scope(json!("Pilot pilot:write")), "Scope"),
            ("a longer one", scope(json!("pilot2 pilot:write")), "Scope"),
            ("separated by a tab", scope(json!("pilot\tpilot:write")), "Scope"),
            ("separated by a comma", scope(json!("pilot,pilot:write")), "Scope"),
            ("scope as a list", scope(json!(["pilot", "pilot:write"])), "Scope"),
            ("two in one entry of a list", scp(json!(["pilot pilot:write"])), "Scope"),
            ("a number in the list", scp(json!(["pilot", "pilot:write", 1])), "Scope"),
            ("an object", scp(json!({"pilot": true, "pilot:write": true})), "Scope"),
            ("null", scope(Value::Null), "Scope"),
            ("scope and scp", scope(json!("pilot pilot:write")).claim("scp", json!("pilot pilot:write")), "Scope"),
            ("more than are read", scp(json!(many("pilot", "pilot:write", 257))), "Scope"),
            ("as many as are read", scp(json!(many("pilot", "pilot:write", 256))), "ok"),
            ("more words than are read", scope(json!(many("pilot", "pilot:write", 257).join(" "))), "Scope"),
        ],
    );
    check("", vec![("not read if none is required", scope(json!({"x": [1]})), "ok")]);
}

/// So many values, with these two at the end.
fn many(one: &str, other: &str, count: usize) -> Vec<String> {
    let filler = (0..count - 2).map(|at| format!("s{at}"));
    filler.chain([one.to_owned(), other.to_owned()]).collect()
}

#[test]
fn the_type_jwt_has_to_be_allowed_and_lets_no_id_token_in() {
    check("", vec![("not allowed", plain(), "Type"), ("absent", honest().without_header("typ"), "Type")]);
    let id_token = || plain().claim("aud", json!("console"));
    let cases = |forge: fn() -> Forge| {
        vec![
            ("an access token", forge(), "ok"),
            ("with a scope", forge().claim("scope", json!("pilot")), "ok"),
            ("typ claim of an access token", forge().claim("typ", json!("Bearer")), "ok"),
            ("typ claim of an ID token", forge().claim("typ", json!("ID")), "NotForAccess"),
            ("typ claim of a refresh token", forge().claim("typ", json!("Refresh")), "NotForAccess"),
            ("typ claim of a logout token", forge().claim("typ", json!("Logout")), "NotForAccess"),
            ("typ claim of the wrong kind", forge().claim("typ", json!(["Bearer"])), "NotForAccess"),
            ("nonce", forge().claim("nonce", json!("n")), "NotForAccess"),
            ("nonce null", forge().claim("nonce", Value::Null), "NotForAccess"),
            ("at_hash", forge().claim("at_hash", json!("h")), "NotForAccess"),
            ("c_hash", forge().claim("c_hash", json!("h")), "NotForAccess"),
            ("s_hash", forge().claim("s_hash", json!("h")), "NotForAccess"),
            ("a logout token", forge().claim("events", json!({"http://x": {}})), "NotForAccess"),
            (
                "an ID token with this service as a second audience",
                forge().claim("aud", json!(["console", "https://pilot.example"])),
                "NotForAccess",
            ),
            ("without a client, as many ID tokens", forge().without_claim("client_id"), "Client"),
        ]
    };
    check("token_types = ['JWT']\nclients = ['console']\n", cases(plain));
    check("token_types = ['absent']\nclients = ['console']\n", cases(|| honest().without_header("typ")));
    check(
        "token_types = ['JWT']\nclients = ['console']\n",
        vec![
            ("an ID token", id_token(), "Audience"),
            ("the standard's type is no longer allowed", honest(), "Type"),
            ("no type", honest().without_header("typ"), "Type"),
            ("jwt in small letters", honest().header("typ", json!("jwt")), "ok"),
            ("another media type", honest().header("typ", json!("application/jwt")), "Type"),
            ("typ of an ID token", honest().header("typ", json!("id+jwt")), "Type"),
            ("typ null", honest().header("typ", Value::Null), "Type"),
        ],
    );
}

#[test]
fn the_claim_that_names_the_client_is_the_configured_one() {
    let without = || honest().without_claim("client_id");
    for claim in ["azp", "appid", "cid"] {
        check(
            &format!("client_claim = '{claim}'\nclients = ['console']\n"),
            vec![
                ("named", without().claim(claim, json!("console")), "ok"),
                ("another", without().claim(claim, json!("newsletter")), "OtherClient"),
                ("missing", without(), "Client"),
                ("only by the standard's claim", honest(), "Client"),
                ("both, which agree", honest().claim(claim, json!("console")), "ok"),
                (
                    "both, which differ",
                    honest().claim(claim, json!("console")).claim("client_id", json!("x")),
                    "Client",
                ),
            ],
        );
    }
}

#[test]
fn the_subject_is_the_configured_claim_and_sub_must_be_there_all_the_same() {
    check(
        "subject_claim = 'oid'\n",
        vec![
            ("named", honest().claim("oid", json!("ana")), "ok"),
            ("missing", honest(), "Subject"),
            ("empty", honest().claim("oid", json!("")), "Subject"),
            ("a list", honest().claim("oid", json!(["ana"])), "Subject"),
            ("sub missing", honest().claim("oid", json!("ana")).without_claim("sub"), "Subject"),
            ("a client that acts for itself", honest().claim("sub", json!("console")), "ok"),
            (
                "a client that acts for itself, with a malformed claim",
                honest().claim("sub", json!("console")).claim("oid", json!(7)),
                "Subject",
            ),
        ],
    );
}

#[test]
fn a_token_without_an_id_of_its_own_is_refused_unless_a_digest_is_to_take_its_place() {
    let without = || honest().without_claim("jti");
    check("", vec![("no jti", without(), "TokenId"), ("uti instead", without().claim("uti", json!("u")), "TokenId")]);
    check(
        "token_id_claim = 'uti'\n",
        vec![("uti", without().claim("uti", json!("u")), "ok"), ("only jti", honest(), "TokenId")],
    );
    check("token_id_claim = 'digest'\n", vec![("none", without(), "ok"), ("jti, which is not read", honest(), "ok")]);
}

#[test]
fn the_roles_claim_is_a_list_of_strings_wherever_it_is() {
    let lines = |claim: &str| format!("roles_claim = '{claim}'\n[role_values]\ninitiator = ['x']\n");
    check(
        &lines("groups"),
        vec![
            ("a list", honest().claim("groups", json!(["x"])), "ok"),
            ("one string", honest().claim("groups", json!("x")), "ok"),
            ("missing", honest(), "ok"),
            ("an object", honest().claim("groups", json!({"x": true})), "RolesClaim"),
            ("a number in the list", honest().claim("groups", json!(["x", 1])), "RolesClaim"),
            ("nested lists", honest().claim("groups", json!([["x"]])), "RolesClaim"),
            ("null", honest().claim("groups", Value::Null), "RolesClaim"),
            ("more than are read", honest().claim("groups", json!(many("a", "x", 257))), "RolesClaim"),
            ("twice", honest().claim("groups", json!(["x"])).claims_text(r#""groups":["y"]"#), "Claims"),
        ],
    );
    check(
        &lines("realm_access.roles"),
        vec![
            ("inside an object", honest().claim("realm_access", json!({"roles": ["x"]})), "ok"),
            ("of the wrong kind", honest().claim("realm_access", json!({"roles": 7})), "RolesClaim"),
            (
                "twice inside an object",
                honest().claims_text(r#""realm_access":{"roles":["y"],"roles":["x"]}"#),
                "Claims",
            ),
        ],
    );
}

#[test]
fn what_is_demanded_is_judged_before_time_and_after_the_signature() {
    check(
        "clients = ['console']\n",
        vec![
            (
                "an expired token of another client",
                honest().claim("client_id", json!("x")).claim("exp", json!(NOW - 40)),
                "OtherClient",
            ),
            ("an unsigned one", honest().claim("client_id", json!("x")).signature(&[0; 256]), "Signature"),
        ],
    );
}
