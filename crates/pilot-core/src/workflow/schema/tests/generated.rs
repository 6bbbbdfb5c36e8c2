//! Schemas and payloads put together by dice, from few words, so that keywords meet each other and payloads hit them.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::drafts::types_alone;
use super::{PayloadSchema, oracle};

const SCHEMAS: usize = 4_000;
const PAYLOADS: usize = 8;

const NAMES: [&str; 5] = ["a", "b", "c", "x-y", "ä/~"];
const TEXTS: [&str; 8] = ["", "a", "ab", "abc", "x-y", "ä😀", "2026-02-28", "https://example.org/a"];
const PATTERNS: [&str; 7] = ["^a", "b$", "^x-", "^[a-c]+$", "\\S", "^(a|b)$", "\\d"];
const FORMATS: [&str; 5] = ["date", "uri", "email", "ipv4", "uri-reference"];
const REFERENCES: [&str; 7] = ["#", "#/$defs/d0", "#/$defs/d1", "#/$defs/d2", "#named", "#/properties/a", "#/allOf/0"];
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Of one value.
#[rustfmt::skip]
const RULES: [&str; 17] = [
    "type", "type", "types", "const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "pattern", "format", "minItems", "uniqueItems", "required",
];
/// With schemas in them.
#[rustfmt::skip]
const APPLICATORS: [&str; 27] = [
    "$ref", "$ref", "$ref", "properties", "properties", "properties", "patternProperties", "additionalProperties",
    "propertyNames", "items", "prefixItems", "contains", "minContains", "maxContains", "dependentSchemas",
    "dependentRequired", "allOf", "allOf", "anyOf", "anyOf", "oneOf", "not", "if", "unevaluatedProperties",
    "unevaluatedProperties", "unevaluatedItems", "unevaluatedItems",
];

fn number(dice: &mut Dice) -> Value {
    dice.pick(&["0", "1", "1.0", "2", "3", "-1", "0.5", "2.5", "1e1"]).parse().unwrap()
}

fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 5 } else { 9 }) {
        0 => Value::Null,
        1 => Value::Bool(dice.is_one_in(2)),
        2 => number(dice),
        3 | 4 => Value::from(dice.pick(&TEXTS)),
        5 | 6 => (0..dice.below(4)).map(|_| value(dice, depth - 1)).collect(),
        _ => (0..dice.below(4)).map(|_| (dice.pick(&NAMES).to_owned(), value(dice, depth - 1))).collect(),
    }
}

fn schema(dice: &mut Dice, depth: usize) -> Value {
    if dice.is_one_in(12) {
        return Value::Bool(!dice.is_one_in(3));
    }
    let mut keywords = Map::new();
    for _ in 0..=dice.below(3) {
        if depth == 0 || dice.is_one_in(3) {
            rule(dice, &mut keywords);
        } else {
            applicator(dice, depth - 1, &mut keywords);
        }
    }
    Value::Object(keywords)
}

fn rule(dice: &mut Dice, keywords: &mut Map<String, Value>) {
    let name = dice.pick(&RULES);
    let said = match name {
        "type" => json!(dice.pick(&TYPES)),
        "types" => json!([dice.pick(&TYPES[..3]), dice.pick(&TYPES[3..])]),
        "const" => value(dice, 1),
        "enum" => (0..=dice.below(4)).map(|_| value(dice, 1)).collect(),
        "multipleOf" => json!(dice.pick(&[1.0, 2.0, 0.5])),
        "minLength" | "maxLength" | "minItems" => json!(dice.below(3)),
        "pattern" => json!(dice.pick(&PATTERNS)),
        "format" => json!(dice.pick(&FORMATS)),
        "uniqueItems" => json!(!dice.is_one_in(4)),
        "required" => json!([dice.pick(&NAMES)]),
        _ => number(dice),
    };
    keywords.insert(name.replace("types", "type"), said);
}

fn applicator(dice: &mut Dice, depth: usize, keywords: &mut Map<String, Value>) {
    let name = dice.pick(&APPLICATORS);
    let said = match name {
        "$ref" => json!(dice.pick(&REFERENCES)),
        "properties" | "dependentSchemas" => {
            (0..=dice.below(3)).map(|_| (dice.pick(&NAMES).to_owned(), schema(dice, depth))).collect()
        }
        "patternProperties" => json!({dice.pick(&PATTERNS): schema(dice, depth)}),
        "dependentRequired" => json!({dice.pick(&NAMES): [dice.pick(&NAMES)]}),
        "minContains" | "maxContains" => {
            keywords.insert("contains".to_owned(), schema(dice, depth));
            json!(dice.below(3))
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => (0..=dice.below(3)).map(|_| schema(dice, depth)).collect(),
        "if" => {
            for branch in ["then", "else"] {
                if !dice.is_one_in(3) {
                    keywords.insert(branch.to_owned(), schema(dice, depth));
                }
            }
            schema(dice, depth)
        }
        _ => schema(dice, depth),
    };
    keywords.insert(name.to_owned(), said);
}

/// With something for each reference to point to.
fn document(dice: &mut Dice) -> Value {
    let mut document = schema(dice, 3);
    let Value::Object(keywords) = &mut document else { return document };
    let mut named = Map::from_iter([("$anchor".to_owned(), json!("named"))]);
    applicator(dice, 1, &mut named);
    let definitions = json!({"d0": schema(dice, 2), "d1": schema(dice, 1), "d2": named});
    keywords.insert("$defs".to_owned(), definitions);
    for (name, default) in [("properties", json!({"a": true})), ("allOf", json!([{}]))] {
        keywords.entry(name).or_insert(default);
    }
    if let Some(Value::Object(members)) = keywords.get_mut("properties") {
        members.entry("a").or_insert(Value::Bool(true));
    }
    document
}

#[test]
fn schemas_made_by_dice_judge_payloads_as_the_oracle_does() {
    let mut dice = Dice::new(20_261_116);
    let (mut judged, mut valid, mut refused, mut drafts, mut valid_drafts) = (0, 0, 0, 0, 0);
    for _ in 0..SCHEMAS {
        let document = document(&mut dice);
        let ours = match PayloadSchema::compile(&document) {
            Ok(ours) => ours,
            Err(findings) => {
                let is_endless = findings.iter().all(|finding| finding.message.contains("leads back to itself"));
                assert!(is_endless, "{document}: {findings:?}");
                refused += 1;
                continue;
            }
        };
        let whole = oracle(&document).unwrap_or_else(|| panic!("only we accept {document}"));
        // References to what a draft does not have were refused.
        let types = oracle(&types_alone(&document));
        for _ in 0..PAYLOADS {
            let payload = value(&mut dice, 3);
            let faults = ours.faults(&payload);
            assert_eq!(faults.is_empty(), whole.is_valid(&payload), "{document}\n{payload}\n{faults:?}");
            (judged, valid) = (judged + 1, valid + usize::from(faults.is_empty()));
            if let Some(types) = &types {
                let faults = ours.type_faults(&payload);
                assert_eq!(faults.is_empty(), types.is_valid(&payload), "draft: {document}\n{payload}\n{faults:?}");
                (drafts, valid_drafts) = (drafts + 1, valid_drafts + usize::from(faults.is_empty()));
            }
        }
    }
    println!("{judged} judged, {valid} valid; {drafts} drafts, {valid_drafts} valid; {refused} schemas refused");
    assert!(judged > 20_000 && drafts > 10_000, "too many were refused");
    assert!((judged / 5..judged * 4 / 5).contains(&valid), "one verdict would do for almost all");
}
