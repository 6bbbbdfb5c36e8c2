//! What is sent is what the API document says it is: examples of each view against its schema there.

use std::collections::BTreeSet;

use pilot_core::actor::Actor;
use pilot_core::decide::Prospect;
use pilot_core::document::DocumentKind;
use pilot_core::item::{Item, WorkflowRef};
use pilot_core::role::Role;
use pilot_core::role_map::Kind;
use pilot_core::time::Time;
use pilot_core::workflow::builtin::builtin;
use serde::Serialize;
use serde_json::{Value, json};

use crate::access::{ActorView, ActorsView, CredentialView, CredentialsView, State};
use crate::events::EventsView;
use crate::health::HealthView;
use crate::items::{ContentView, ItemView, ReadEntry};
use crate::log::{ProofView, ProofsView};
use crate::outlook::{BlockedView, EffectView, HoldView, How, OutlookView, SeenView, TallyView, WaitingView};
use crate::permits::PermitTokenView;
use crate::problem::{FaultView, ProblemView, WhoCanView};
use crate::webhooks::{WebhookState, WebhookView, WebhooksView};
use crate::workflows::{SummaryView, WorkflowsView};

const OPENAPI: &str = include_str!("../../../../docs/reference/openapi.json");
const TIME: &str = "2026-11-15T09:00:00.000000Z";
const DIGEST: &str = "sha256:967a324bfa0e1e5af583378da08641b2c43f7c3a3a3ddba8a767cdc33765cc81";
const ITEM: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// Once with everything that can be there, and once with nothing that can be left out.
#[track_caller]
fn check(name: &str, whole: &impl Serialize, bare: &impl Serialize) {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let described = members(&document["components"]["schemas"][name]["properties"]);
    let schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": { "schemas": document["components"]["schemas"] } });
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let [whole, bare] = [serde_json::to_value(whole).unwrap(), serde_json::to_value(bare).unwrap()];
    for sent in [&whole, &bare] {
        let faults: Vec<_> = validator.iter_errors(sent).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {sent} {faults:#?}");
    }
    assert_eq!(members(&whole), described, "{name}: what is sent, and what is described");
    assert!(members(&bare).is_subset(&described), "{name}: {bare}");
}

fn members(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

fn time() -> Time {
    TIME.parse().unwrap()
}

fn ana() -> Actor {
    Actor::new("ana".parse().unwrap(), Role::Initiator)
}

#[test]
fn webhooks_are_as_described() {
    let bare = WebhookView {
        name: "chat".into(),
        host: "chat.example".into(),
        state: WebhookState::Delivering,
        paused_because: None,
        next: None,
        lag: 0,
        failing_since: None,
        last_answer: None,
        last_answer_at: None,
        delivered_at: None,
    };
    let whole = WebhookView {
        state: WebhookState::Paused,
        paused_because: Some("it has failed for 5 days".into()),
        next: Some(7),
        lag: 3,
        failing_since: Some(time()),
        last_answer: Some("answered 500".into()),
        last_answer_at: Some(time()),
        delivered_at: Some(time()),
        ..bare.clone()
    };
    check("Webhook", &whole, &bare);
    let list = |webhooks| WebhooksView { webhooks, next: None };
    check("Webhooks", &list(vec![whole, bare]), &list(Vec::new()));
}

#[test]
fn actors_and_credentials_are_as_described() {
    let actor = |last_seen| ActorView {
        actor_id: ana().actor_id,
        role: Role::Executor,
        kind: Kind::Machine,
        operated_by: Some("ben".parse().unwrap()),
        credentials: 2,
        last_seen,
    };
    check("ActorInfo", &actor(Some(time())), &actor(None));
    let actors = |actors| ActorsView { actors, next: None };
    check("Actors", &actors(vec![actor(None)]), &actors(Vec::new()));
    let credential_id = || "ana-2026-11".parse().unwrap();
    let whole = CredentialView {
        credential_id: credential_id(),
        actor_id: Some(ana().actor_id),
        role: Some(Role::Initiator),
        not_before: Some(time()),
        expires_at: Some(time()),
        state: State::NotYet,
        last_seen: Some(time()),
    };
    let bare = CredentialView {
        credential_id: credential_id(),
        actor_id: None,
        role: None,
        not_before: None,
        expires_at: None,
        state: State::Revoked,
        last_seen: None,
    };
    check("CredentialInfo", &whole, &bare);
    check("Credentials", &CredentialsView { credentials: vec![whole] }, &CredentialsView { credentials: Vec::new() });
}

#[test]
fn a_permit_token_is_as_described() {
    let whole = PermitTokenView {
        token: "a.b.c".into(),
        audience: "vault".into(),
        expires_at: time(),
        jti: "j".into(),
        key_id: "k".into(),
        entry: 7,
    };
    check("PermitToken", &whole, &whole);
}

#[test]
fn an_item_is_as_described() {
    let definition = &builtin()[0];
    let item = |state: &str, votes: Value, window: Value, lease: Value| -> Item {
        serde_json::from_value(json!({
            "id": ITEM, "workflow": WorkflowRef::from(&**definition), "title": "t", "payload": { "risk": "high" },
            "state": state, "version": 7, "content_digest": DIGEST, "created_at": TIME, "created_by": ana(),
            "updated_at": TIME, "entered_at": TIME, "held": false, "window": window, "lease": lease, "votes": votes,
            "attempts": 1, "participants": { "ana": "initiator" }, "executors": [],
        }))
        .unwrap()
    };
    let vote = json!({ "actor_id": "ben", "action": "approve", "content_digest": DIGEST, "at": TIME });
    let whole = item(
        "executing",
        json!([vote]),
        json!({ "not_before": TIME, "not_after": TIME }),
        json!({ "holder": "eve", "expires_at": TIME }),
    );
    let bare = item("draft", json!([]), Value::Null, Value::Null);
    let view = |item| serde_json::to_value(ItemView::new(definition, item, &ana(), time())).unwrap();
    let (whole, bare) = (view(&whole), view(&bare));
    assert!(["window", "lease", "votes", "due_at"].iter().all(|name| whole[*name] != bare[*name]), "{whole} {bare}");
    check("Item", &whole, &bare);
    let content = |payload, nonce: Option<&str>| {
        let nonce = nonce.map(str::to_owned);
        ContentView { content_digest: DIGEST.parse().unwrap(), title: "t".into(), payload, nonce }
    };
    check("Content", &content(json!({ "risk": "high" }), Some("n")), &content(json!({}), None));
}

#[test]
fn what_an_item_leads_to_is_as_described() {
    let effect = |vote| EffectView { to: vec!["approved".into()], moves: true, ends: false, vote };
    let (voted, plain) = (effect(Some(TallyView { count: 1, needed: 2 })), effect(None));
    check("Effect", &voted, &plain);
    let blocked = |until| BlockedView {
        action: "start".into(),
        code: "outside_window".into(),
        detail: "start is possible only inside the window".into(),
        until,
    };
    check("Blocked", &blocked(Some(time())), &blocked(None));
    let waiting = |actors| WaitingView { action: "approve".into(), role: Role::Approver, actors, others: 2, needed: 1 };
    check("Waiting", &waiting(vec![ana().actor_id]), &waiting(Vec::new()));
    let seen = |how| SeenView { content_digest: DIGEST.parse().unwrap(), at: time(), how };
    check("Seen", &seen(How::Decided), &seen(How::Looked));
    let hold = |comment| HoldView { actor_id: ana().actor_id, role: Role::Approver, at: time(), comment };
    check("HoldInForce", &hold(Some("wait".into())), &hold(None));
    let whole = OutlookView {
        content_nonce: Some("n".into()),
        effects: [("approve".into(), voted)].into(),
        blocked: vec![blocked(None)],
        waiting: vec![waiting(Vec::new())],
        seen: Some(seen(How::Looked)),
        hold: Some(hold(None)),
    };
    let bare = OutlookView::new(&Prospect::default(), Vec::new());
    check("ItemOutlook", &whole, &bare);
}

#[test]
fn a_transition_is_as_described() {
    let entry = |members: Value| {
        let mut entry =
            json!({ "at": TIME, "index": 4, "item": ITEM, "type": "item.transition", "v": 1, "version": 2 });
        entry.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        serde_json::to_vec(&entry).unwrap()
    };
    let moved = json!({ "action": "approve", "actor_id": "ben", "operated_by": "bea", "role": "approver", "from": "submitted", "to": "approved", "content": DIGEST });
    let documents = [
        (DocumentKind::Comment, br#"{"comment":"fine","nonce":"n"}"#.to_vec()),
        (DocumentKind::Inputs, br#"{"inputs":{"result":"done"},"nonce":"n"}"#.to_vec()),
    ];
    let whole = ReadEntry::read(&entry(moved), &documents).unwrap();
    let bare = ReadEntry::read(&entry(json!({ "action": "expire" })), &[]).unwrap();
    check("Transition", &whole.view().unwrap(), &bare.view().unwrap());
}

#[test]
fn proofs_and_events_are_as_described() {
    let proof = || ProofView { index: 3, leaf_hash: "AAAA".into(), hashes: vec!["BBBB".into()] };
    check("Proof", &proof(), &ProofView { hashes: Vec::new(), ..proof() });
    let proofs = |proofs, next| ProofsView { checkpoint: "log.example\n".into(), proofs, next };
    check("Proofs", &proofs(vec![proof()], Some(4)), &proofs(Vec::new(), None));
    check(
        "Events",
        &EventsView { events: Vec::new(), next_after: Some(4) },
        &EventsView { events: Vec::new(), next_after: None },
    );
}

#[test]
fn health_problems_and_workflows_are_as_described() {
    let health = |status, limits_reached| HealthView { status, limits_reached };
    check("Health", &health("ready", vec!["connections"]), &health("ok", Vec::new()));
    let problem = |errors, who_can| ProblemView {
        r#type: "/docs#not_found".into(),
        title: "Not found".into(),
        status: 404,
        detail: "There is no such item.".into(),
        code: "not_found".into(),
        request_id: "r".into(),
        errors,
        who_can,
    };
    let fault = FaultView { pointer: "/title".into(), detail: "must be a string".into() };
    let who_can = WhoCanView { actors: vec![ana().actor_id], others: 2 };
    check("Problem", &problem(vec![fault], Some(who_can)), &problem(Vec::new(), None));
    let summary = || SummaryView {
        name: "n".into(),
        version: 1,
        digest: DIGEST.into(),
        title: "t".into(),
        description: "".into(),
    };
    check("WorkflowSummary", &summary(), &summary());
    let workflows = |workflows| WorkflowsView { workflows, next: None };
    check("Workflows", &workflows(vec![summary()]), &workflows(Vec::new()));
}
