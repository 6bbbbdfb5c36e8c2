//! What becomes of tokens over time: those that have ended stay so, and whose they were is known.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use pilot_core::role_map::RoleMap;
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_ledger::register::Register;
use pilot_server::identity::Unknown;
use pilot_server::identity::oauth::introspection::Introspector;
use pilot_server::identity::oauth::provider::Provider;
use pilot_server::identity::oauth::{Oauth, Trusted, Watch, credential_id};
use pilot_setup::config::{Oauth as Section, ProviderUrl};
use pilot_store::sqlite::Sqlite;
use pilot_testing::Scratch;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::access_tokens::forge::{self, Forge, NOW, published};

const ROLE_MAP: &str = r#"{"schema_version":1,"approved_by":["Ina","Jo"],"actors":[
    {"actor_id":"ana","role":"initiator","kind":"human"},{"actor_id":"ben","role":"approver","kind":"human"}]}"#;

struct Stage {
    oauth: Oauth,
    register: Arc<Register>,
    clock: Clock,
    _scratch: Scratch,
}

impl Stage {
    /// The provider's keys are known from an earlier run; it is asked about tokens at `introspection`, if anywhere.
    async fn open(introspection: Option<&str>) -> Stage {
        Stage::open_with(introspection, forge::section("")).await
    }

    async fn open_with(introspection: Option<&str>, section: Section) -> Stage {
        let scratch = Scratch::new();
        let clock = Clock::manual(Time::from_unix_micros(NOW * 1_000_000));
        let now = clock.clone();
        let store = Sqlite::open(&scratch.file("pilot.db"), Arc::new(move || now.now())).unwrap();
        let ended = scratch.file("log.checkpoint.revocations");
        let outside = (ended.as_path(), "log.example");
        let register =
            Register::open(&store, &BTreeSet::new(), &BTreeSet::new(), true, outside, clock.now()).await.unwrap();
        let register = Arc::new(register);
        let copy = json!({
            "schema_version": 1, "issuer": "https://issuer.example", "fetched_at": clock.now(), "endpoints": null,
            "keys": published(),
        });
        scratch.write("provider.json", copy.to_string());
        let provider = Provider::new(section, scratch.file("provider.json"), clock.clone()).unwrap();
        let introspector = introspection
            .map(|url| Introspector::new(ProviderUrl::parse(url).unwrap(), "pilot", "secret", clock.clone()));
        let role_map = RoleMap::parse(ROLE_MAP.as_bytes()).unwrap();
        let trusted = Trusted { provider, introspector };
        let oauth = Oauth::new(trusted, role_map, Arc::clone(&register), clock.clone());
        Stage { oauth, register, clock, _scratch: scratch }
    }

    fn set(&self, seconds: i64) {
        let Clock::Manual(micros) = &self.clock else { panic!("a clock that can be moved") };
        micros.store(seconds * 1_000_000, Ordering::SeqCst);
    }

    async fn verdict(&self, token: &str) -> Result<String, Unknown> {
        let identified = self.oauth.identify(&headers(token)).await;
        identified.map(|caller| caller.actor.actor_id.to_string()).map_err(|denial| denial.unknown)
    }
}

fn headers(token: &str) -> HeaderMap {
    let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

#[tokio::test]
async fn a_clock_that_steps_back_revives_no_token_that_was_seen_to_have_expired() {
    let stage = Stage::open(None).await;
    let (seen, other) = (Forge::honest().token(), Forge::honest().claim("jti", json!("token-2")).token());
    assert_eq!(stage.verdict(&seen).await, Ok("ana".into()));
    stage.set(NOW + 630);
    assert_eq!(stage.verdict(&seen).await, Err(Unknown::Expired));
    stage.set(NOW + 100);
    assert_eq!(stage.verdict(&seen).await, Err(Unknown::Expired));
    assert_eq!(stage.verdict(&other).await, Ok("ana".into()), "and no other token suffers");
}

#[tokio::test]
async fn whose_token_was_exposed_is_known_also_before_it_was_used() {
    let stage = Stage::open(None).await;
    let id = credential_id("token-1");
    assert_eq!(stage.oauth.credential(&id).unwrap().actor, None);
    let (actor, found) = stage.oauth.holder_of(Forge::honest().token().as_bytes()).unwrap();
    assert_eq!((actor.actor_id.as_str(), &found), ("ana", &id));
    let known = stage.oauth.credential(&id).unwrap();
    assert_eq!(known.actor, Some(actor));
    assert_eq!(known.forget_at, Some(Time::from_unix_micros((NOW + 630) * 1_000_000)));
}

#[tokio::test]
async fn each_actor_is_shown_with_its_own_tokens() {
    let stage = Stage::open(None).await;
    for (second, sub, jti) in [(0, "ana", "a1"), (1, "ana", "a2"), (2, "ana", "a1")] {
        stage.set(NOW + second);
        let token = Forge::honest().claim("sub", json!(sub)).claim("jti", json!(jti)).token();
        assert_eq!(stage.verdict(&token).await, Ok(sub.into()));
    }
    let short = Forge::honest().claim("jti", json!("a3")).claim("exp", json!(NOW + 10)).token();
    assert_eq!(stage.verdict(&short).await, Ok("ana".into()));
    stage.set(NOW + 60);
    let shown = stage.oauth.actors();
    let shown: Vec<_> = shown.iter().map(|a| (a.actor_id.as_str(), a.credentials, a.last_seen)).collect();
    let last = Time::from_unix_micros((NOW + 2) * 1_000_000);
    assert_eq!(shown, [("ana", 2, Some(last)), ("ben", 0, None)]);
}

#[tokio::test]
async fn a_feed_whose_token_cannot_be_judged_again_ends_where_the_provider_would_have_to_be_asked() {
    let headers = headers(&Forge::honest().token());
    let stage = Stage::open(None).await;
    assert!(stage.oauth.watch(&headers).is_none(), "nobody has to be asked");
    // Nothing listens there, and nothing needs to.
    let stage = Stage::open(Some("http://127.0.0.1:9/status")).await;
    stage.set(NOW - 1);
    let lost = stage.oauth.watch(&headers).unwrap();
    assert!(matches!(lost, Watch::Lost));
    // At once, not after the provider's next turn.
    tokio::time::timeout(Duration::from_secs(2), stage.oauth.until_inactive(&lost)).await.unwrap();
}

#[tokio::test]
async fn a_token_revoked_here_while_the_provider_is_asked_does_not_come_in() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/status", listener.local_addr().unwrap());
    let stage = Stage::open(Some(&url)).await;
    let provider = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        assert!(socket.read(&mut [0; 4096]).await.unwrap() > 0);
        stage.register.end_here(&credential_id("token-1"));
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{\"active\":true}";
        socket.write_all(answer).await.unwrap();
    };
    let token = Forge::honest().token();
    let (verdict, ()) = tokio::join!(stage.verdict(&token), provider);
    assert_eq!(verdict, Err(Unknown::Revoked));
}
