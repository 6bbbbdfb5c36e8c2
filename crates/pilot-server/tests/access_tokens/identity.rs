//! What becomes of tokens over time: those that have ended stay so, and whose they were is known.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use pilot_core::access_token::Fault;
use pilot_core::role_map::RoleMap;
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_ledger::register::Register;
use pilot_server::caller::Caller;
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
    {"actor_id":"ana","role":"initiator","kind":"human"},{"actor_id":"ben","role":"approver","kind":"human"},
    {"actor_id":"runner","role":"executor","kind":"machine"}]}"#;

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
    assert_eq!(shown, [("ana", 2, Some(last)), ("ben", 0, None), ("runner", 0, None)]);
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

fn of(subject: &str) -> Forge {
    Forge::honest().claim("sub", json!(subject))
}

impl Stage {
    /// The cause that the request's log line would name.
    async fn cause(&self, forge: &Forge) -> String {
        let identified = self.oauth.identify(&headers(&forge.token())).await;
        let said = |caller: Caller| format!("{} {}", caller.actor.role, caller.actor.actor_id);
        identified.map_or_else(|denial| denial.cause, said)
    }
}

#[tokio::test]
async fn a_role_in_the_token_narrows_the_role_map_and_never_adds_to_it() {
    let lines =
        "roles_claim = 'roles'\n[role_values]\ninitiator = ['propose']\napprover = ['approve', 'approve-all']\n";
    let stage = Stage::open_with(None, forge::section(lines)).await;
    let with = |subject: &str, roles: &[&str]| of(subject).claim("roles", json!(roles));
    let lacks = Fault::RoleValue.to_string();
    for (what, forge, expected) in [
        ("role map and token agree", with("ana", &["propose"]), "initiator ana"),
        ("one of two values", with("ben", &["x", "approve-all"]), "approver ben"),
        ("the role map's role only", with("ana", &[]), lacks.as_str()),
        ("no claim", of("ana"), &lacks),
        ("the token's role only", with("ana", &["approve"]), &lacks),
        ("both, of which the role map's counts", with("ana", &["approve", "propose"]), "initiator ana"),
        ("a role of the role map that is not listed", with("runner", &["propose", "approve"]), &lacks),
        (
            "every role, and not in the role map",
            with("eve", &["propose", "approve"]),
            "the token's subject is not in the role map, or another issuer names that actor",
        ),
        ("in other letter case", with("ana", &["Propose"]), &lacks),
    ] {
        assert_eq!(stage.cause(&forge).await, expected, "{what}");
    }
    assert!(stage.oauth.holder_of(with("ana", &[]).token().as_bytes()).is_none(), "nobody holds what is not accepted");
}

#[tokio::test]
async fn a_role_whose_value_is_any_needs_none() {
    let lines = "roles_claim = 'roles'\n[role_values]\ninitiator = ['propose']\nexecutor = 'any'\n";
    let stage = Stage::open_with(None, forge::section(lines)).await;
    assert_eq!(stage.cause(&of("runner")).await, "executor runner");
    assert_eq!(stage.cause(&of("ana")).await, Fault::RoleValue.to_string());
}

#[tokio::test]
async fn people_must_have_signed_in_as_required_and_machines_do_not_sign_in() {
    let stage =
        Stage::open_with(None, forge::section("acr_values = ['2', 'phr']\namr_required = ['mfa', 'hwk']\n")).await;
    let signed_in = |acr: &str, amr: &[&str]| of("ana").claim("acr", json!(acr)).claim("amr", json!(amr));
    let (acr, amr) = (Fault::Acr.to_string(), Fault::Amr.to_string());
    for (what, forge, expected) in [
        ("as required", signed_in("2", &["pwd", "hwk", "mfa"]), "initiator ana"),
        ("the other acr", signed_in("phr", &["mfa", "hwk"]), "initiator ana"),
        ("a lesser acr", signed_in("1", &["mfa", "hwk"]), acr.as_str()),
        ("acr missing", of("ana").claim("amr", json!(["mfa", "hwk"])), &acr),
        ("acr a number", of("ana").claim("acr", json!(2)).claim("amr", json!(["mfa", "hwk"])), &acr),
        ("one means is missing", signed_in("2", &["mfa"]), &amr),
        ("amr missing", of("ana").claim("acr", json!("2")), &amr),
        ("amr one text", of("ana").claim("acr", json!("2")).claim("amr", json!("mfa hwk")), &amr),
        ("a machine", of("runner"), "executor runner"),
    ] {
        assert_eq!(stage.cause(&forge).await, expected, "{what}");
    }
}

#[tokio::test]
async fn a_token_known_by_its_digest_stays_revoked_however_its_signature_is_written() {
    let stage = Stage::open_with(None, forge::section("token_id_claim = 'digest'\n")).await;
    let (first, other) = (of("ana").signed_by("ES256"), of("ana").signed_by("ES256").claim("iat", json!(NOW - 61)));
    let token = first.token();
    let (_, id) = stage.oauth.holder_of(token.as_bytes()).unwrap();
    assert!(id.as_str().starts_with("sha256:") && id.as_str().len() == 39, "{id}");
    stage.register.end_here(&id);
    assert_eq!(stage.verdict(&token).await, Err(Unknown::Revoked));
    // The same claims under another valid signature of the same key.
    let again = first.token();
    assert_ne!(token, again);
    assert_eq!(stage.verdict(&again).await, Err(Unknown::Revoked));
    assert_eq!(stage.verdict(&other.token()).await, Ok("ana".into()), "and no other token suffers");
}

#[tokio::test]
async fn the_client_is_named_to_the_log_and_an_odd_name_by_its_digest() {
    let stage = Stage::open(None).await;
    for (client, expected) in [
        ("console", "console"),
        ("0oa1b2-c3.apps.example", "0oa1b2-c3.apps.example"),
        ("https://runner.example/client", "https://runner.example/client"),
        ("a b", "sha256:c8687a08aa5d6ed2044328fa6a697ab8"),
        ("x\"y", "sha256:"),
        ("\u{202e}elosnoc", "sha256:"),
        (&"c".repeat(129), "sha256:"),
    ] {
        let forge = of("ana").claim("client_id", json!(client));
        let caller = stage.oauth.identify(&headers(&forge.token())).await.unwrap();
        let shown = caller.client.unwrap();
        assert!(shown.starts_with(expected) && shown.len() <= 128, "{client}: {shown}");
        assert_eq!(shown.as_ref() == client, !expected.starts_with("sha256:"), "{client}: {shown}");
    }
}
