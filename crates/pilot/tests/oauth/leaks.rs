//! Signed tokens are secrets like any other: not in a URL, not in content, not in a log.

use serde_json::{Value, json};

use crate::oauth::provider::Provider;
use crate::oauth::stage::{ledger, post, serve};
use crate::support::harness::{PATIENCE, bearer, now};

#[test]
fn a_live_token_in_a_url_is_refused_and_revoked_by_itself() {
    let provider = Provider::start();
    let (installation, server) = serve(&provider);
    for target in ["/v1/session?access_token=TOKEN", "/TOKEN", "/v1/items?q=TOKEN&limit=1", "http://TOKEN@a/v1/session"]
    {
        for dot in [".", "%2e"] {
            let token = provider.token("ana");
            assert_eq!(server.session(&token).verdict(), "200");
            let target = target.replace("TOKEN", &token.replace('.', dot));
            let refused = server.get(&target, &[&bearer(&token)]);
            assert_eq!(refused.verdict(), "400 token_in_url", "{target}");
            assert!(!refused.text().contains(&token));
            assert_eq!(server.session(&token).verdict(), "401 credential_required", "{target}");
        }
    }
    // Whose one is that nobody has used yet is known, too.
    assert_eq!(server.get(&format!("/?t={}", provider.token("ana")), &[]).verdict(), "400 token_in_url");
    // One that is no longer, or never was, live is nobody's to revoke.
    let stranger = provider.token("eve");
    assert_eq!(server.get(&format!("/v1/session?t={stranger}"), &[]).verdict(), "401 credential_required");
    let ada = provider.token("ada");
    let is_revocation = |(kind, details): &&(String, Value)| {
        kind == "credential.revoked"
            && details["cause"] == "token_in_url"
            && details["credential"]["actor_id"] == "ana@pilot.example"
    };
    // Each counts at once, and is written down as soon as it can be: beside the requests, not before their answers.
    let end = now() + PATIENCE;
    loop {
        let entries = ledger(&server, &ada);
        let revoked = entries.iter().filter(is_revocation).count();
        if revoked == 9 {
            break;
        }
        assert!(revoked < 9 && now() < end, "{revoked} of 9: {entries:#?}");
    }
    let log = server.stop().expect(0).stderr;
    assert!(!log.contains("eyJ"), "{log}");
    for file in installation.files() {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"eyJhbG"), "{}", file.display());
    }
}

#[test]
fn a_token_in_content_is_refused_with_its_place_whoevers_it_is() {
    let provider = Provider::start();
    let (_installation, server) = serve(&provider);
    let ana = provider.token("ana");
    for pasted in [ana.clone(), provider.token("eve"), format!("see \"{ana}\".")] {
        let payload = json!({"purpose": pasted});
        let item = json!({"workflow": "controlled-operation", "title": "A", "payload": payload});
        let refused = post(&server, "/v1/items", &ana, &item);
        assert_eq!(refused.verdict(), "422 token_in_content");
        assert_eq!(refused.json()["errors"][0]["pointer"], "/payload/purpose");
        assert!(!refused.text().contains(&ana));
    }
}
