//! What is said about a payload that does not fit.

use expect_test::{Expect, expect};
use jsonschema::error::ValidationErrorKind;
use serde_json::{Value, json};

use super::{Both, PayloadSchema};
use crate::fault::Fault;
use crate::json::join;
use crate::limits::FAULTS_MAX;

fn lines(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n")
}

fn check(schema: &Value, payload: &Value, expected: &Expect) {
    expected.assert_eq(&lines(&PayloadSchema::compile(schema).unwrap().faults(payload)));
}

/// The sentences of the oracle, which people know.
fn known(both: &Both, payload: &Value) -> String {
    let faults = both.oracle.iter_errors(payload).map(|error| {
        let place = format!("/payload{}", error.instance_path());
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                Fault::new(join(&place, property.as_str().unwrap_or_default()), "is required")
            }
            ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::UnevaluatedProperties { .. } => {
                Fault::new(place, "has a member that is not allowed here")
            }
            ValidationErrorKind::Pattern { pattern } if pattern == "\\S" => Fault::new(place, "must not be empty"),
            _ => Fault::new(place, error.masked_with("this").to_string().replace("less than", "fewer than")),
        }
    });
    lines(&faults.collect::<Vec<_>>()).replace("is fewer than", "is less than")
}

#[test]
fn faults_keep_their_sentences_and_their_order() {
    let schema = json!({
        "type": "object",
        "required": ["z", "a", "m"],
        "maxProperties": 1,
        "dependentRequired": {"b": ["q"]},
        "properties": {
            "b": {"type": "string"},
            "c": {"type": ["integer", "null"], "minimum": 3},
            "d": {"enum": ["x", 1, null]},
            "e": {"enum": [1, 2, 3, 4, 5]},
            "f": {"const": {"a": 1}},
            "g": {"minimum": 3, "exclusiveMinimum": 3, "multipleOf": 7},
            "h": {"maximum": 1.5, "exclusiveMaximum": 1},
            "i": {"minLength": 2, "pattern": "^x", "format": "uri"},
            "j": {"maxLength": 1, "pattern": "\\S"},
            "k": {"minItems": 3, "uniqueItems": true, "items": {"type": "string"}},
            "l": {"maxItems": 1},
            "n": {"minProperties": 1},
            "o": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "p": {"oneOf": [{"minimum": 9}, {"type": "string"}]},
            "r": {"oneOf": [true, true]},
            "s": {"allOf": [{"minimum": 3}, {"maximum": 0}]},
            "x/y~": {"type": "string"},
            "u": {"properties": {"v": {"type": "null"}}, "unevaluatedProperties": false},
        },
        "additionalProperties": false,
    });
    let payload = json!({
        "b": 1, "c": "x", "d": 2, "e": 6, "f": {"a": 2}, "g": 2, "h": 2, "i": "a", "j": "  ", "k": [1, 1], "l": [1, 2],
        "n": {}, "o": 1, "p": 1, "r": 1, "s": 1, "x/y~": 1, "u": {"v": 1, "w": 1}, "unknown": 1,
    });
    let both = Both::of(schema);
    let ours = lines(&both.ours.faults(&payload));
    assert_eq!(ours, known(&both, &payload));
    expect![[r#"
        /payload: this has more than 1 property
        /payload/z: is required
        /payload/a: is required
        /payload/m: is required
        /payload/q: is required
        /payload/b: this is not of type "string"
        /payload/c: this is not of types "null", "integer"
        /payload/d: this is not one of "x", 1 or null
        /payload/e: this is not one of 1, 2 or 3 other candidates
        /payload/f: {"a":1} was expected"#]]
    .assert_eq(&ours.lines().take(10).collect::<Vec<_>>().join("\n"));
}

#[test]
fn sentences_in_poor_english_were_corrected() {
    check(
        &json!({"contains": {"type": "null"}}),
        &json!([1]),
        &expect!["/payload: none of its items is valid under the schema listed in the 'contains' keyword"],
    );
    check(
        &json!({"contains": true, "maxContains": 1}),
        &json!([1, 2]),
        &expect!["/payload: more than 1 of its items are valid under the schema listed in the 'contains' keyword"],
    );
    check(
        &json!({"not": {"type": "null"}}),
        &json!(null),
        &expect!["/payload: this must not be valid under the schema listed in the 'not' keyword"],
    );
    check(&json!({"properties": {"a": false}}), &json!({"a": 1}), &expect!["/payload/a: is not allowed here"]);
    check(
        &json!({"propertyNames": {"maxLength": 1}}),
        &json!({"abc": 1}),
        &expect!["/payload: has a member whose name is not allowed here"],
    );
    check(&json!({"unevaluatedItems": false}), &json!([1]), &expect!["/payload: has an item that is not allowed here"]);
    check(&json!({"minItems": 2, "minProperties": 1}), &json!([]), &expect!["/payload: this has fewer than 2 items"]);
}

#[test]
fn faults_inside_branches_are_listed_only_where_every_branch_must_hold() {
    let schema = json!({
        "allOf": [{"properties": {"a": {"type": "string"}}}],
        "if": {"properties": {"b": {"const": 1}}},
        "then": {"properties": {"c": {"type": "null"}}},
        "$ref": "#/$defs/d",
        "$defs": {"d": {"properties": {"d": {"items": {"type": "null"}}}}},
    });
    check(
        &schema,
        &json!({"a": 1, "b": 1, "c": 1, "d": [null, 1]}),
        &expect![[r#"
            /payload/a: this is not of type "string"
            /payload/c: this is not of type "null"
            /payload/d/1: this is not of type "null""#]],
    );
}

#[test]
fn no_sentence_repeats_what_was_found() {
    let secret = "pilot_0123456789";
    let schemas = [
        json!({"type": "null"}),
        json!({"const": 1}),
        json!({"enum": [1]}),
        json!({"maxLength": 1}),
        json!({"minLength": 99}),
        json!({"pattern": "^$"}),
        json!({"format": "uri"}),
        json!({"maxProperties": 0}),
        json!({"additionalProperties": false}),
        json!({"propertyNames": {"maxLength": 1}}),
        json!({"propertyNames": {"pattern": "^$"}}),
        json!({"unevaluatedProperties": false}),
        json!({"not": {}}),
        json!({"anyOf": [false]}),
        json!({"oneOf": [true, true]}),
        json!({"maxItems": 0}),
        json!({"uniqueItems": true}),
        json!({"contains": false}),
        json!({"unevaluatedItems": false}),
        json!(false),
        json!({"required": ["a"]}),
    ];
    let payloads = [json!(secret), json!([secret, secret]), json!({secret: secret})];
    let mut listed = 0;
    for schema in schemas {
        let compiled = PayloadSchema::compile(&schema).unwrap();
        for fault in payloads.iter().flat_map(|payload| compiled.faults(payload)) {
            assert!(!fault.to_string().contains(secret), "{schema}: {fault}");
            listed += 1;
        }
    }
    assert!(listed > 25, "{listed}");
}

#[test]
fn a_fault_shows_only_the_beginning_of_a_long_value_of_the_definition() {
    for schema in
        [json!({"const": "ä".repeat(500)}), json!({"enum": ["ä".repeat(500)]}), json!({"pattern": "ä".repeat(500)})]
    {
        let faults = PayloadSchema::compile(&schema).unwrap().faults(&json!("x"));
        assert!(faults[0].detail.contains("ä…") && faults[0].detail.len() < 300, "{}", faults[0]);
    }
}

#[test]
fn no_more_faults_are_listed_than_anyone_reads() {
    let schema = json!({"items": {"type": "string", "minimum": 3}});
    let faults = PayloadSchema::compile(&schema).unwrap().faults(&json!(vec![1; 500]));
    assert_eq!(faults.len(), FAULTS_MAX);
}
