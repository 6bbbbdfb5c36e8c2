//! The provider is asked whether a token is active, and what it does not say counts as no.

use std::sync::Arc;

use pilot_core::access_token::Demands;
use pilot_server::identity::oauth::introspection::{Introspector, Question, Standing, form_encoded};
use pilot_server::identity::oauth::provider::Undecided;
use pilot_setup::config::ProviderUrl;
use pilot_wire::outgoing::Outgoing;

use crate::identity_provider::stage::{Stage, advance, clock};

const TOKEN: &[u8] = b"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbmEifQ.AAAA";

fn introspector(stage: &Stage, clock: &pilot_ledger::clock::Clock) -> Introspector {
    let url = ProviderUrl::parse(&format!("{}/introspect", stage.url)).unwrap();
    Introspector::new(url, "pilot service", "s3cret:/", clock.clone())
}

async fn standing(introspector: &Introspector, outgoing: &Outgoing, scopes: &[&str]) -> Result<Standing, Undecided> {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    let demands = Demands { scopes, ..Demands::default() };
    let question = Question { token: TOKEN, sub: "ana", client_id: "console", demands: &demands };
    introspector.standing(outgoing, question).await
}

async fn is_active(introspector: &Introspector, outgoing: &Outgoing) -> Result<bool, Undecided> {
    standing(introspector, outgoing, &[]).await.map(|standing| standing == Standing::Active)
}

#[tokio::test]
async fn an_answer_is_relied_upon_for_five_seconds_and_no_longer() {
    let (stage, clock) = (Stage::open().await, clock());
    let (introspector, outgoing) = (introspector(&stage, &clock), Outgoing::new(false, None).unwrap());
    stage.say("/introspect", 200, r#"{"active":true,"sub":"ana"}"#);
    for _ in 0..20 {
        assert!(is_active(&introspector, &outgoing).await.unwrap());
    }
    assert_eq!(stage.heard("/introspect"), 1);
    let request = stage.last_request();
    assert!(request.contains(&form_encoded(std::str::from_utf8(TOKEN).unwrap())), "{request}");
    assert!(request.contains("application/x-www-form-urlencoded"), "{request}");
    let pair = data_encoding::BASE64.encode(b"pilot%20service:s3cret%3A%2F");
    assert!(request.contains(&format!("authorization: Basic {pair}")), "{request}");
    stage.say("/introspect", 200, r#"{"active":false}"#);
    advance(&clock, 4);
    assert!(is_active(&introspector, &outgoing).await.unwrap());
    advance(&clock, 1);
    assert!(!is_active(&introspector, &outgoing).await.unwrap(), "revoked");
}

#[tokio::test]
async fn many_who_show_the_same_token_ask_once() {
    let (stage, clock) = (Stage::open().await, clock());
    let introspector = Arc::new(introspector(&stage, &clock));
    stage.say("/introspect", 200, r#"{"active":true}"#);
    stage.hold_back();
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let introspector = Arc::clone(&introspector);
            tokio::spawn(async move { is_active(&introspector, &Outgoing::new(false, None).unwrap()).await.unwrap() })
        })
        .collect();
    stage.hears(1).await;
    stage.let_go();
    for active in asking {
        assert!(active.await.unwrap());
    }
    assert_eq!(stage.heard("/introspect"), 1);
}

#[tokio::test]
async fn what_is_not_known_to_be_active_does_not_come_in() {
    let (stage, clock) = (Stage::open().await, clock());
    let (introspector, outgoing) = (introspector(&stage, &clock), Outgoing::new(false, None).unwrap());
    for (status, body, said) in [
        (500, r#"{"active":true}"#, "answers 500"),
        (401, r#"{"active":true}"#, "check identity.oauth.introspection"),
        (302, "", "answers 302"),
        (200, "", "not strict JSON"),
        (200, "<html>", "not strict JSON"),
        (200, r#"{"active":false,"active":true}"#, "not strict JSON"),
        (200, "{}", "no `active`"),
        (200, r#"{"active":"true"}"#, "no `active`"),
        (200, r#"{"active":1}"#, "no `active`"),
    ] {
        stage.say("/introspect", status, body);
        advance(&clock, 10);
        let refused = is_active(&introspector, &outgoing).await.unwrap_err();
        assert!(refused.0.contains(said), "{said:?} is not in {refused:?}");
        let asked = stage.heard("/introspect");
        assert!(is_active(&introspector, &outgoing).await.is_err());
        assert_eq!(stage.heard("/introspect"), asked, "others are told at once");
    }
    advance(&clock, 10);
    stage.say("/introspect", 200, r#"{"active":true,"sub":"ben"}"#);
    assert!(!is_active(&introspector, &outgoing).await.unwrap(), "it is someone else's token");
}

#[tokio::test]
async fn an_answer_can_take_a_client_and_scopes_away_and_give_none() {
    let (stage, clock) = (Stage::open().await, clock());
    let (introspector, outgoing) = (introspector(&stage, &clock), Outgoing::new(false, None).unwrap());
    for (body, scopes, expected) in [
        (r#"{"active":true,"client_id":"console","scope":"a b"}"#, ["a"].as_slice(), ""),
        (r#"{"active":true}"#, &["a"], ""),
        (r#"{"active":true,"client_id":"console","scope":"b"}"#, &["a"], "lacks one of identity.oauth.scopes_required"),
        (r#"{"active":true,"scope":""}"#, &["a"], "lacks one of identity.oauth.scopes_required"),
        (r#"{"active":true,"scope":["a"]}"#, &["a"], "lacks one of identity.oauth.scopes_required"),
        (r#"{"active":true,"scope":["a"]}"#, &[], ""),
        (r#"{"active":true,"client_id":"Console"}"#, &[], "another client"),
        (r#"{"active":true,"client_id":null}"#, &[], "another client"),
        (r#"{"active":true,"sub":7}"#, &[], "another subject"),
        (r#"{"active":false,"client_id":"console","scope":"a"}"#, &["a"], "not active"),
    ] {
        stage.say("/introspect", 200, body);
        advance(&clock, 10);
        let cause = match standing(&introspector, &outgoing, scopes).await.unwrap() {
            Standing::Active => "",
            Standing::Refused(cause) => cause,
        };
        assert!(cause.contains(expected) && cause.is_empty() == expected.is_empty(), "{body}: {cause}");
    }
}
