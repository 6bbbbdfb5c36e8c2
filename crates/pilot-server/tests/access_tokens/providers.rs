//! Tokens exactly as five providers issue them: refused as long as nothing is configured for them, accepted with the
//! configuration from the provider's page, and refused again if they are almost right.

use pilot_core::access_token::{Rules, Verified};
use pilot_core::key_set::KeySet;
use pilot_core::role_map::RoleMap;
use pilot_core::time::Time;
use pilot_server::identity::oauth::signature::verify;
use pilot_setup::config::Config;
use pilot_testing::Scratch;
use serde_json::{Value, json};

use crate::access_tokens::forge::{Forge, NOW, published};

/// What is tried, and what becomes of it.
type Case = (&'static str, Forge, &'static str);

/// What an operator takes from a page: a configuration and a role map.
struct Page {
    rules: Rules,
    role_map: RoleMap,
}

impl Page {
    /// With the page's configuration number `at`, counted from 0.
    fn read(name: &str, at: usize) -> Page {
        let path = format!("{}/../../docs/operate/identity/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let block = blocks(&text, "toml").into_iter().filter(|block| block.contains("[identity]")).nth(at).unwrap();
        let scratch = Scratch::new();
        scratch.write("pilot.toml", block);
        let config = Config::load(&scratch.file("pilot.toml"), &[]).unwrap();
        let role_map = blocks(&text, "json").into_iter().find(|block| block.contains("approved_by")).unwrap();
        let role_map = RoleMap::parse(role_map.as_bytes()).unwrap();
        Page { rules: config.identity.unwrap().oauth.unwrap().rules(), role_map }
    }

    /// With only what is required: the same issuer and audience.
    fn strict(&self) -> Page {
        let lines = format!("issuer = '{}'\naudience = '{}'\n", self.rules.issuer, self.rules.audience);
        let section: pilot_setup::config::Oauth = toml::from_str(&lines).unwrap();
        Page { rules: section.rules(), role_map: self.role_map.clone() }
    }

    /// The actor and the role, or why not.
    fn verdict(&self, forge: &Forge) -> String {
        let keys = KeySet::parse(published().to_string().as_bytes()).unwrap();
        let now = Time::from_unix_micros(NOW * 1_000_000);
        let known = |verified: Verified| match self.role_map.actor_named(&verified.subject, &self.rules.issuer) {
            None => Ok("stranger".to_owned()),
            Some(mapped) => {
                let found = format!("{} {}", mapped.actor.role, mapped.actor.actor_id);
                verified.suffices_for(mapped).map(|()| found)
            }
        };
        let verdict = verify(forge.token().as_bytes(), &keys, &self.rules, now).and_then(known);
        verdict.unwrap_or_else(|fault| format!("{fault:?}"))
    }

    #[track_caller]
    fn check(&self, cases: Vec<Case>) {
        let wrong = |(what, forge, expected): Case| {
            let found = self.verdict(&forge);
            (found != expected).then(|| format!("{what}: {found}, not {expected}"))
        };
        let faults: Vec<_> = cases.into_iter().filter_map(wrong).collect();
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
}

/// The blocks of a page in this language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let begin = format!("```{language}\n");
    text.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

fn with_typ(typ: &str) -> Value {
    json!({"alg": "RS256", "typ": typ, "kid": "rsa"})
}

/// Keycloak 26: `AccessToken` and `IDToken` in its source, and tokens of a realm with default settings. `client_id` is
/// only in tokens of service accounts.
mod keycloak {
    use super::*;

    fn person(typ: &str) -> Forge {
        let claims = json!({
            "exp": NOW + 300, "iat": NOW, "auth_time": NOW - 20, "jti": "onrtac:d58f5dc8-fd8f-462b-8a19-716f8f83985b",
            "iss": "https://id.example/realms/acme", "aud": ["https://pilot.example", "account"],
            "sub": "36fa0f91-f94d-4a0c-afed-6b7d952e47da", "typ": "Bearer", "azp": "pilot-console",
            "sid": "2a88c258-f73a-4103-b862-e1fbd8f4e04e", "acr": "1", "allowed-origins": ["https://pilot.example"],
            "realm_access": {"roles": ["offline_access", "default-roles-acme", "pilot-initiator"]},
            "resource_access": {"account": {"roles": ["manage-account", "view-profile"]}},
            "scope": "openid pilot email profile", "email_verified": true, "name": "Ana Example",
            "preferred_username": "ana", "email": "ana@acme.example",
        });
        Forge::exactly(with_typ(typ), claims)
    }

    fn machine(typ: &str) -> Forge {
        let claims = json!({
            "exp": NOW + 300, "iat": NOW, "jti": "trrtcc:312ee6a0-8f39-4c5e-9d0c-0a7f6f1d2b3c",
            "iss": "https://id.example/realms/acme", "aud": ["https://pilot.example", "account"],
            "sub": "5b1c8a55-2b0f-4f0e-8f39-0d3f4a1c9e77", "typ": "Bearer", "azp": "runner", "acr": "1",
            "realm_access": {"roles": ["default-roles-acme", "pilot-executor"]}, "scope": "pilot email profile",
            "clientHost": "192.0.2.7", "clientAddress": "192.0.2.7", "client_id": "runner",
            "preferred_username": "service-account-runner",
        });
        Forge::exactly(with_typ(typ), claims)
    }

    /// With the audience mapper turned on for ID tokens by mistake.
    fn id_token() -> Forge {
        let claims = json!({
            "exp": NOW + 300, "iat": NOW, "auth_time": NOW - 20, "jti": "9b0c0a7e-0f51-4b44-8a58-5f4d4f1a7c55",
            "iss": "https://id.example/realms/acme", "aud": ["pilot-console", "https://pilot.example"],
            "sub": "36fa0f91-f94d-4a0c-afed-6b7d952e47da", "typ": "ID", "azp": "pilot-console",
            "sid": "2a88c258-f73a-4103-b862-e1fbd8f4e04e", "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q", "acr": "1",
            "preferred_username": "ana", "realm_access": {"roles": ["pilot-initiator"]}, "scope": "openid pilot",
        });
        Forge::exactly(with_typ("JWT"), claims)
    }

    fn near_misses(typ: &'static str) -> Vec<Case> {
        let roles = |roles: &[&str]| person(typ).claim("realm_access", json!({"roles": roles}));
        vec![
            ("another client", person(typ).claim("azp", json!("newsletter")), "OtherClient"),
            ("another realm", person(typ).claim("iss", json!("https://id.example/realms/other")), "Issuer"),
            ("without the audience mapper", person(typ).claim("aud", json!("account")), "Audience"),
            ("without the scope", person(typ).claim("scope", json!("openid email profile")), "Scope"),
            ("without the realm role", roles(&["default-roles-acme"]), "RoleValue"),
            ("with another realm role", roles(&["pilot-approver", "pilot-executor"]), "RoleValue"),
            ("without roles", person(typ).without_claim("realm_access"), "RoleValue"),
            ("not in the role map", person(typ).claim("sub", json!("b6a6…")), "stranger"),
            ("a username as the subject", person(typ).claim("sub", json!("ana")), "stranger"),
            ("two clients", machine(typ).claim("client_id", json!("pilot-console")), "Client"),
            ("a bound token", person(typ).claim("cnf", json!({"x5t#S256": "abc"})), "Bound"),
        ]
    }

    #[test]
    fn its_tokens_are_refused_by_default_and_accepted_with_the_configuration_of_its_page() {
        let page = Page::read("keycloak", 0);
        page.strict().check(vec![
            ("a person's", person("JWT"), "Type"),
            ("a person's, with at+jwt", person("at+jwt"), "Client"),
            ("a machine's", machine("JWT"), "Type"),
        ]);
        page.check(vec![
            ("a person's", person("at+jwt"), "initiator ana"),
            ("a machine's", machine("at+jwt"), "executor runner"),
            ("without at+jwt", person("JWT"), "Type"),
            ("an ID token", id_token(), "Type"),
        ]);
        page.check(near_misses("at+jwt"));
    }

    #[test]
    fn before_26_2_its_tokens_are_accepted_by_the_type_jwt_and_its_id_tokens_are_not() {
        let page = Page::read("keycloak", 1);
        let id_token_as = |typ: &str| id_token().without_claim("at_hash").claim("typ", json!(typ));
        page.check(vec![
            ("a person's", person("JWT"), "initiator ana"),
            ("a machine's", machine("JWT"), "executor runner"),
            ("an ID token", id_token(), "NotForAccess"),
            ("an ID token, less at_hash", id_token_as("ID"), "NotForAccess"),
            ("an ID token that says it is none", id_token_as("Bearer"), "NotForAccess"),
            ("a refresh token", person("JWT").claim("typ", json!("Refresh")), "NotForAccess"),
            ("an access token with a nonce, as of old", person("JWT").claim("nonce", json!("n")), "NotForAccess"),
        ]);
        page.check(near_misses("JWT"));
    }
}

/// Microsoft's "Access token claims reference" and "ID token claims reference", for v2.0 and v1.0 tokens.
mod entra_id {
    use super::*;

    const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
    const API: &str = "00001111-aaaa-2222-bbbb-3333cccc4444";
    const CONSOLE: &str = "11112222-bbbb-3333-cccc-4444dddd5555";
    const TERMINAL: &str = "22223333-cccc-4444-dddd-5555eeee6666";
    const RUNNER: &str = "33334444-dddd-5555-eeee-6666ffff7777";

    fn person() -> Forge {
        let claims = json!({
            "aud": API, "iss": format!("https://login.microsoftonline.com/{TENANT}/v2.0"), "iat": NOW, "nbf": NOW,
            "exp": NOW + 4_500, "aio": "AXQAi/8TAAAA", "azp": CONSOLE, "azpacr": "0", "name": "Ana Example",
            "oid": "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", "preferred_username": "ana@acme.example",
            "rh": "I", "roles": ["Pilot.Initiator"], "scp": "Pilot.Access", "sid": "00fc0c36",
            "sub": "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ", "tid": TENANT, "uti": "fqiBqXLPj0eQa82S-IYFAA",
            "ver": "2.0",
        });
        Forge::exactly(with_typ("JWT"), claims)
    }

    /// App-only: no `scp`, and `sub` is the `oid`.
    fn machine() -> Forge {
        let claims = json!({
            "aud": API, "iss": format!("https://login.microsoftonline.com/{TENANT}/v2.0"), "iat": NOW, "nbf": NOW,
            "exp": NOW + 3_900, "aio": "k2RgYAAA", "azp": RUNNER, "azpacr": "1",
            "oid": "bbbbbbbb-1111-2222-3333-cccccccccccc", "rh": "I", "roles": ["Pilot.Executor"],
            "sub": "bbbbbbbb-1111-2222-3333-cccccccccccc", "tid": TENANT, "uti": "jmfVTX9GV0Cgrm1D_AAA", "ver": "2.0",
        });
        Forge::exactly(with_typ("JWT"), claims)
    }

    /// Of a client: no `azp`, no `scp`.
    fn id_token(client: &str) -> Forge {
        let claims = json!({
            "aud": client, "iss": format!("https://login.microsoftonline.com/{TENANT}/v2.0"), "iat": NOW, "nbf": NOW,
            "exp": NOW + 3_600, "aio": "AXQAi/8TAAAA", "name": "Ana Example",
            "oid": "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", "preferred_username": "ana@acme.example", "rh": "I",
            "roles": ["Pilot.Initiator"], "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "tid": TENANT,
            "uti": "fqiBqXLPj0eQa82S-IYFAB", "ver": "2.0",
        });
        Forge::exactly(with_typ("JWT"), claims)
    }

    #[test]
    fn its_v2_tokens_are_refused_by_default_and_accepted_with_the_configuration_of_its_page() {
        let page = Page::read("entra-id", 0);
        let elsewhere = "https://login.microsoftonline.com/99999999-0000-cccc-1111-dddd2222eeee/v2.0";
        let overage = json!({"groups": "src1"});
        page.strict().check(vec![("a person's", person(), "Type"), ("a machine's", machine(), "Type")]);
        page.check(vec![
            ("a person's", person(), "initiator ana"),
            ("a machine's", machine(), "executor runner"),
            ("an ID token of the console", id_token(CONSOLE), "Audience"),
            ("an ID token of the API, used as a client", id_token(API), "Client"),
            ("the same with azp", id_token(API).claim("azp", json!(API)), "NotForAccess"),
            ("an access token of the API for itself", person().claim("azp", json!(API)), "NotForAccess"),
            ("another client of the tenant", person().claim("azp", json!(TENANT)), "OtherClient"),
            ("another tenant", person().claim("iss", json!(elsewhere)), "Issuer"),
            ("v1.0", v1(), "Issuer"),
            ("for Microsoft Graph", person().claim("aud", json!("00000003-0000-0000-c000-000000000000")), "Audience"),
            ("without an app role", person().without_claim("roles"), "RoleValue"),
            ("with another app role", person().claim("roles", json!(["Pilot.Approver"])), "RoleValue"),
            ("too many groups", person().without_claim("roles").claim("_claim_names", overage), "RoleValue"),
            ("not in the role map", person().claim("oid", json!("cccccccc-0000")), "stranger"),
            ("without oid", person().without_claim("oid"), "Subject"),
            ("without uti", person().without_claim("uti"), "TokenId"),
            ("continuous access evaluation", person().claim("exp", json!(NOW + 100_000)), "LongLived"),
        ]);
    }

    fn v1() -> Forge {
        let header = json!({"typ": "JWT", "alg": "RS256", "x5t": "rsa", "kid": "rsa"});
        let claims = json!({
            "aud": "https://pilot.example", "iss": format!("https://sts.windows.net/{TENANT}/"), "iat": NOW, "nbf": NOW,
            "exp": NOW + 4_500, "acr": "1", "aio": "AXQAi/8TAAAA", "amr": ["pwd", "mfa"], "appid": TERMINAL,
            "appidacr": "0", "ipaddr": "192.0.2.7", "name": "Ana Example",
            "oid": "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", "rh": "I", "roles": ["Pilot.Initiator"],
            "scp": "Pilot.Access", "sub": "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ", "tid": TENANT,
            "unique_name": "ana@acme.example", "upn": "ana@acme.example", "uti": "fqiBqXLPj0eQa82S-IYFAA", "ver": "1.0",
        });
        Forge::exactly(header, claims)
    }

    #[test]
    fn its_v1_tokens_are_refused_by_default_and_accepted_with_the_configuration_of_its_page() {
        let page = Page::read("entra-id", 1);
        page.strict().check(vec![("a person's", v1(), "Type")]);
        let machine = v1().claim("appid", json!(RUNNER)).claim("oid", json!("bbbbbbbb-1111-2222-3333-cccccccccccc"));
        let machine = machine.without_claim("amr").without_claim("scp").claim("roles", json!(["Pilot.Executor"]));
        page.check(vec![
            ("a person's", v1(), "initiator ana"),
            ("a machine's, which did not sign in", machine, "executor runner"),
            ("a person's without a second factor", v1().claim("amr", json!(["pwd"])), "Amr"),
            ("another client", v1().claim("appid", json!(CONSOLE)), "OtherClient"),
            ("v2.0", person(), "Issuer"),
            ("an ID token of v1.0", v1().without_claim("appid").claim("aud", json!(TERMINAL)), "Audience"),
        ]);
    }
}

/// Tokens of a custom authorization server, as in Okta's documentation of the claims of access and ID tokens. The header
/// has no `typ`, or Okta's own.
mod okta {
    use super::*;

    fn person() -> Forge {
        let claims = json!({
            "ver": 1, "jti": "AT.MNAoEQ_jbKqoinrQo1D0XKjMX28U5d7ZszBceot7-Ts",
            "iss": "https://acme.okta.com/oauth2/aus1pilot0server", "aud": "https://pilot.example", "iat": NOW,
            "exp": NOW + 900, "cid": "0oa1console", "uid": "00u1ana", "scp": ["openid", "offline_access", "pilot"],
            "auth_time": NOW - 10, "sub": "ana@acme.example", "groups": ["pilot-initiators"],
        });
        Forge::exactly(json!({"kid": "rsa", "alg": "RS256"}), claims)
    }

    fn machine() -> Forge {
        let claims = json!({
            "ver": 1, "jti": "AT.radCQMOQUmyvcTBmmIL0J6BaS60apUEiC7-vI7pOmkw",
            "iss": "https://acme.okta.com/oauth2/aus1pilot0server", "aud": "https://pilot.example", "iat": NOW,
            "exp": NOW + 900, "cid": "0oa3runner", "scp": ["pilot"], "sub": "0oa3runner",
        });
        Forge::exactly(json!({"kid": "rsa", "alg": "RS256"}), claims)
    }

    fn id_token() -> Forge {
        let claims = json!({
            "sub": "00u1ana", "name": "Ana Example", "email": "ana@acme.example", "ver": 1,
            "iss": "https://acme.okta.com/oauth2/aus1pilot0server", "aud": "0oa1console", "iat": NOW, "exp": NOW + 3_600,
            "jti": "ID.radCQMOQUmyvcTBmmIL0J6BaS60apUEiC7-vI7pOmkw", "amr": ["pwd"], "idp": "00o1",
            "nonce": "n", "preferred_username": "ana@acme.example", "auth_time": NOW - 10,
            "at_hash": "fPlsvVszI29LU2UhDyJ9vg", "groups": ["pilot-initiators"],
        });
        Forge::exactly(json!({"kid": "rsa", "alg": "RS256"}), claims)
    }

    #[test]
    fn its_tokens_are_refused_by_default_and_accepted_with_the_configuration_of_its_page() {
        let page = Page::read("okta", 0);
        let typed = |typ: &str| person().header("typ", json!(typ));
        let as_api = || id_token().claim("aud", json!("https://pilot.example"));
        page.strict().check(vec![
            ("a person's", person(), "Type"),
            ("with its own typ", typed("application/okta-internal-at+jwt"), "Type"),
            ("a machine's", machine(), "Type"),
        ]);
        page.check(vec![
            ("a person's", person(), "initiator ana"),
            ("with its own typ", typed("application/okta-internal-at+jwt"), "initiator ana"),
            ("a machine's", machine(), "executor runner"),
            ("with typ JWT", typed("JWT"), "Type"),
            ("an ID token", id_token(), "Audience"),
            ("an ID token of a client named as the audience", as_api(), "Client"),
            ("the same with cid", as_api().claim("cid", json!("0oa1console")), "NotForAccess"),
            ("another client", person().claim("cid", json!("0oa9newsletter")), "OtherClient"),
            ("the org authorization server", person().claim("iss", json!("https://acme.okta.com")), "Issuer"),
            ("the default audience", person().claim("aud", json!("api://default")), "Audience"),
            ("without the scope", person().claim("scp", json!(["openid"])), "Scope"),
            ("a machine's without the scope", machine().claim("scp", json!(["other"])), "Scope"),
            ("without the group", person().claim("groups", json!(["pilot-approvers"])), "RoleValue"),
            ("without groups", person().without_claim("groups"), "RoleValue"),
            ("not in the role map", person().claim("uid", json!("00u9eve")), "stranger"),
            (
                "a login that is another's id",
                person().claim("uid", json!("00u9eve")).claim("sub", json!("00u1ana")),
                "stranger",
            ),
            ("a person's without uid", person().without_claim("uid"), "Subject"),
            (
                "a login that is a machine's name",
                person().claim("sub", json!("0oa3runner")).without_claim("uid"),
                "Subject",
            ),
        ]);
    }
}

/// Auth0's "Access Token Profiles", with the permissions claim of RBAC, and its sample of an ID token.
mod auth0 {
    use super::*;

    fn claims(client: &str) -> Value {
        let mut claims = json!({
            "iss": "https://acme.eu.auth0.com/", "sub": "auth0|5f7c8ec7c33c6c004bbafe82",
            "aud": ["https://pilot.example", "https://acme.eu.auth0.com/userinfo"], "iat": NOW, "exp": NOW + 86_400,
            "scope": "openid profile offline_access", "permissions": ["pilot:propose"],
        });
        claims[client] = json!("AbCdConsole");
        claims
    }

    fn rfc_9068() -> Forge {
        Forge::exactly(with_typ("at+jwt"), claims("client_id")).claim("jti", json!("73WakrfVbNJBaAmhQtEeDv"))
    }

    fn own_profile() -> Forge {
        Forge::exactly(with_typ("JWT"), claims("azp"))
    }

    fn of_machine(forge: Forge, client: &str) -> Forge {
        let forge = forge.claim("sub", json!("IjKlRunner@clients")).claim(client, json!("IjKlRunner"));
        let forge = forge.claim("aud", json!("https://pilot.example")).claim("scope", json!("pilot:execute"));
        forge.claim("gty", json!("client-credentials")).claim("permissions", json!(["pilot:execute"]))
    }

    fn id_token() -> Forge {
        let claims = json!({
            "iss": "https://acme.eu.auth0.com/", "sub": "auth0|5f7c8ec7c33c6c004bbafe82", "aud": "AbCdConsole",
            "iat": NOW, "exp": NOW + 36_000, "nickname": "ana", "name": "Ana Example", "email": "ana@acme.example",
            "email_verified": true, "sid": "ufSjzBk1", "nonce": "n",
        });
        Forge::exactly(with_typ("JWT"), claims)
    }

    fn near_misses(forge: fn() -> Forge, client: &str) -> Vec<Case> {
        vec![
            ("another client", forge().claim(client, json!("MnOpNewsletter")), "OtherClient"),
            ("another tenant", forge().claim("iss", json!("https://other.eu.auth0.com/")), "Issuer"),
            ("without the slash", forge().claim("iss", json!("https://acme.eu.auth0.com")), "Issuer"),
            ("another API", forge().claim("aud", json!(["https://acme.eu.auth0.com/userinfo"])), "Audience"),
            ("without the permission", forge().claim("permissions", json!([])), "RoleValue"),
            ("without RBAC", forge().without_claim("permissions"), "RoleValue"),
            ("another permission", forge().claim("permissions", json!(["pilot:approve"])), "RoleValue"),
            ("not in the role map", forge().claim("sub", json!("google-oauth2|107691503500061507151")), "stranger"),
            ("lives longer", forge().claim("exp", json!(NOW + 86_401)), "LongLived"),
        ]
    }

    #[test]
    fn its_standard_profile_needs_no_mapping_and_its_own_is_refused_by_default() {
        let page = Page::read("auth0", 0);
        page.strict().check(vec![
            ("RFC 9068", rfc_9068(), "initiator ana"),
            ("its own profile", own_profile(), "Type"),
            ("an ID token", id_token(), "Type"),
        ]);
        page.check(vec![
            ("a person's", rfc_9068(), "initiator ana"),
            ("a machine's", of_machine(rfc_9068(), "client_id"), "executor runner"),
            ("its own profile", own_profile(), "Type"),
            ("an ID token", id_token(), "Type"),
        ]);
        page.check(near_misses(rfc_9068, "client_id"));
    }

    #[test]
    fn its_own_profile_is_accepted_with_the_second_configuration_of_its_page() {
        let page = Page::read("auth0", 1);
        let for_both = || id_token().claim("aud", json!(["AbCdConsole", "https://pilot.example"]));
        page.check(vec![
            ("a person's", own_profile(), "initiator ana"),
            ("a machine's", of_machine(own_profile(), "azp"), "executor runner"),
            ("RFC 9068", rfc_9068(), "Type"),
            ("an ID token", id_token(), "Audience"),
            ("an ID token for both", for_both(), "Client"),
            ("the same with azp", for_both().claim("azp", json!("AbCdConsole")), "NotForAccess"),
        ]);
        page.check(near_misses(own_profile, "azp"));
    }
}

/// ID tokens, the only signed tokens that Google issues: of a service account, from the metadata server or
/// `generateIdToken`, and of a person, as in Google's OpenID Connect reference.
mod google {
    use super::*;

    const ACCOUNT: &str = "112233445566778899001";

    fn machine() -> Forge {
        let claims = json!({
            "aud": "https://pilot.example", "azp": ACCOUNT, "exp": NOW + 3_600, "iat": NOW,
            "iss": "https://accounts.google.com", "sub": ACCOUNT,
        });
        Forge::exactly(with_typ("JWT"), claims)
    }

    fn person() -> Forge {
        let client = "1234987819200.apps.googleusercontent.com";
        let claims = json!({
            "iss": "https://accounts.google.com", "azp": client, "aud": client, "sub": "107691503500061507151",
            "hd": "acme.example", "email": "ana@acme.example", "email_verified": true,
            "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q", "nonce": "0394852-3190485-2490358", "iat": NOW, "exp": NOW + 3_600,
        });
        Forge::exactly(with_typ("JWT"), claims)
    }

    #[test]
    fn tokens_of_service_accounts_are_accepted_with_the_configuration_of_its_page_and_those_of_people_never() {
        let page = Page::read("google", 0);
        let full = machine().claim("email", json!("runner@acme.iam.gserviceaccount.com"));
        let full = full.claim("email_verified", json!(true)).claim("google", json!({"compute_engine": {"zone": "z"}}));
        let lenient = || person().claim("aud", json!("https://pilot.example"));
        let other = || machine().claim("sub", json!("998877665544332211009"));
        page.strict().check(vec![("a machine's", machine(), "Type"), ("a person's", person(), "Type")]);
        page.check(vec![
            ("a machine's", machine(), "executor runner"),
            ("in the full format", full, "executor runner"),
            ("a person's", person(), "Audience"),
            ("a person's for this audience", lenient(), "NotForAccess"),
            ("the same less nonce", lenient().without_claim("nonce"), "NotForAccess"),
            ("the same less at_hash", lenient().without_claim("nonce").without_claim("at_hash"), "OtherClient"),
            ("another account", other().claim("azp", json!("998877665544332211009")), "OtherClient"),
            ("another account by this client", other(), "stranger"),
            ("with the email address in azp", machine().claim("azp", json!("runner@acme.example")), "OtherClient"),
            ("without azp", machine().without_claim("azp"), "Client"),
            ("for another service", machine().claim("aud", json!("https://other.example")), "Audience"),
            ("by the old name of the issuer", machine().claim("iss", json!("accounts.google.com")), "Issuer"),
            ("a longer life", machine().claim("exp", json!(NOW + 3_601)), "LongLived"),
        ]);
    }

    #[test]
    fn a_persons_id_token_is_refused_even_if_its_client_were_the_audience() {
        let mut rules = Page::read("google", 0).rules;
        rules.audience = "1234987819200.apps.googleusercontent.com".into();
        rules.demands.clients = vec![rules.audience.clone()];
        let role_map = Page::read("google", 0).role_map;
        let bare = || person().without_claim("nonce").without_claim("at_hash");
        Page { rules, role_map }.check(vec![
            ("as issued", person(), "NotForAccess"),
            ("with nothing but its audience to tell", bare(), "NotForAccess"),
        ]);
    }
}
