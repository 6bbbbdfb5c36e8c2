//! The keys of an identity provider that rotates them, is slow, lies, or is not there.

mod introspection;
mod stage;

use std::sync::Arc;

use pilot_core::limits::KEY_SET_WAITING_MAX;
use pilot_server::identity::oauth::provider::Provider;
use pilot_wire::exposition::Exposition;
use stage::{Kept, Stage, advance, clock, config, provider};

fn metrics(provider: &Provider) -> String {
    let mut text = Exposition::default();
    provider.metrics(&mut text);
    text.into_text()
}

const DAY: i64 = 24 * 60 * 60;

#[tokio::test]
async fn keys_are_found_by_discovery_and_known_ones_need_no_further_request() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let provider = provider(&stage, &kept, &clock);
    assert!(provider.check().is_err(), "nothing was fetched yet");
    provider.refresh().await;
    provider.check().unwrap();
    let before = stage.requests();
    for _ in 0..100 {
        assert!(provider.keys_with("one").await.unwrap().find("one").is_some());
    }
    assert_eq!(stage.requests(), before);
    let (authorization, token) = provider.sign_in().unwrap();
    assert_eq!((authorization.text, token.text), (format!("{}/auth", stage.url), format!("{}/token", stage.url)));
    assert!(metrics(&provider).contains("pilot_identity_provider_up 1\n"), "{}", metrics(&provider));
}

#[tokio::test]
async fn an_unknown_key_is_asked_for_once_by_however_many_and_not_again_at_once() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let provider = provider(&stage, &kept, &clock);
    provider.refresh().await;
    stage.publish(&["one", "two"]);
    advance(&clock, 5);
    let asking: Vec<_> = (0..50)
        .map(|_| {
            let provider = Arc::clone(&provider);
            tokio::spawn(async move { provider.keys_with("two").await.unwrap().find("two").is_some() })
        })
        .collect();
    for found in asking {
        assert!(found.await.unwrap());
    }
    assert_eq!(stage.heard("/jwks"), 2, "one at the start, one for all of them");
    // Anyone can name a key that does not exist.
    for guess in 0..50 {
        assert!(provider.keys_with(&format!("guess-{guess}")).await.unwrap().find("two").is_some());
    }
    assert_eq!(stage.heard("/jwks"), 2);
    advance(&clock, 5);
    let _ = provider.keys_with("guess").await;
    assert_eq!(stage.heard("/jwks"), 3);
    // A clock that is set back does not keep us from asking.
    advance(&clock, -DAY);
    let _ = provider.keys_with("guess").await;
    assert_eq!(stage.heard("/jwks"), 4);
}

#[tokio::test]
async fn a_key_that_is_no_longer_published_no_longer_counts() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let provider = provider(&stage, &kept, &clock);
    stage.publish(&["one", "two"]);
    provider.refresh().await;
    stage.publish(&["two"]);
    provider.refresh().await;
    assert!(provider.keys_with("one").await.unwrap().find("one").is_none());
    // No key at all is a provider's word too: the last one may have been stolen.
    stage.publish(&[]);
    provider.refresh().await;
    assert!(provider.keys_with("two").await.unwrap().find("two").is_none());
    assert!(provider.check().unwrap_err().0.contains("no key that can be used"));
}

#[tokio::test]
async fn known_keys_outlast_the_provider_by_a_day_and_unknown_ones_are_nobodys_fault() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let provider = provider(&stage, &kept, &clock);
    provider.refresh().await;
    stage.fail();
    advance(&clock, DAY - 1);
    provider.refresh().await;
    assert!(provider.keys_with("one").await.is_ok());
    provider.check().unwrap();
    let refused = provider.keys_with("two").await.unwrap_err();
    assert!(refused.0.contains("answers 500"), "{refused:?}");
    assert!(metrics(&provider).contains("pilot_identity_provider_up 0\n"), "{}", metrics(&provider));
    advance(&clock, 1);
    assert!(provider.keys_with("one").await.unwrap_err().0.contains("older than 24 h"));
    assert!(provider.check().is_err());
    // And when it is back, so is everyone.
    stage.say("/.well-known/openid-configuration", 200, &stage.document(&stage.url));
    stage.publish(&["one"]);
    advance(&clock, 5);
    assert!(provider.keys_with("one").await.is_ok());
}

#[tokio::test]
async fn a_restart_without_the_provider_knows_the_keys_of_the_last_run() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    provider(&stage, &kept, &clock).refresh().await;
    stage.fail();
    advance(&clock, 60);
    let second = provider(&stage, &kept, &clock);
    second.refresh().await;
    assert!(second.keys_with("one").await.is_ok());
    assert!(second.sign_in().is_some());
    // Not for longer than a running service would, and not with what is not its own.
    advance(&clock, DAY);
    assert!(provider(&stage, &kept, &clock).keys().is_err());
    advance(&clock, -2 * DAY);
    assert!(provider(&stage, &kept, &clock).keys().is_err(), "a copy from the future");
    advance(&clock, DAY);
    let text = std::fs::read_to_string(kept.path()).unwrap();
    for (what, changed) in [
        ("another issuer", text.replace(&format!("\"issuer\":\"{}\"", stage.url), "\"issuer\":\"https://x.example\"")),
        ("another issuer or version", text.replace("\"schema_version\":1", "\"schema_version\":2")),
        ("half of it", text[..text.len() / 2].to_owned()),
        ("without keys", text.replace("\"keys\":[", "\"key\":[")),
    ] {
        assert_ne!(changed, text, "{what}");
        std::fs::write(kept.path(), changed).unwrap();
        assert!(provider(&stage, &kept, &clock).keys().is_err(), "{what}");
    }
    std::fs::write(kept.path(), &text).unwrap();
    assert!(provider(&stage, &kept, &clock).keys().is_ok());
    set_mode(&kept, 0o622);
    assert!(provider(&stage, &kept, &clock).keys().is_err(), "others can write to it");
}

fn set_mode(kept: &Kept, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(kept.path(), std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn while_the_provider_is_slow_known_keys_wait_for_nobody() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let provider = provider(&stage, &kept, &clock);
    provider.refresh().await;
    advance(&clock, 5);
    stage.publish(&["one", "two"]);
    stage.hold_back();
    let before = stage.requests();
    let waiting: Vec<_> = (0..10)
        .map(|_| {
            let provider = Arc::clone(&provider);
            tokio::spawn(async move { provider.keys_with("two").await.is_ok() })
        })
        .collect();
    stage.hears(before + 1).await;
    for _ in 0..100 {
        assert!(provider.keys_with("one").await.is_ok());
    }
    assert_eq!(stage.requests(), before + 1, "one request is under way, whoever waits for it");
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    // Those who asked first go away; what they asked for is brought all the same.
    waiting[0].abort();
    stage.let_go();
    for waiting in waiting.into_iter().skip(1) {
        assert!(waiting.await.unwrap());
    }
}

#[tokio::test]
async fn no_more_than_so_many_wait_for_a_provider_that_hangs() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let provider = provider(&stage, &kept, &clock);
    provider.refresh().await;
    advance(&clock, 5);
    stage.hold_back();
    let before = stage.requests();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..KEY_SET_WAITING_MAX {
        let provider = Arc::clone(&provider);
        waiting.spawn(async move { provider.keys_with("two").await.is_ok() });
    }
    // The tasks run in turn on one thread, so by the time the request is heard each has taken its place.
    stage.hears(before + 1).await;
    assert!(provider.keys_with("two").await.unwrap_err().0.contains("too many"));
    assert!(provider.keys_with("one").await.is_ok(), "known keys need no place");
    // The answer comes after as long as the pause, and is not followed by another question at once.
    advance(&clock, 5);
    stage.let_go();
    while let Some(found) = waiting.join_next().await {
        assert!(found.unwrap());
    }
    let asked = stage.requests();
    assert!(provider.keys_with("two").await.is_ok());
    assert_eq!(stage.requests(), asked);
}

#[tokio::test]
async fn keys_from_the_future_do_not_count_until_they_were_fetched_again() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let provider = provider(&stage, &kept, &clock);
    provider.refresh().await;
    advance(&clock, -1);
    assert!(provider.keys().unwrap_err().0.contains("in the future"));
    assert!(provider.keys_with("one").await.is_ok(), "asked for again");
    assert!(provider.keys().is_ok());
}

#[tokio::test]
async fn a_page_for_people_at_the_first_address_does_not_hide_the_document_at_the_second() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let provider = provider(&stage, &kept, &clock);
    for page in ["<html>", "[]", &stage.document("https://evil.example")] {
        stage.say("/.well-known/oauth-authorization-server", 200, page);
        provider.refresh().await;
        provider.check().unwrap();
        assert!(metrics(&provider).contains("pilot_identity_provider_up 1\n"), "{page}");
    }
    // Where there is none at the second, what is wrong with the first is said.
    stage.say("/.well-known/openid-configuration", 404, "");
    provider.refresh().await;
    assert!(provider.keys_with("two").await.unwrap_err().0.contains("another issuer"));
}

#[tokio::test]
async fn what_cannot_be_believed_changes_nothing() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let provider = provider(&stage, &kept, &clock);
    provider.refresh().await;
    let document = stage.document(&stage.url);
    let large = format!(r#"{{"keys":["{}"]}}"#, "x".repeat(200 * 1024));
    let huge = "x".repeat(300 * 1024);
    for (path, status, body, said) in [
        ("/jwks", 200, "<html>", "not a strict JSON object"),
        ("/jwks", 200, r#"{"keys":[],"keys":[]}"#, "not a strict JSON object"),
        ("/jwks", 200, large.as_str(), "more than 128 KiB"),
        ("/jwks", 200, huge.as_str(), "cannot be reached"),
        ("/jwks", 302, "", "answers 302"),
        ("/jwks", 204, "", "answers 204"),
        ("/.well-known/openid-configuration", 200, r#"{"issuer":"https://evil.example"}"#, "another issuer"),
        ("/.well-known/openid-configuration", 200, "[]", "not a strict JSON object"),
        ("/.well-known/openid-configuration", 503, "", "answers 503"),
    ] {
        stage.say(path, status, body);
        advance(&clock, 5);
        let refused = provider.keys_with("two").await.unwrap_err();
        assert!(refused.0.contains(said), "{said:?} is not in {refused:?}");
        assert!(provider.keys_with("one").await.is_ok());
        stage.say("/.well-known/openid-configuration", 200, &document);
        stage.publish(&["one"]);
    }
    assert_eq!(stage.heard("/elsewhere"), 0, "no redirect is followed");
}

#[tokio::test]
async fn a_configured_address_of_the_keys_needs_no_discovery_except_for_the_console() {
    let (stage, kept, clock) = (Stage::open().await, Kept::new(), clock());
    let mut oauth = config(&stage.url);
    oauth.jwks_url = pilot_setup::config::ProviderUrl::parse(&format!("{}/jwks", stage.url));
    let open = |oauth| Arc::new(Provider::new(oauth, kept.path(), clock.clone()).unwrap());
    let provider = open(oauth.clone());
    provider.refresh().await;
    provider.check().unwrap();
    assert_eq!((stage.requests(), provider.sign_in()), (1, None));
    oauth.console_client_id = Some("console".into());
    let provider = open(oauth);
    provider.refresh().await;
    assert!(provider.sign_in().is_some());
    stage.say("/.well-known/openid-configuration", 500, "");
    provider.refresh().await;
    provider.check().unwrap();
    assert!(provider.sign_in().is_some(), "what was learned of the sign-in stays");
}
