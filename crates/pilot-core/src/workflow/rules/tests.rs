//! The API schema of a definition matches what a definition looks like.

use std::collections::BTreeSet;
use std::iter::successors;

use serde_json::{Map, Value, json};

use super::*;
use crate::role::Role;
use crate::workflow::parse::{INPUTS, KINDS, MARKS, OWNS};

const OPENAPI: &str = include_str!("../../../../../docs/reference/openapi.json");

/// A rule with every field set. Written out in full: a new field does not compile until it is here.
fn rule() -> Rule {
    let span = || Some(Span { text: "1h".into(), length: Duration::from_hours(1) });
    Rule {
        action: "approve".into(),
        from: vec!["submitted".into()],
        to: Some("approved".into()),
        roles: RoleSet::one(Role::Approver),
        own: Some(Own::Voter),
        not_by_executor: true,
        quorum: Some(1),
        quorum_if: Some(QuorumIf { pointer: "/risk".into(), equals: json!("high"), quorum: 2 }),
        comment_required: true,
        content_digest_required: true,
        sets_window: span(),
        inside_window: true,
        takes_lease: span(),
        renews_lease: span(),
        attempts: Some(3),
        voids_votes: true,
        voids_window: true,
        takes_back_vote: true,
        replaces: vec!["reject".into()],
        when: Some(When { input: "outcome".into(), equals: "succeeded".into() }),
        inputs: vec![Input::Result],
        description: "why".into(),
        holds: Some(true),
    }
}

fn rules() -> Rules {
    let roles = RoleSet::one(Role::Approver);
    let state = State {
        name: "submitted".into(),
        kind: Kind::Open,
        editable: true,
        waits_for: roles,
        description: "waits".into(),
    };
    let timer = |due| Timer { from: vec!["submitted".into()], due, to: "approved".into() };
    let after = Span { text: "1h".into(), length: Duration::from_hours(1) };
    Rules {
        schema_version: 1,
        name: "whole".into(),
        version: 1,
        title: "Whole".into(),
        description: "all of it".into(),
        initial: "submitted".into(),
        required_roles: roles,
        one_open_per_creator: true,
        states: vec![state],
        transitions: vec![rule()],
        timers: vec![timer(Due::After(after)), timer(Due::At(Mark::WindowEnd))],
        hold: Some(Hold { roles, release_roles: roles, blocks: vec!["approve".into()] }),
        payload_schema: json!({}),
    }
}

fn schema<'a>(document: &'a Value, name: &str) -> &'a Value {
    &document["components"]["schemas"][name]
}

fn keys(object: &Map<String, Value>) -> BTreeSet<&str> {
    object.keys().map(String::as_str).collect()
}

/// The members of all these objects together are exactly those the schema names.
fn check_members<'a>(objects: impl IntoIterator<Item = &'a Value>, schema: &Value, besides: &[&'a str]) {
    let mut shown: BTreeSet<_> = objects.into_iter().flat_map(|object| keys(object.as_object().unwrap())).collect();
    shown.extend(besides);
    assert_eq!(shown, keys(schema["properties"].as_object().unwrap()));
}

#[test]
fn every_member_of_a_definition_is_in_the_schema_and_nothing_else_is() {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let shown = serde_json::to_value(rules()).unwrap();
    let list = |name: &str| shown[name].as_array().unwrap().clone();
    check_members([&shown], schema(&document, "Workflow"), &["digest"]);
    check_members(&list("states"), schema(&document, "WorkflowState"), &[]);
    check_members(&list("transitions"), schema(&document, "WorkflowRule"), &[]);
    check_members(&list("timers"), schema(&document, "WorkflowTimer"), &[]);
    check_members([&shown["hold"]], schema(&document, "WorkflowHold"), &[]);
    let rule = &schema(&document, "WorkflowRule")["properties"];
    check_members([&shown["transitions"][0]["quorum_if"]], &rule["quorum_if"], &[]);
    check_members([&shown["transitions"][0]["when"]], &rule["when"], &[]);
}

/// Every variant, as serialised, is in the schema and can be used in a definition.
fn check_words<T: Serialize + PartialEq + Copy>(variants: impl Iterator<Item = T>, schema: &Value, read: &[(&str, T)]) {
    let variants: Vec<T> = variants.collect();
    let shown: BTreeSet<_> =
        variants.iter().map(|one| serde_json::to_value(one).unwrap().as_str().unwrap().to_owned()).collect();
    let named: BTreeSet<_> = schema.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, named);
    assert_eq!(shown, read.iter().map(|(word, _)| (*word).to_owned()).collect());
    assert!(variants.iter().all(|one| read.iter().any(|(_, known)| known == one)));
}

/// Each function names the next variant: a new one does not compile until it has its place.
#[test]
fn every_word_of_a_definition_is_in_the_schema_and_can_be_read() {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let kinds = successors(Some(Kind::Open), |kind| match kind {
        Kind::Open => Some(Kind::Effect),
        Kind::Effect => Some(Kind::Terminal),
        Kind::Terminal => None,
    });
    check_words(kinds, &schema(&document, "WorkflowState")["properties"]["kind"]["enum"], &KINDS);
    let owns = successors(Some(Own::Creator), |own| match own {
        Own::Creator => Some(Own::Voter),
        Own::Voter => Some(Own::Holder),
        Own::Holder => None,
    });
    let rule = &schema(&document, "WorkflowRule")["properties"];
    check_words(owns, &rule["own"]["enum"], &OWNS);
    let inputs = successors(Some(Input::Result), |input| match input {
        Input::Result => Some(Input::Artifacts),
        Input::Artifacts => Some(Input::Progress),
        Input::Progress => None,
    });
    check_words(inputs, &rule["inputs"]["items"]["enum"], &INPUTS);
    let marks = successors(Some(Mark::WindowEnd), |mark| match mark {
        Mark::WindowEnd => Some(Mark::LeaseEnd),
        Mark::LeaseEnd => None,
    });
    check_words(marks, &schema(&document, "WorkflowTimer")["properties"]["at"]["enum"], &MARKS);
}
