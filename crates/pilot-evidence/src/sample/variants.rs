//! Definitions other than the built-in ones, so that verifiers are compared on more than two.

use pilot_core::workflow::builtin::CONTROLLED_OPERATION;
use serde_json::{Value, json};

use super::{CAST, Choose, Ledger, role_map};

/// What a payload may have as `extra`: schemas in TOML.
const SCHEMAS: [&str; 24] = [
    r#"type = "integer"
minimum = 1
multipleOf = 0.5"#,
    r#"type = ["number", "null"]
exclusiveMaximum = 10.5"#,
    r#"multipleOf = 0.1"#,
    r#"enum = [1, "a", [1, 2], { a = 1.0 }]"#,
    r#"const = 2"#,
    r#"type = "string"
minLength = 2
maxLength = 3"#,
    r#"pattern = '^[a-c]+\d?$'"#,
    r#"pattern = '^\s\S$'"#,
    r#"type = "array"
uniqueItems = true
minItems = 1
maxItems = 3"#,
    r#"contains = { type = "integer" }
minContains = 1
maxContains = 2"#,
    r#"prefixItems = [{ type = "string" }, { type = "integer" }]
items = { type = "boolean" }"#,
    r#"required = ["a"]
properties = { a = { type = "integer" }, b = { type = "string" } }
additionalProperties = false"#,
    r#"patternProperties = { "^a" = { type = "integer" } }
additionalProperties = { type = "string" }"#,
    r#"allOf = [{ properties = { a = { type = "integer" } } }, { properties = { b = true } }]
unevaluatedProperties = false"#,
    r#"oneOf = [{ type = "integer" }, { minimum = 2 }]"#,
    r#"anyOf = [{ type = "string", maxLength = 1 }, { type = "integer" }]
not = { const = 1 }"#,
    r#"if = { type = "object", required = ["a"] }
then = { required = ["b"] }
else = { type = ["string", "object"] }"#,
    r#"propertyNames = { maxLength = 1 }
minProperties = 1
dependentRequired = { a = ["b"] }"#,
    r##""$ref" = "#/$defs/short""##,
    r#"dependentSchemas = { a = { properties = { b = { const = 1 } } } }
maxProperties = 2"#,
    r#"prefixItems = [true]
unevaluatedItems = { type = "string" }"#,
    r#"format = "uri""#,
    r#"format = "date-time""#,
    r#"anyOf = [{ format = "email" }, { format = "hostname" }, { format = "duration" }, { format = "uuid" }]"#,
];

/// Values for it, of every type and on either side of every bound above.
pub(super) fn extra(choose: Choose<'_>) -> Value {
    let values = json!([
        null, true, 0, 1, 2, 3, 10, 10.5, -1, 0.3, 0.35, 1e21, "", "a", "ab", "abc", "abcd", "c7", "a\n", " x", "\u{a0}x",
        "\u{feff}\u{feff}", "é", [], [1], [1, 2], [1, 1.5, 1], ["a"], ["a", 1], ["a", 1, true], ["a", 1, "x"], ["a", "b"],
        [1, 2, 3], [1, 2, 3, 4], {}, {"a": 1}, {"a": "1"}, {"b": "x"}, {"a": 1, "b": "x"}, {"a": 1, "b": 1}, {"c": 1},
        {"aa": 1}, {"ab": "x"}, {"a": 1, "b": 2, "c": 3}, "https://example.org/a?b#c", "https://[::1]:80/", "//x", "a:b",
        "http://a b", "2026-11-15T09:30:00Z", "2026-02-29T09:30:00Z", "2026-11-15T23:59:60Z", "2026-11-15T09:30:60Z",
        "2026-11-15 09:30:00Z", "ana@example.org", "P3DT4H", "P1Y2D", "PT", "P2W", "-a.example", "a--b", "xn--a",
        "01890a5d-ac96-774b-bcce-b302099a8057", "Ana <ana@example.org>", "a@[127.0.0.1]"
    ]);
    let values = values.as_array().unwrap();
    values[choose(values.len())].clone()
}

/// Of members that a finished payload must have: the prover asks for that.
const QUORUMS: [&str; 4] = [
    r#"quorum_if = { pointer = "/risk", equals = "high", quorum = 2 }"#,
    r#"quorum_if = { pointer = "/risk", equals = "low", quorum = 2 }"#,
    r#"quorum_if = { pointer = "/operation", equals = { host = "hsm-1", run = "rotate-key --slot 2" }, quorum = 2 }"#,
    r#"quorum_if = { pointer = "/purpose", equals = 1, quorum = 2 }"#,
];

/// Adds a definition that differs from the built-in one. It has the same name and version, and is in force from now on
/// or only wrongly used.
pub(super) fn define(ledger: &mut Ledger, choose: Choose<'_>) {
    let schema = SCHEMAS[choose(SCHEMAS.len())];
    let extra =
        format!("[payload_schema.properties.extra]\n{schema}\n\n[payload_schema.\"$defs\".short]\nmaxLength = 2\n\n");
    let links = "[payload_schema.properties.links]";
    let text = CONTROLLED_OPERATION.replace(links, &format!("{extra}{links}"));
    let text = text.replace(QUORUMS[0], QUORUMS[choose(QUORUMS.len())]);
    let text = text.replace("max = \"30d\"", ["max = \"30d\"", "max = \"2h\""][choose(2)]);
    let text = text.replace("attempts = 3", ["attempts = 3", "attempts = 1"][choose(2)]);
    ledger.define(&text);
    if choose(4) > 0 {
        ledger.start(Some(&role_map(&CAST)));
    }
}
