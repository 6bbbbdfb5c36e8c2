//! Whatever is sent in a request: an answer, never a panic.

use pilot_core::actor::Actor;
use pilot_core::decide::{
    ActionRequest, Caller, Content, EditRequest, NewItem, OpenItems, Request, decide, decide_creation,
};
use pilot_core::document::ContentDigest;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::builtin::builtin;
use pilot_core::workflow::report::report;
use proptest::prelude::*;
use serde_json::{Value, json};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("2026-11-15T10:00:00Z")),
        Just(json!("succeeded")),
    ];
    let name = proptest::sample::select(vec![
        "not_after",
        "not_before",
        "outcome",
        "result",
        "artifacts",
        "name",
        "sha256",
        "bytes",
        "uri",
        "risk",
        "x/~",
    ]);
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(name.clone(), inner, 0..5)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_payload_patch_and_inputs_get_an_answer(payload in any_json(), patch in any_json(), inputs in any_json(), nth in 0..21_usize) {
        let [controlled, _] = builtin();
        let ana = Actor::new("ana".parse().unwrap(), Role::Initiator);
        let id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let content_digest = ContentDigest::of("t", &payload, "n");
        let content = Content::judge(&controlled, "t", &payload, content_digest.clone());
        let request = NewItem { id, content };
        let Ok((_, item)) = decide_creation(&controlled, &request, &ana, Time::EPOCH, OpenItems::default()) else { return Ok(()) };
        let (title, payload) = EditRequest::edited(&item, None, Some(&patch));
        let content = Some(Content::judge(&controlled, &title, &payload, content_digest.clone()));
        let edit = EditRequest { content, made_from: content_digest, if_match: None };
        let caller = Caller::Actor(ana);
        let _ = decide(&controlled, &item, &Request::Edit(edit), &caller, Time::EPOCH);
        let action = controlled.actions().get(nth).map_or("x", |action| &action.name).to_owned();
        for role in Role::ALL {
            let caller = Caller::Actor(Actor::new("new".parse().unwrap(), role));
            let request = ActionRequest { action: action.clone(), inputs: Some(inputs.clone()), ..ActionRequest::default() };
            let refused = decide(&controlled, &item, &Request::Act(request), &caller, Time::EPOCH);
            prop_assert!(refused.is_err() || ["hold", "release"].contains(&action.as_str()));
        }
    }
}

#[test]
fn nesting_without_end_is_refused_and_does_not_exhaust_the_stack() {
    for text in
        ["[".repeat(200_000), format!("a = {}", "[".repeat(200_000)), format!("a = {}", "{ b = ".repeat(40_000))]
    {
        assert!(!report(&text, None).findings.is_empty());
    }
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "a": inner }));
    let [controlled, _] = builtin();
    let ana = Actor::new("ana".parse().unwrap(), Role::Initiator);
    let content_digest = ContentDigest::of("t", &deep, "n");
    let id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    let request = NewItem { id, content: Content::judge(&controlled, "t", &deep, content_digest) };
    let refused = decide_creation(&controlled, &request, &ana, Time::EPOCH, OpenItems::default()).unwrap_err();
    assert_eq!(refused.errors().first().unwrap().to_string(), "/payload: is nested deeper than 32 levels");
}
