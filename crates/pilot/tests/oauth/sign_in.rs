//! A token says who; the role map says which actor that is, and in which role.

use serde_json::{Value, json};

use crate::oauth::provider::{AUDIENCE, Provider};
use crate::oauth::stage::{ROLE_MAP, configure, installation, post, serve};
use crate::support::harness::{TOKEN, bearer};

#[test]
fn a_token_of_the_provider_is_the_actor_and_the_role_of_the_role_map() {
    let provider = Provider::start();
    let (installation, server) = serve(&provider);
    for (client, actor, role) in
        [("ana", "ana@pilot.example", "initiator"), ("ben", "ben", "approver"), ("ada", "ada", "auditor")]
    {
        let session = server.session(&provider.token(client));
        assert_eq!(session.json(), json!({"actor_id": actor, "role": role}));
        assert!(session.header("credential-expires-at").is_some(), "{session:?}");
    }
    // The command line takes such a token too, and compares.
    let token = provider.token("ben");
    let url = server.url();
    let asked = ["session", "--url", &url, "--role-map", "role-map.json"];
    installation.pilot_as(&token, &asked).expect(0);
    // What it may do is what its role may do.
    let item = json!({"workflow": "controlled-operation", "title": "A", "payload": {}});
    assert_eq!(post(&server, "/v1/items", &token, &item).verdict(), "403 role_forbidden");
    assert_eq!(post(&server, "/v1/items", &provider.token("ana"), &item).verdict(), "201");
    let actors = server.get("/v1/actors", &[&bearer(&provider.token("sam"))]).json();
    let ben = actors["actors"].as_array().unwrap().iter().find(|actor| actor["actor_id"] == "ben").unwrap();
    assert_eq!((&ben["credentials"], &ben["kind"]), (&json!(2), &json!("machine")));
}

#[test]
fn whoever_is_not_in_the_role_map_or_shows_another_token_learns_nothing_but_where_to_ask() {
    let provider = Provider::start();
    let (_installation, server) = serve(&provider);
    let ana = provider.token("ana");
    let parts: Vec<_> = ana.split('.').collect();
    let strangers = [
        ("not in the role map", provider.token("eve")),
        ("a token for another service", provider.token_for("ana", "https://other.example")),
        ("a token of a credential file", TOKEN.to_owned()),
        ("without its signature", format!("{}.{}.", parts[0], parts[1])),
        (
            "with another's claims",
            format!("{}.{}.{}", parts[0], provider.token("sam").split('.').nth(1).unwrap(), parts[2]),
        ),
        ("cut short", ana[..ana.len() - 10].to_owned()),
    ];
    let body = |response: &crate::support::wire::Response| {
        let mut body = response.json();
        body["request_id"] = Value::Null;
        body
    };
    let nothing = server.get("/v1/session", &[]);
    let metadata = format!("resource_metadata=\"{AUDIENCE}/.well-known/oauth-protected-resource\"");
    assert_eq!(nothing.header("www-authenticate"), Some(&*format!("Bearer realm=\"pilot\", {metadata}")));
    for (what, token) in &strangers {
        let response = server.session(token);
        assert_eq!(response.verdict(), "401 credential_required", "{what}");
        let challenge = format!("Bearer realm=\"pilot\", error=\"invalid_token\", {metadata}");
        assert_eq!(response.header("www-authenticate"), Some(&*challenge), "{what}");
        assert_eq!(body(&response), body(&nothing), "{what}");
    }
    let two = server.get("/v1/session", &[&bearer(&ana), &bearer(&ana)]);
    assert_eq!(two.verdict(), "401 credential_required");
    assert_eq!(server.session(&ana).verdict(), "200");
    // The operator can tell them apart, by words that are ours.
    let log = server.stop().expect(0).stderr;
    for cause in ["subject is not in the role map", "aud does not name", "not three parts"] {
        assert!(log.contains(cause), "{cause:?} is not in {log}");
    }
}

#[test]
fn clients_are_told_which_provider_to_ask_and_only_with_this_mechanism() {
    let provider = Provider::start();
    let (installation, server) = serve(&provider);
    let document = server.get("/.well-known/oauth-protected-resource", &[]);
    assert_eq!(document.header("content-type"), Some("application/json"));
    let document = document.json();
    assert_eq!(document["resource"], AUDIENCE);
    assert_eq!(document["authorization_servers"], json!([provider.issuer()]));
    assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    // Without a client for the console there is nothing to offer in it.
    assert!(server.get("/console.json", &[]).json().get("sign_in").is_none());
    let policy = server.get("/", &[]).header("content-security-policy").unwrap().to_owned();
    assert!(!policy.contains("http"), "{policy}");
    server.stop().expect(0);
    configure(&installation, &[&provider.section(), "console_client_id = 'console'\nconsole_scopes = ['openid']\n"]);
    let server = installation.serve();
    let issuer = provider.issuer();
    assert_eq!(
        server.get("/console.json", &[]).json()["sign_in"],
        json!({
            "issuer": issuer, "authorization_endpoint": format!("{issuer}/auth"), "token_endpoint": format!("{issuer}/token"),
            "revocation_endpoint": format!("{issuer}/token/revocation"),
            "client_id": "console", "scope": "openid", "resource": AUDIENCE,
        })
    );
    server.stop().expect(0);
    let plain = crate::support::harness::Installation::with_ana();
    let server = plain.serve();
    assert_eq!(server.get("/.well-known/oauth-protected-resource", &[]).verdict(), "404 not_found");
    assert_eq!(server.get("/v1/session", &[]).header("www-authenticate"), Some("Bearer realm=\"pilot\""));
}

#[test]
fn keys_may_be_had_from_a_configured_address() {
    let provider = Provider::start();
    let address = format!("jwks_url = '{}/jwks'\n", provider.issuer());
    let installation = installation(&[&provider.section(), &address]);
    assert!(installation.read("pilot.toml").contains(ROLE_MAP));
    let server = installation.serve();
    assert_eq!(provider.knocks(), 1, "one request, and no discovery");
    assert_eq!(server.session(&provider.token("ana")).verdict(), "200");
}
