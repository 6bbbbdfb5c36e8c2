//! Tokens end: by time, by a security_admin, by the provider's word, and with the key they were signed by.

use serde_json::json;

use crate::oauth::provider::{Door, Provider, claims};
use crate::oauth::stage::{installation, ledger, open_feed, post, rest_of, serve, until};
use crate::support::harness::{PATIENCE, now};

#[test]
fn a_feed_ends_when_its_token_expires_and_so_does_everything_else() {
    let provider = Provider::with_lifetime(3);
    let (_installation, server) = serve(&provider);
    let token = provider.token("ada");
    let feed = open_feed(&server, &token);
    rest_of(feed);
    assert_eq!(server.session(&token).verdict(), "401 credential_required");
    assert_eq!(server.session(&provider.token("ada")).verdict(), "200", "and a new one is as good");
}

#[test]
fn a_revoked_token_counts_no_longer_not_even_on_an_open_feed_or_after_a_restart() {
    let provider = Provider::start();
    let (installation, server) = serve(&provider);
    let (ana, ben, sam) = (provider.token("ana"), provider.token("ben"), provider.token("sam"));
    let id_of = |token: &str| pilot_server::identity::oauth::credential_id(claims(token)["jti"].as_str().unwrap());
    let revoke = |token: &str| format!("/v1/credentials/{}/revocation", id_of(token));
    assert_eq!(server.session(&ana).verdict(), "200");
    let feed = open_feed(&server, &ana);
    let revoked = post(&server, &revoke(&ana), &sam, &json!({"comment": "the machine was stolen"}));
    assert_eq!(revoked.verdict(), "201", "{}", revoked.text());
    assert_eq!(revoked.json()["actor_id"], "ana@pilot.example");
    rest_of(feed);
    assert_eq!(server.session(&ana).verdict(), "401 credential_required");
    // One that was never shown here, too: whoever finds a token knows its id, not who holds it.
    assert_eq!(post(&server, &revoke(&ben), &sam, &json!({})).verdict(), "201");
    assert_eq!(server.session(&ben).verdict(), "401 credential_required");
    assert_eq!(post(&server, &revoke(&sam), &provider.token("ana"), &json!({})).verdict(), "403 role_forbidden");
    server.stop().expect(0);
    let server = installation.serve();
    for token in [&ana, &ben] {
        assert_eq!(server.session(token).verdict(), "401 credential_required");
    }
    assert_eq!(server.session(&provider.token("ana")).verdict(), "200", "the actor may come with another");
    let entries = ledger(&server, &provider.token("ada"));
    let revocations: Vec<_> = entries.iter().filter(|(kind, _)| kind == "credential.revoked").collect();
    assert_eq!(revocations.len(), 2, "{entries:#?}");
    assert_eq!(revocations[0].1["credential"]["credential_id"], id_of(&ana).as_str());
}

#[test]
fn a_token_revoked_at_the_provider_counts_no_longer_within_seconds() {
    let provider = Provider::start();
    let installation = installation(&[]);
    crate::oauth::stage::configure(&installation, &[&provider.section_with_introspection(&installation)]);
    let server = installation.serve();
    let (ana, ben) = (provider.token("ana"), provider.token("ben"));
    assert_eq!(server.session(&ana).verdict(), "200");
    assert_eq!(server.session(&ben).verdict(), "200");
    let feed = open_feed(&server, &ana);
    let begun = now();
    provider.revoke(&ana);
    // Nobody shows the token again; the service asks by itself for as long as a feed is open.
    rest_of(feed);
    println!("revoked at the provider, the feed ended after {} ms", begun.elapsed().as_millis());
    assert!(begun.elapsed() < PATIENCE / 3);
    assert_eq!(server.session(&ana).verdict(), "401 credential_required");
    assert_eq!(server.session(&ben).verdict(), "200");
    // While it cannot be asked, nobody comes in; and nobody is told that a token is bad.
    provider.set_door(Door::Shut);
    until("503 unavailable", || server.session(&ben));
    // Others can send their callers elsewhere.
    until("503 unavailable", || server.get("/readyz", &[]));
    assert_eq!(server.session(&ana).verdict(), "401 credential_required");
    provider.set_door(Door::Open);
    // Without a request from anyone, who are all sent elsewhere.
    until("200", || server.get("/readyz", &[]));
    until("200", || server.session(&ben));
    server.stop().expect(0).never_says("a-secret-for-the-tests-alone");
}

#[test]
fn new_keys_are_found_by_the_first_token_that_needs_them_and_old_ones_are_let_go() {
    let mut provider = Provider::start();
    let (_installation, server) = serve(&provider);
    let old = provider.token("ana");
    assert_eq!(server.session(&old).verdict(), "200");
    provider.rotate_keys();
    let new = provider.token("ana");
    // Keys were fetched a moment ago, and are not asked for again at once; then one request brings them.
    until("200", || server.session(&new));
    assert_eq!(server.session(&old).verdict(), "401 credential_required");
    let log = server.stop().expect(0).stderr;
    assert!(log.contains("has 1 key(s) in use"), "{log}");
}
