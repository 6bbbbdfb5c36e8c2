//! What of a schema applies to a draft.

use expect_test::expect;
use serde_json::{Map, Value, json};

use super::PayloadSchema;

/// What remains of a schema in a draft.
const KEPT_IN_DRAFT: [&str; 11] = [
    "type",
    "properties",
    "patternProperties",
    "items",
    "prefixItems",
    "additionalProperties",
    "anyOf",
    "allOf",
    "$ref",
    "$defs",
    "definitions",
];

/// A schema for drafts, to be judged whole by the oracle.
pub(super) fn types_alone(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let mut kept = Map::new();
    for (keyword, value) in keywords {
        let name = if keyword == "oneOf" { "anyOf" } else { keyword.as_str() };
        if !KEPT_IN_DRAFT.contains(&name) {
            continue;
        }
        let reduced = match (name, value) {
            ("properties" | "$defs" | "definitions", Value::Object(members)) => {
                Value::Object(members.iter().map(|(member, schema)| (member.clone(), types_alone(schema))).collect())
            }
            // What they say does not apply, only that something is said.
            ("patternProperties", Value::Object(members)) => {
                Value::Object(members.keys().map(|pattern| (pattern.clone(), Value::Bool(true))).collect())
            }
            ("prefixItems", Value::Array(first)) => first.iter().map(|_| Value::Bool(true)).collect(),
            ("anyOf" | "allOf", Value::Array(branches)) => Value::Array(branches.iter().map(types_alone).collect()),
            ("items" | "additionalProperties", value) => types_alone(value),
            (_, value) => value.clone(),
        };
        kept.insert(name.to_owned(), reduced);
    }
    Value::Object(kept)
}

fn draft(schema: &Value, payload: &Value) -> String {
    let faults = PayloadSchema::compile(schema).unwrap().type_faults(payload);
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn of_a_draft_only_the_types_are_checked() {
    let schema = json!({
        "type": "object",
        "required": ["a", "b"],
        "properties": {
            "a": {"type": "string", "minLength": 3, "pattern": "^x", "format": "uri", "enum": ["xyz"]},
            "b": {"type": "array", "minItems": 2, "items": {"type": "integer", "minimum": 5}},
        },
        "additionalProperties": false,
        "not": {},
        "if": true,
        "then": false,
    });
    expect![""].assert_eq(&draft(&schema, &json!({"a": "", "b": [1]})));
    expect![""].assert_eq(&draft(&schema, &json!({})));
    expect![[r#"
        /payload/a: this is not of type "string"
        /payload/b/0: this is not of type "integer"
        /payload: has a member that is not allowed here"#]]
    .assert_eq(&draft(&schema, &json!({"a": 1, "b": ["x"], "c": 1})));
}

#[test]
fn branches_that_only_their_conditions_tell_apart_are_all_fine_in_a_draft() {
    let schema = json!({"oneOf": [{"type": "string", "minLength": 1}, {"type": "string", "maxLength": 0}]});
    expect![""].assert_eq(&draft(&schema, &json!("x")));
    expect!["/payload: this is not valid under any of the schemas listed in the 'oneOf' keyword"]
        .assert_eq(&draft(&schema, &json!(1)));
}

#[test]
fn a_reference_counts_in_a_draft_wherever_it_points() {
    let schema = json!({
        "properties": {"a": {"$ref": "#name"}, "b": {"$ref": "#/not"}},
        "not": {"type": "null", "const": null},
        "if": {"$anchor": "name", "type": "string"},
    });
    expect![[r#"
        /payload/a: this is not of type "string"
        /payload/b: this is not of type "null""#]]
    .assert_eq(&draft(&schema, &json!({"a": 1, "b": 1})));
}

#[test]
fn a_draft_is_not_refused_for_what_a_pattern_or_a_place_in_a_list_allows() {
    let schema = json!({
        "properties": {"list": {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": false,
    });
    expect![""].assert_eq(&draft(&schema, &json!({"x-note": "n", "list": ["first", 2]})));
    expect![[r#"
        /payload/list/1: this is not of type "integer"
        /payload: has a member that is not allowed here"#]]
    .assert_eq(&draft(&schema, &json!({"y": "n", "list": ["first", "second"]})));
}
