//! Schemas that are refused: what is wrong, where, and what to do.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::PayloadSchema;
use crate::limits::{FAULTS_MAX, PATTERN_BYTES_MAX, SCHEMA_CHAIN_MAX};

fn refused(schema: &Value) -> String {
    let findings = PayloadSchema::compile(schema).err().unwrap_or_default();
    let line = |finding: &crate::workflow::source::Finding| {
        assert_eq!(finding.code, "payload_schema");
        format!("{}: {}; {}", finding.pointer.replacen("/payload_schema", "#", 1), finding.message, finding.mend)
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn check(schema: &Value, expected: &Expect) {
    expected.assert_eq(&refused(schema));
}

#[test]
fn a_keyword_with_a_value_of_another_type_is_refused() {
    check(&json!(3), &expect![[r##"#: a schema must be a table, or true or false; write { type = "…" }"##]]);
    check(
        &json!({"type": "word"}),
        &expect![[
            r##"#/type: `type` must be the name of a type, or a list of them; use "null", "boolean", "integer", "number", "string", "array", "object", or a list of them"##
        ]],
    );
    check(
        &json!({"properties": {"a": {"type": []}, "b": {"type": ["string", 1]}}}),
        &expect![[r##"
        #/properties/a/type: `type` must be the name of a type, or a list of them; use "null", "boolean", "integer", "number", "string", "array", "object", or a list of them
        #/properties/b/type: `type` must be the name of a type, or a list of them; use "null", "boolean", "integer", "number", "string", "array", "object", or a list of them"##]],
    );
    check(
        &json!({"minLength": -1, "maxLength": 1.5, "minItems": "1"}),
        &expect![[r#"
        #/minLength: `minLength` must be a whole number that is not negative; write minLength = 1
        #/maxLength: `maxLength` must be a whole number that is not negative; write maxLength = 1
        #/minItems: `minItems` must be a whole number that is not negative; write minItems = 1"#]],
    );
    check(
        &json!({"multipleOf": 0, "minimum": "1"}),
        &expect![[r#"
        #/minimum: `minimum` must be a number; write minimum = 1
        #/multipleOf: `multipleOf` must be a number above 0; write multipleOf = 0.01"#]],
    );
    check(
        &json!({"enum": 1, "uniqueItems": "yes", "required": ["a", 1]}),
        &expect![[r##"
        #/enum: `enum` must be a list; write enum = […]
        #/required: `required` must be a list of member names; write required = ["…"]
        #/uniqueItems: `uniqueItems` must be true or false; write uniqueItems = true"##]],
    );
    check(
        &json!({"allOf": [], "anyOf": {}, "oneOf": [1], "prefixItems": 1}),
        &expect![[r##"
        #/prefixItems: `prefixItems` must be a list of one or more schemas; write prefixItems = [{ … }]
        #/allOf: `allOf` must be a list of one or more schemas; write allOf = [{ … }]
        #/anyOf: `anyOf` must be a list of one or more schemas; write anyOf = [{ … }]
        #/oneOf/0: a schema must be a table, or true or false; write { type = "…" }"##]],
    );
    check(
        &json!({"properties": [], "$defs": {"a/b": 1}, "patternProperties": 1}),
        &expect![[r##"
        #/properties: `properties` must be a table; write properties = { name = … }
        #/patternProperties: `patternProperties` must be a table; write patternProperties = { name = … }
        #/$defs/a~1b: a schema must be a table, or true or false; write { type = "…" }"##]],
    );
    check(
        &json!({"dependentRequired": {"a": 1}, "dependentSchemas": {"a": []}}),
        &expect![[r##"
        #/dependentRequired/a: `a` must be a list of member names; write a = ["…"]
        #/dependentSchemas/a: a schema must be a table, or true or false; write { type = "…" }"##]],
    );
    check(
        &json!({"title": 1, "deprecated": "no", "examples": {}, "$comment": [], "$ref": 1}),
        &expect![[r##"
        #/$comment: `$comment` must be a string; write "$comment" = "…"
        #/title: `title` must be a string; write title = "…"
        #/deprecated: `deprecated` must be true or false; write deprecated = true
        #/examples: `examples` must be a list; write examples = […]
        #/$ref: `$ref` must be a string; write "$ref" = "…""##]],
    );
    check(
        &json!({"not": 1, "if": 1, "items": "x", "contains": null, "minContains": -1}),
        &expect![[r##"
        #/minContains: `minContains` must be a whole number that is not negative; write minContains = 1
        #/items: a schema must be a table, or true or false; write { type = "…" }
        #/contains: a schema must be a table, or true or false; write { type = "…" }
        #/not: a schema must be a table, or true or false; write { type = "…" }
        #/if: a schema must be a table, or true or false; write { type = "…" }"##]],
    );
}

#[test]
fn what_is_not_supported_is_refused_with_what_to_write_instead() {
    check(
        &json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
        &expect![[
            r##"#/$schema: only JSON Schema 2020-12 is supported; leave it out, or write "$schema" = "https://json-schema.org/draft/2020-12/schema""##
        ]],
    );
    check(
        &json!({"items": {"$dynamicRef": "#a", "$dynamicAnchor": "a"}}),
        &expect![[r#"
        #/items/$dynamicAnchor: `$dynamicAnchor` is not supported; use $anchor
        #/items/$dynamicRef: `$dynamicRef` is not supported; use $ref"#]],
    );
    check(
        &json!({"$recursiveRef": "#", "$recursiveAnchor": true}),
        &expect![[r#"
        #/$recursiveAnchor: `$recursiveAnchor` is not supported; leave it out
        #/$recursiveRef: `$recursiveRef` is not supported; use $ref"#]],
    );
    check(
        &json!({"dependencies": {}, "additionalItems": false, "items": [{}]}),
        &expect![[r#"
        #/additionalItems: `additionalItems` is not supported; list the first items in prefixItems, and describe the others in items
        #/dependencies: `dependencies` is not supported; use dependentRequired or dependentSchemas
        #/items: `items` must be one schema; use prefixItems for the first items, and items for the others"#]],
    );
    check(
        &json!({"$id": "https://example.org/a", "properties": {"a": {"$id": "b"}}}),
        &expect![
            "#/properties/a/$id: `$id` is supported only for the schema as a whole; leave it out; refer to this place by its path, or give it an $anchor"
        ],
    );
    check(
        &json!({"format": "emial"}),
        &expect![
            "#/format: the format `emial` is not checked, so it would let every text pass; write a pattern, or use one of: date, date-time, duration, email, hostname, ipv4, ipv6, json-pointer, regex, relative-json-pointer, time, uri, uri-reference, uuid"
        ],
    );
    for format in ["idn-email", "idn-hostname", "iri", "iri-reference", "uri-template"] {
        assert!(refused(&json!({"format": format})).contains("is not checked"), "{format}");
    }
}

#[test]
fn a_reference_to_nothing_or_to_elsewhere_is_refused() {
    check(
        &json!({"$ref": "https://example.org/risk.json"}),
        &expect![[
            r##"#/$ref: `$ref` must point inside this schema; copy the other schema into $defs, and write "$ref" = "#/$defs/name""##
        ]],
    );
    check(
        &json!({"$ref": "other"}),
        &expect![[
            r##"#/$ref: `$ref` must point inside this schema; copy the other schema into $defs, and write "$ref" = "#/$defs/name""##
        ]],
    );
    check(
        &json!({"$ref": "#/$defs/a", "$defs": {"b": {}}}),
        &expect!["#/$ref: `$ref` points to `#/$defs/a`, where there is no schema; correct it, or add the schema there"],
    );
    check(
        &json!({"$ref": "#name"}),
        &expect!["#/$ref: `$ref` points to `#name`, where there is no schema; correct it, or add the schema there"],
    );
    check(
        &json!({"$ref": "#/$defs/a/type", "$defs": {"a": {"type": "null"}}}),
        &expect![
            "#/$ref: `$ref` points to `#/$defs/a/type`, where there is no schema; correct it, or add the schema there"
        ],
    );
    check(
        &json!({"$ref": "#/allOf/01", "allOf": [{}, {}]}),
        &expect![
            "#/$ref: `$ref` points to `#/allOf/01`, where there is no schema; correct it, or add the schema there"
        ],
    );
    check(
        &json!({"$anchor": "1a"}),
        &expect![[
            r##"#/$anchor: this is not a valid name for an anchor; begin it with a letter, and use letters, digits, "-", "." and "_""##
        ]],
    );
    check(
        &json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}),
        &expect!["#/$defs/a/$anchor: the anchor `x` is given more than once; choose another name"],
    );
}

#[test]
fn a_reference_that_leads_back_to_itself_for_the_same_value_is_refused() {
    check(
        &json!({"$ref": "#"}),
        &expect![
            "#/$ref: this `$ref` leads back to itself for the same value; refer to it from properties or items, or leave it out"
        ],
    );
    check(
        &json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        &expect![
            "#/$defs/a/allOf/0/$ref: this `$ref` leads back to itself for the same value; refer to it from properties or items, or leave it out"
        ],
    );
    check(
        &json!({"if": {"anyOf": [{"$ref": "#"}]}}),
        &expect![
            "#/if/anyOf/0/$ref: this `$ref` leads back to itself for the same value; refer to it from properties or items, or leave it out"
        ],
    );
    check(
        &json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        &expect![
            "#/dependentSchemas/a/$ref: this `$ref` leads back to itself for the same value; refer to it from properties or items, or leave it out"
        ],
    );
    check(
        &json!({"properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}, "propertyNames": {"$ref": "#"}}),
        &expect![""],
    );
}

#[test]
fn a_long_row_of_schemas_for_one_value_is_refused() {
    let row = |length: usize| (1..length).fold(json!({"type": "null"}), |inner, _| json!({ "not": inner }));
    assert_eq!(refused(&row(SCHEMA_CHAIN_MAX)), "");
    check(
        &row(SCHEMA_CHAIN_MAX + 1),
        &expect!["#: too many schemas are nested here for the same value; combine some of them"],
    );
    // Far more than the stack could take.
    let mut links: serde_json::Map<String, Value> =
        (0..20_000).map(|n| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}))).collect();
    links.insert("d20000".to_owned(), json!(true));
    assert!(refused(&json!({ "$defs": links })).contains("too many schemas are nested"));
    // From its end, each link is one more than the last.
    let mut links: serde_json::Map<String, Value> = (1..=SCHEMA_CHAIN_MAX)
        .map(|n| (format!("d{n:02}"), json!({"$ref": format!("#/$defs/d{:02}", n - 1)})))
        .collect();
    links.insert("d00".to_owned(), json!(true));
    assert!(refused(&json!({ "$defs": links })).contains("#/$defs/d64: too many schemas are nested"));
}

#[test]
fn a_pattern_that_is_invalid_or_too_large_is_refused() {
    check(
        &json!({"pattern": "(a"}),
        &expect![
            "#/pattern: this pattern cannot be used: unclosed group; correct or shorten it; look-around and backreferences are not supported"
        ],
    );
    check(
        &json!({"pattern": "(?=a)"}),
        &expect![
            "#/pattern: this pattern cannot be used: look-around, including look-ahead and look-behind, is not supported; correct or shorten it; look-around and backreferences are not supported"
        ],
    );
    check(
        &json!({"patternProperties": {"^a": {}, "[": {}}}),
        &expect![
            "#/patternProperties/[: this pattern cannot be used: unclosed character class; correct or shorten it; look-around and backreferences are not supported"
        ],
    );
    check(
        &json!({"pattern": "((a{100}){100}){100}"}),
        &expect![
            "#/pattern: this pattern cannot be used: its repetitions are too large; correct or shorten it; look-around and backreferences are not supported"
        ],
    );
    check(
        &json!({"pattern": "a".repeat(PATTERN_BYTES_MAX + 1)}),
        &expect![
            "#/pattern: this pattern cannot be used: it has more than 8192 bytes; correct or shorten it; look-around and backreferences are not supported"
        ],
    );
    assert_eq!(refused(&json!({"pattern": "^[\\p{L}\\p{M} .'-]{1,200}$"})), "");
    assert_eq!(refused(&json!({"pattern": "^[\\s\\S]{0,20000}$"})), "");
    check(
        &json!({"pattern": "\\p{L}".repeat(334)}),
        &expect![
            "#/pattern: this pattern cannot be used: it has too many classes; correct or shorten it; look-around and backreferences are not supported"
        ],
    );
    // Each is small; all of them are not.
    let many: Vec<_> = (0..600).map(|n| json!({"pattern": format!("^[a-z]{{0,90}}{n}$")})).collect();
    assert!(refused(&json!({ "allOf": many })).contains("its repetitions are too large"));
}

#[test]
fn all_findings_are_listed_at_once_up_to_a_limit() {
    let many: serde_json::Map<String, Value> = (0..500).map(|n| (format!("m{n}"), json!({"type": n}))).collect();
    assert_eq!(refused(&json!({ "properties": many })).lines().count(), FAULTS_MAX);
}
