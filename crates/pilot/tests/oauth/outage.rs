//! The provider is down or slow: those who are known go on, and nobody is told that a good token is bad.

use std::time::Duration;

use crate::oauth::provider::{Door, Provider};
use crate::oauth::stage::{installation, serve, until};
use crate::support::harness::{PATIENCE, now};

#[test]
fn known_keys_outlast_the_provider_also_across_a_restart() {
    let mut provider = Provider::start();
    let (installation, server) = serve(&provider);
    let ana = provider.token("ana");
    assert_eq!(server.session(&ana).verdict(), "200");
    provider.stop();
    assert_eq!(server.session(&ana).verdict(), "200");
    assert_eq!(server.get("/readyz", &[]).verdict(), "200");
    server.stop().expect(0);
    let server = installation.serve();
    server.wait_for_log("the identity provider's keys could not be fetched again");
    assert_eq!(server.session(&ana).verdict(), "200");
    assert_eq!(server.get("/readyz", &[]).verdict(), "200");
}

#[test]
fn without_any_keys_the_answer_is_neither_yes_nor_no_until_there_are_some() {
    let mut provider = Provider::absent(600);
    let (_installation, server) = serve(&provider);
    assert_eq!(server.get("/readyz", &[]).verdict(), "503 unavailable");
    assert_eq!(server.get("/healthz", &[]).verdict(), "200");
    provider.run();
    // Made while the service still knows nothing: only when it asks again can it say.
    let ana = provider.token("ana");
    until("200", || {
        let response = server.session(&ana);
        assert!(["200", "503 unavailable"].contains(&response.verdict().as_str()), "{}", response.text());
        response
    });
    assert_eq!(server.get("/readyz", &[]).verdict(), "200");
    let log = server.stop().expect(0).stderr;
    assert!(log.contains("the identity provider cannot be reached"), "{log}");
    assert!(log.contains("the identity provider answers again"), "{log}");
}

#[test]
fn an_outage_is_charged_to_nobody() {
    let mut provider = Provider::start();
    let ana = provider.token("ana");
    provider.stop();
    let limits = "[rate_limits]\nfailed_per_minute = 1\n";
    let installation = installation(&[limits, &provider.section()]);
    let server = installation.serve();
    for _ in 0..5 {
        assert_eq!(server.session(&ana).verdict(), "503 unavailable");
    }
    let verdicts = [(); 2].map(|()| server.session("not.a.token.that.anybody.has.ever.signed").verdict());
    assert_eq!(verdicts, ["401 credential_required", "429 rate_limited"], "others are charged");
    assert_eq!(server.session(&ana).verdict(), "503 unavailable");
}

#[test]
fn while_the_provider_hangs_those_with_known_keys_wait_for_nothing() {
    let mut provider = Provider::start();
    let (_installation, server) = serve(&provider);
    let ana = provider.token("ana");
    assert_eq!(server.session(&ana).verdict(), "200");
    provider.rotate_keys();
    let stranger = provider.token("ana");
    provider.set_door(Door::Hangs);
    // Until the pause since the last look is over, then the service asks and hangs.
    let waiting = loop {
        let knocks = provider.knocks();
        let mut wire = server.wire();
        wire.request("GET /v1/session HTTP/1.1", &[&crate::support::harness::bearer(&stranger)]);
        // On a busy machine, silence alone does not mean that the service is asking.
        while provider.knocks() == knocks && wire.is_left_alone_for(Duration::from_millis(50)) {}
        if provider.knocks() > knocks {
            assert_eq!(provider.knocks(), knocks + 1);
            break wire;
        }
    };
    let knocks = provider.knocks();
    for _ in 0..200 {
        let begun = now();
        assert_eq!(server.session(&ana).verdict(), "200");
        assert!(begun.elapsed() < PATIENCE / 60, "held up for {:?}", begun.elapsed());
    }
    assert_eq!(provider.knocks(), knocks, "and there is one request under way");
    let mut waiting = waiting;
    let answer = waiting.response().expect("patience has an end");
    assert_eq!(answer.verdict(), "503 unavailable");
    provider.set_door(Door::Open);
    until("200", || server.session(&stranger));
}

#[test]
fn a_start_does_not_wait_long_for_a_provider_that_hangs() {
    let provider = Provider::absent(600);
    provider.set_door(Door::Hangs);
    let installation = installation(&[&provider.section()]);
    let begun = now();
    let server = installation.serve();
    assert!(begun.elapsed() < PATIENCE / 4, "{:?}", begun.elapsed());
    assert_eq!(server.get("/readyz", &[]).verdict(), "503 unavailable");
}
