//! `docs/reference` is what the code says, to the byte. `UPDATE_EXPECT=1 cargo test --workspace reference` rewrites it.

use std::collections::BTreeSet;

use expect_test::expect_file;
use pilot_server::{openapi, reference, routes};
use serde_json::{Map, Value};

#[test]
fn the_route_table_in_the_docs_is_the_one_in_force() {
    expect_file!["../../../docs/reference/routes.md"].assert_eq(&reference::routes());
}

#[test]
fn every_problem_in_the_docs_is_one_the_service_can_give() {
    expect_file!["../../../docs/reference/problems.md"].assert_eq(&reference::problems());
}

#[test]
fn the_limits_in_the_docs_are_those_in_force() {
    expect_file!["../../../docs/reference/limits.md"].assert_eq(&reference::limits());
}

#[test]
fn the_openapi_document_in_the_docs_is_the_one_served() {
    let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    expect_file!["../../../docs/reference/openapi.json"].assert_eq(&text);
}

/// A derived schema would hide one of the same name that is kept by hand.
#[test]
fn no_schema_that_is_derived_is_kept_by_hand_as_well() {
    let by_hand: Map<String, Value> = serde_json::from_str(include_str!("../src/openapi/schemas.json")).unwrap();
    for name in pilot_api::schemas::schemas().keys() {
        assert!(!by_hand.contains_key(name), "{name} is in schemas.json and derived from a view");
    }
}

#[test]
fn every_operation_has_a_unique_id_a_summary_and_says_who_may_call_it() {
    let mut ids = BTreeSet::new();
    each_operation(|place, operation| {
        let id = text(operation, "operationId").unwrap_or_else(|| panic!("{place} has no operationId"));
        assert!(ids.insert(id.to_owned()), "{place}: operationId {id} is taken by another operation");
        assert!(text(operation, "summary").is_some(), "{place} has no summary");
        let security = operation.get("security").and_then(Value::as_array);
        assert!(security.is_some(), "{place} does not say whether a credential is needed");
    });
}

#[test]
fn every_operation_under_v1_needs_a_bearer_token_and_documents_its_absence_and_the_rate_limit() {
    each_operation(|place, operation| {
        let needs_token = operation["security"] == serde_json::json!([{ "bearer": [] }]);
        assert_eq!(needs_token, place.contains(" /v1/"), "{place}");
        assert_eq!(needs_token, operation["responses"].get("401").is_some(), "{place}");
        assert_eq!(needs_token, operation["responses"].get("429").is_some(), "{place}");
    });
}

#[test]
fn every_response_is_described_and_one_of_them_is_a_success() {
    each_operation(|place, operation| {
        let responses = operation.get("responses").and_then(Value::as_object);
        let responses = responses.unwrap_or_else(|| panic!("{place} has no responses"));
        assert!(responses.keys().any(|status| status.starts_with('2')), "{place} cannot succeed");
        for (status, response) in responses {
            let response = response.as_object().unwrap();
            assert!(text(response, "description").is_some(), "{place}: {status} has no description");
        }
    });
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    let document = document();
    each_reference(&document, &mut |target| {
        let pointer = target.strip_prefix('#').unwrap_or_else(|| panic!("{target} leads out of the document"));
        assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
    });
}

fn document() -> Value {
    openapi::document(&routes::table())
}

fn each_operation(mut visit: impl FnMut(&str, &Map<String, Value>)) {
    let document = document();
    let paths = document.get("paths").and_then(Value::as_object).unwrap();
    assert!(!paths.is_empty());
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            visit(&format!("{method} {path}"), operation.as_object().unwrap());
        }
    }
}

fn each_reference(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| name == "$ref") {
                    Some(target) => visit(target),
                    None => each_reference(member, visit),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|element| each_reference(element, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The member's text, unless it is absent or blank.
fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}
