//! Each keyword, by example.

use super::{Both, json};

/// Payloads are separated by spaces where that is unambiguous: one JSON text after another.
#[track_caller]
fn check(schema: &str, valid: &str, invalid: &str) {
    let both = Both::of(json(schema));
    let payloads =
        |text: &str| -> Vec<_> { serde_json::Deserializer::from_str(text).into_iter().map(Result::unwrap).collect() };
    for payload in payloads(valid) {
        assert!(both.agree(&payload), "{schema} should accept {payload}");
    }
    for payload in payloads(invalid) {
        assert!(!both.agree(&payload), "{schema} should refuse {payload}");
    }
}

#[test]
fn types_and_values() {
    check("{}", "1 null {} []", "");
    check("true", "1 null {} []", "");
    check("false", "", "1 null {} []");
    check(r#"{"type":"integer"}"#, "1 1.0 -3 1e3 9007199254740991", r#"1.5 "1" null true [] {}"#);
    check(r#"{"type":"number"}"#, "1 1.5 -0.0", r#""1" null"#);
    check(r#"{"type":["null","boolean"]}"#, "null true false", r#"0 "" [] {}"#);
    check(r#"{"type":["array","object","string"]}"#, r#"[] {} """#, "0 null false");
    check(r#"{"const":1}"#, "1 1.0", r#"2 "1" true [1]"#);
    check(r#"{"const":{"a":[1.0,{"b":null}]}}"#, r#"{"a":[1,{"b":null}]}"#, r#"{"a":[1]} {} {"a":[{"b":null},1]}"#);
    check(r#"{"const":null}"#, "null", r#"0 "" false [] {}"#);
    check(r#"{"const":false}"#, "false", "0 null true []");
    check(r#"{"enum":["a",2,null,[],{"b":1}]}"#, r#""a" 2 2.0 null [] {"b":1.0}"#, r#""b" 0 false [0] {"b":2} {}"#);
    check(r#"{"enum":[]}"#, "", "1 null");
}

#[test]
fn numbers() {
    check(r#"{"minimum":1.1}"#, r#"1.1 2 "0""#, "1 1.09 -5");
    check(r#"{"maximum":3}"#, "3 3.0 -1 2.9999", "3.0001 4");
    check(r#"{"exclusiveMinimum":0}"#, "1 0.0001", "0 -0.0 -1");
    check(r#"{"exclusiveMaximum":1e2}"#, "99.999 -100", "100 100.0 101");
    check(r#"{"multipleOf":0.01}"#, "0 0.01 19.99 4.35 1070468.14 -7.5 100", "0.001 0.015 3.14159");
    check(r#"{"multipleOf":3}"#, "0 3 -9 6.0 9007199254740990", "1 3.5 9007199254740991");
    check(r#"{"multipleOf":1e-7}"#, "1e-7 3e-7 1 0.5", "1e-8 1.5e-7");
    check(r#"{"multipleOf":2.5}"#, "0 2.5 5 7.5", "1 2.4");
}

#[test]
fn texts() {
    check(r#"{"minLength":2}"#, r#""ab" "äö" "😀😀" 1"#, r#""" "a" "😀""#);
    check(r#"{"maxLength":2.0}"#, r#""" "ab" "😀😀" []"#, r#""abc" "😀😀😀""#);
    check(r#"{"pattern":"^a+$"}"#, r#""a" "aaa" 1"#, r#""" "ab" "ba""#);
    check(r#"{"pattern":"\\S"}"#, r#""x" "  x ""#, r#""" " " "\t\n\u00a0\ufeff""#);
    check(r#"{"pattern":"\\d{2}"}"#, r#""12" "a1234""#, r#""1" "٣٣""#);
}

#[test]
fn lists() {
    check(r#"{"minItems":1,"maxItems":2}"#, "[1] [1,2] {}", "[] [1,2,3]");
    check(r#"{"uniqueItems":true}"#, r#"[] [1,2] [1,"1",true,null,[],{}] [{"a":1},{"a":2}]"#, r#"[1,1.0] [[1],[1.0]]"#);
    check(r#"{"uniqueItems":true}"#, "[0,false] [[0],[false]]", r#"[{"a":1,"b":2},{"b":2,"a":1}] [null,1,null]"#);
    check(r#"{"uniqueItems":false}"#, "[1,1]", "");
    check(r#"{"items":{"type":"string"}}"#, r#"[] ["a"] 1"#, r#"[1] ["a",1]"#);
    check(r#"{"prefixItems":[{"type":"string"},{"type":"number"}]}"#, r#"[] ["a"] ["a",1,true]"#, r#"[1] ["a","b"]"#);
    check(r#"{"prefixItems":[true],"items":false}"#, "[] [1]", "[1,2]");
    check(r#"{"prefixItems":[true],"items":{"type":"null"}}"#, "[1,null,null]", "[null,1]");
    check(r#"{"contains":{"type":"number"}}"#, r#"["a",1] {} 1"#, r#"[] ["a"]"#);
    check(r#"{"contains":{"type":"number"},"minContains":2}"#, "[1,2] [1,null,3]", "[] [1] [1,null]");
    check(r#"{"contains":{"type":"number"},"maxContains":1}"#, "[1] [1,null]", "[] [1,2]");
    check(r#"{"contains":{"type":"number"},"minContains":0,"maxContains":1}"#, "[] [1] [null]", "[1,2]");
    check(r#"{"contains":false,"minContains":0}"#, "[] [1]", "");
    check(r#"{"minContains":5,"maxContains":0}"#, "[] [1]", "");
}

#[test]
fn members() {
    check(r#"{"minProperties":1,"maxProperties":2}"#, r#"{"a":1} {"a":1,"b":2} []"#, r#"{} {"a":1,"b":2,"c":3}"#);
    check(r#"{"required":["a","b"]}"#, r#"{"a":1,"b":null} []"#, r#"{} {"a":1} {"b":1}"#);
    check(
        r#"{"dependentRequired":{"a":["b","c"],"d":[]}}"#,
        r#"{} {"b":1} {"a":1,"b":1,"c":1} {"d":1}"#,
        r#"{"a":1,"b":1}"#,
    );
    check(r#"{"dependentSchemas":{"a":{"required":["b"]}}}"#, r#"{} {"b":1} {"a":1,"b":1} []"#, r#"{"a":1}"#);
    check(r#"{"properties":{"a":{"type":"string"},"b":false}}"#, r#"{} {"a":"x","c":1} []"#, r#"{"a":1} {"b":1}"#);
    check(r#"{"patternProperties":{"^x-":{"type":"string"}}}"#, r#"{"x-a":"b","y":1}"#, r#"{"x-a":1}"#);
    check(
        r#"{"properties":{"x-a":{"minLength":2}},"patternProperties":{"^x":{"maxLength":3}}}"#,
        r#"{"x-a":"ab"}"#,
        r#"{"x-a":"a"} {"x-a":"abcd"}"#,
    );
    check(
        r#"{"properties":{"a":true},"patternProperties":{"^x":true},"additionalProperties":false}"#,
        r#"{"a":1,"xy":2}"#,
        r#"{"b":1}"#,
    );
    check(r#"{"properties":{"a":true},"additionalProperties":{"type":"null"}}"#, r#"{"a":1,"b":null}"#, r#"{"b":1}"#);
    check(r#"{"additionalProperties":false}"#, "{} [1]", r#"{"a":1}"#);
    check(r#"{"propertyNames":{"maxLength":2}}"#, r#"{"ab":1} {}"#, r#"{"abc":1}"#);
    check(r#"{"propertyNames":{"enum":["a"]}}"#, r#"{"a":1} {}"#, r#"{"b":1}"#);
    check(r#"{"propertyNames":false}"#, "{} []", r#"{"":1}"#);
    check(r##"{"propertyNames":{"$ref":"#"},"minLength":2}"##, r#"{"ab":1} "ab""#, r#"{"a":1} "a""#);
}

#[test]
fn combinations() {
    check(r#"{"allOf":[{"minimum":1},{"maximum":3}]}"#, "1 2 3 null", "0 4");
    check(r#"{"anyOf":[{"minimum":3},{"type":"string"}]}"#, r#"3 "a" null"#, "2");
    check(r#"{"oneOf":[{"minimum":3},{"multipleOf":2}]}"#, "3 2", "1 4 null");
    check(r#"{"not":{"type":"number"}}"#, r#""a" null"#, "1");
    check(r#"{"not":{"not":{"type":"number"}}}"#, "1", r#""a""#);
    let conditional = r#"{"if":{"minimum":10},"then":{"multipleOf":5},"else":{"maximum":3}}"#;
    check(conditional, "10 15 3", "11 4");
    check(r#"{"if":{"minimum":10},"then":false}"#, "3", "11 null");
    check(r#"{"if":{"minimum":10},"else":false}"#, "11", "3");
    check(r#"{"then":false,"else":false}"#, "1 null", "");
    check(r#"{"if":false}"#, "1", "");
}

#[test]
fn references() {
    check(r##"{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}"##, r#""a""#, "1");
    check(r##"{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","minLength":2}"##, r#""ab""#, r#"1 "a""#);
    check(r##"{"definitions":{"a/b":{"c~d":{"type":"null"}}},"$ref":"#/definitions/a~1b/c~0d"}"##, "null", "1");
    check(r##"{"$defs":{"a b%":{"type":"null"}},"$ref":"#/$defs/a%20b%25"}"##, "null", "1");
    check(r##"{"$defs":{"x":{"$anchor":"here","type":"null"}},"$ref":"#here"}"##, "null", "1");
    check(
        r##"{"properties":{"a":{"$anchor":"_a.b-1","type":"null"},"b":{"$ref":"#_a.b-1"}}}"##,
        r#"{"b":null}"#,
        r#"{"b":1}"#,
    );
    check(
        r##"{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}"##,
        r#"{"a":{"a":{}}} 1"#,
        r#"{"a":{"b":1}}"#,
    );
    check(r##"{"prefixItems":[{"type":"string"}],"items":{"$ref":"#/prefixItems/0"}}"##, r#"["a","b"]"#, r#"["a",1]"#);
    check(
        r##"{"$id":"https://example.org/x","$defs":{"a":false},"properties":{"b":{"$ref":"#/$defs/a"}}}"##,
        "{}",
        r#"{"b":1}"#,
    );
    check(r##"{"further":{"of":{"nobody":{"type":"null"}}},"$ref":"#/further/of/nobody"}"##, "null", "1");
    check(r##"{"properties":{"$ref":{"type":"string"}}}"##, r##"{"$ref":"#/nowhere"}"##, r#"{"$ref":1}"#);
    check(r##"{"const":{"$ref":"#/nowhere"}}"##, r##"{"$ref":"#/nowhere"}"##, "{}");
    check(
        r##"{"$defs":{"list":{"anyOf":[{"type":"null"},{"properties":{"next":{"$ref":"#/$defs/list"}},"required":["next"]}]}},"$ref":"#/$defs/list"}"##,
        r#"null {"next":{"next":null}}"#,
        r#"{} {"next":{}}"#,
    );
}

#[test]
fn what_nothing_else_has_judged() {
    check(r#"{"properties":{"a":true},"unevaluatedProperties":false}"#, r#"{"a":1} []"#, r#"{"b":1}"#);
    check(r#"{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}"#, r#"{"a":1}"#, r#"{"a":1,"b":1}"#);
    check(
        r#"{"anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":true}}],"unevaluatedProperties":false}"#,
        r#"{"a":1,"b":1} {"b":1}"#,
        r#"{"a":2} {"c":1}"#,
    );
    check(
        r#"{"oneOf":[{"properties":{"a":true},"required":["a"]},{"properties":{"b":true},"required":["b"]}],"unevaluatedProperties":false}"#,
        r#"{"a":1} {"b":1}"#,
        r#"{"a":1,"c":1} {}"#,
    );
    check(r#"{"not":{"properties":{"a":true},"required":["b"]},"unevaluatedProperties":false}"#, "{}", r#"{"a":1}"#);
    check(r#"{"not":{"not":{"properties":{"a":true}}},"unevaluatedProperties":false}"#, "{}", r#"{"a":1}"#);
    check(
        r#"{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":true}},"else":{"properties":{"c":true}},"unevaluatedProperties":false}"#,
        r#"{"a":1,"b":1} {"c":1}"#,
        r#"{"a":1,"c":1} {"a":2} {"b":1}"#,
    );
    check(
        r#"{"dependentSchemas":{"a":{"properties":{"a":true,"b":true}}},"unevaluatedProperties":false}"#,
        r#"{"a":1,"b":1} {}"#,
        r#"{"b":1}"#,
    );
    check(
        r##"{"$defs":{"a":{"properties":{"a":true}}},"$ref":"#/$defs/a","unevaluatedProperties":{"type":"null"}}"##,
        r#"{"a":1,"b":null}"#,
        r#"{"b":1}"#,
    );
    check(
        r#"{"patternProperties":{"^x":true},"additionalProperties":true,"unevaluatedProperties":false}"#,
        r#"{"x":1,"y":2}"#,
        "",
    );
    check(r#"{"allOf":[{"unevaluatedProperties":true}],"unevaluatedProperties":false}"#, r#"{"a":1}"#, "");
    check(r#"{"allOf":[{"properties":{"a":true}},{"unevaluatedProperties":false}]}"#, "{}", r#"{"a":1}"#);
    check(
        r#"{"properties":{"a":{"properties":{"b":true}}},"unevaluatedProperties":false}"#,
        r#"{"a":{"b":1,"c":1}}"#,
        r#"{"b":1}"#,
    );
    check(
        r#"{"properties":{"a":{"properties":{"b":true,"c":true}}},"unevaluatedProperties":false}"#,
        r#"{"a":{"b":1,"c":1,"d":1}}"#,
        r#"{"a":{"b":1,"c":1},"d":1}"#,
    );
    check(r#"{"prefixItems":[{"items":true}],"unevaluatedItems":false}"#, "[[1,2,3]]", "[[1,2,3],4]");
    check(r#"{"prefixItems":[true],"unevaluatedItems":false}"#, "[] [1] {}", "[1,2]");
    check(r#"{"items":true,"unevaluatedItems":false}"#, "[1,2]", "");
    check(r#"{"contains":{"type":"number"},"unevaluatedItems":{"type":"null"}}"#, "[1,null,2]", r#"[1,"a"] [null]"#);
    check(
        r#"{"allOf":[{"prefixItems":[true]},{"prefixItems":[true,true]}],"unevaluatedItems":false}"#,
        "[1,2]",
        "[1,2,3]",
    );
    check(
        r#"{"anyOf":[{"prefixItems":[{"const":1}]},{"prefixItems":[true,{"const":2}]}],"unevaluatedItems":false}"#,
        "[1] [1,2] [0,2]",
        "[1,3]",
    );
    check(r#"{"unevaluatedItems":{"type":"null"}}"#, "[null]", "[1]");
    check(
        r##"{"$defs":{"tree":{"properties":{"next":{"$ref":"#/$defs/tree"}},"unevaluatedProperties":false}},"$ref":"#/$defs/tree"}"##,
        r#"{"next":{"next":{}}}"#,
        r#"{"next":{"other":1}}"#,
    );
}

#[test]
fn annotations_and_unknown_keywords_judge_nothing() {
    let annotated = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","$comment":"c","title":"t","description":"d",
        "default":1,"examples":[1],"deprecated":true,"readOnly":true,"writeOnly":false,"contentEncoding":"base64",
        "contentMediaType":"application/json","contentSchema":{"type":"null"},"x-further":{"type":7},"discriminator":1}"#;
    check(annotated, r#"1 null "no base64""#, "");
}
