//! What a check costs, counted in steps. Time would depend on the machine.

use serde_json::{Map, Value, json};

use super::super::judge::steps;
use super::PayloadSchema;
use crate::limits::{PAYLOAD_DEPTH_MAX, SCHEMA_STEPS_MAX};
use crate::workflow::builtin::builtin;

fn cost(schema: &Value, payload: &Value) -> usize {
    steps(&PayloadSchema::compile(schema).unwrap().0, payload)
}

#[track_caller]
fn is_too_complex(schema: &Value, payload: &Value) {
    let faults = PayloadSchema::compile(schema).unwrap().faults(payload);
    let listed: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["/payload: is too complex to be checked against the schema of this workflow"]);
}

/// Each applies the next one twice.
fn doubling(keyword: &str, levels: usize) -> Value {
    let link = |level: usize| json!({"$ref": format!("#/$defs/d{level}")});
    let mut links: Map<String, Value> =
        (0..levels).map(|level| (format!("d{level}"), json!({keyword: [link(level + 1), link(level + 1)]}))).collect();
    links.insert(format!("d{levels}"), json!({"type": "integer"}));
    json!({"$defs": links, "$ref": "#/$defs/d0"})
}

#[test]
fn a_check_that_would_take_hours_is_stopped_with_a_fault() {
    is_too_complex(&doubling("allOf", 25), &json!(1));
    is_too_complex(&doubling("anyOf", 25), &json!("x"));
    is_too_complex(&doubling("oneOf", 25), &json!(1));
    assert!(cost(&doubling("allOf", 8), &json!(1)) < 5_000);
}

#[test]
fn a_check_that_was_stopped_has_no_verdict_to_negate() {
    let Value::Object(mut schema) = doubling("allOf", 25) else { unreachable!() };
    let reference = schema.remove("$ref").unwrap();
    schema.insert("not".to_owned(), json!({ "$ref": reference }));
    is_too_complex(&Value::Object(schema.clone()), &json!(1));
    schema.insert("if".to_owned(), schema["not"].clone());
    schema.remove("not");
    schema.insert("else".to_owned(), json!(true));
    is_too_complex(&Value::Object(schema), &json!(1));
}

#[test]
fn a_schema_that_doubles_at_each_level_of_a_payload_is_stopped_too() {
    let inside = json!({"properties": {"a": {"$ref": "#"}}});
    let schema = json!({"type": "object", "allOf": [inside, inside]});
    let deep = (0..PAYLOAD_DEPTH_MAX - 1).fold(json!({}), |inner, _| json!({ "a": inner }));
    is_too_complex(&schema, &deep);
    assert!(cost(&json!({"type": "object", "allOf": [inside]}), &deep) < 1_000);
}

#[test]
fn the_deepest_check_there_can_be_does_not_exhaust_the_stack() {
    // Twelve schemas for each level of the payload.
    let nested = |times: usize| {
        (0..times).fold(json!({"properties": {"a": {"$ref": "#"}}}), |inner, _| json!({"allOf": [inner]}))
    };
    let deep = (0..PAYLOAD_DEPTH_MAX - 1).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert!(PayloadSchema::compile(&nested(12)).unwrap().faults(&deep).is_empty());
    is_too_complex(&nested(60), &deep);
}

#[test]
fn looking_for_equal_items_does_not_compare_each_with_each() {
    let list = |length: usize| Value::from((0..length).map(|n| json!({"n": n})).collect::<Vec<_>>());
    let (small, large) =
        (cost(&json!({"uniqueItems": true}), &list(500)), cost(&json!({"uniqueItems": true}), &list(4_000)));
    assert!(large < 12 * small && large < SCHEMA_STEPS_MAX / 5, "{small} and {large}");
    assert!(large > 4_000 * 11, "sorting is paid for: {large}");
}

#[test]
fn a_long_list_of_allowed_values_costs_no_more_than_a_short_one() {
    let options = |length: usize| json!({"items": {"enum": (0..length).map(|n| format!("v{n}")).collect::<Vec<_>>()}});
    let payload = Value::from((0..4_000).map(|n| format!("v{}", n % 10)).collect::<Vec<_>>());
    assert_eq!(cost(&options(10), &payload), cost(&options(10_000), &payload));
}

#[test]
fn a_pattern_is_searched_for_in_linear_time() {
    for pattern in ["(a*)*b", "(a|aa)+$", "^(a?){20}a{20}$", "(x+x+)+y", "(.*)(.*)(.*)[0-9]"] {
        let schema = json!({ "pattern": pattern });
        let (short, long) = (cost(&schema, &json!("a".repeat(2_000))), cost(&schema, &json!("a".repeat(16_000))));
        assert!(long < 9 * short, "{pattern}: {short} and {long}");
    }
    // What costs most per character is stopped.
    is_too_complex(&json!({"pattern": "(a?){2000}b$"}), &json!("a".repeat(60_000)));
}

#[test]
fn common_patterns_can_check_the_largest_texts() {
    let text = json!("Ändern und wieder ändern. ".repeat(1_500).trim());
    for pattern in ["^[\\s\\S]{1,40000}$", "^[\\p{L}\\s.]+$", "^\\S(.*\\S)?$", "(?i)^(ändern|und|wieder|[ .])+$"] {
        let schema = json!({ "pattern": pattern });
        assert!(PayloadSchema::compile(&schema).unwrap().faults(&text).is_empty(), "{pattern}");
        let cost = cost(&schema, &text);
        assert!(cost < SCHEMA_STEPS_MAX / 3, "{pattern}: {cost}");
    }
}

#[test]
fn the_largest_payloads_of_the_built_in_workflows_cost_a_small_part() {
    let [controlled, _] = builtin();
    let schema = &controlled.rules().payload_schema;
    let targets: Vec<_> = (0..3_900).map(|n| format!("host-{n}")).collect();
    let links: Vec<_> = (0..1_500).map(|n| format!("https://example.org/tickets/{n}")).collect();
    let base = json!({"purpose": "p", "operation": "o", "risk": "low", "rollback_plan": "r"});
    for (name, value) in [("targets", json!(targets)), ("links", json!(links)), ("purpose", json!("x ".repeat(32_000)))]
    {
        let mut payload = base.clone();
        payload[name] = value;
        assert!(controlled.payload_faults(&payload).is_empty());
        let cost = cost(schema, &payload);
        assert!(cost < SCHEMA_STEPS_MAX / 20, "{name}: {cost}");
    }
}
