//! JSON, read strictly: duplicate keys, integers no double can hold and over-deep nesting are faults, each with its
//! place, and all of them are reported at once.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::fault::Fault;

/// The largest integer that every JSON reader agrees on: 2^53 - 1.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

pub fn parse(bytes: &[u8], depth_max: usize) -> Result<Value, Vec<Fault>> {
    let mut reading = Reading { path: Vec::new(), faults: Vec::new(), depth_max, too_deep: false };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict(&mut reading).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(value) if reading.faults.is_empty() => Ok(value),
        Ok(_) => Err(reading.faults),
        Err(error) => {
            // The visitor takes every type, so this is a syntax error, and its text holds no value.
            let place = format!("line {}, column {}", error.line(), error.column());
            reading.faults.push(Fault::new("", format!("is not valid JSON at {place}: {}", syntax(&error))));
            Err(reading.faults)
        }
    }
}

/// The reason alone: the place is said by the caller.
fn syntax(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or("syntax error").to_owned()
}

/// A JSON pointer made of `parent` and one more name.
pub fn join(parent: &str, name: &str) -> String {
    let mut pointer = parent.to_owned();
    push(&mut pointer, name);
    pointer
}

/// What a JSON pointer leads to. The library's own copies every name on the way; almost none needs that.
pub fn at<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    let mut names = pointer.split('/');
    if pointer.contains('~') || names.next() != Some("") {
        return value.pointer(pointer);
    }
    names.try_fold(value, |value, name| match value {
        Value::Object(members) => members.get(name),
        other => other.pointer(&format!("/{name}")),
    })
}

/// Every text in `value`, member names included, with the pointer to where it stands.
pub fn for_each_text<'a>(value: &'a Value, visit: &mut impl FnMut(&str, &'a str)) {
    walk(value, &mut String::new(), visit);
}

/// `pointer` grows and shrinks with the place: almost always nobody wants to see it.
fn walk<'a>(value: &'a Value, pointer: &mut String, visit: &mut impl FnMut(&str, &'a str)) {
    let length = pointer.len();
    match value {
        Value::String(text) => visit(pointer, text),
        Value::Array(list) => {
            for (index, element) in list.iter().enumerate() {
                let _ = write!(pointer, "/{index}");
                walk(element, pointer, visit);
                pointer.truncate(length);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                // A name is reported at its object, so that a pointer never repeats what was found in the name.
                visit(pointer, name);
                push(pointer, name);
                walk(member, pointer, visit);
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn push(pointer: &mut String, name: &str) {
    pointer.push('/');
    for character in name.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

struct Reading {
    path: Vec<String>,
    faults: Vec<Fault>,
    depth_max: usize,
    too_deep: bool,
}

impl Reading {
    fn pointer(&self) -> String {
        self.path.iter().fold(String::new(), |mut pointer, name| {
            push(&mut pointer, name);
            pointer
        })
    }

    fn fault(&mut self, detail: &str) {
        let pointer = self.pointer();
        self.faults.push(Fault::new(pointer, detail));
    }

    fn enter(&mut self, name: String) {
        self.path.push(name);
        if self.path.len() > self.depth_max && !self.too_deep {
            self.too_deep = true;
            let detail = format!("is nested deeper than {} levels", self.depth_max);
            self.fault(&detail);
        }
    }

    fn leave(&mut self) -> Option<String> {
        self.path.pop()
    }
}

struct Strict<'a>(&'a mut Reading);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        if value > INTEGER_MAX {
            self.0.fault("is an integer beyond 2^53 - 1; send it as text");
        }
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > INTEGER_MAX {
            self.0.fault("is an integer beyond 2^53 - 1; send it as text");
        }
        Ok(value.into())
    }

    #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact as a double")]
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // An integer too long for 64 bits arrives as a double.
        if value.abs() > INTEGER_MAX as f64 {
            self.0.fault("is a number beyond 2^53 - 1; send it as text");
        }
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        loop {
            self.0.enter(elements.len().to_string());
            let element = list.next_element_seed(Strict(self.0))?;
            self.0.leave();
            match element {
                Some(element) => elements.push(element),
                None => return Ok(Value::Array(elements)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        let mut repeated = BTreeSet::new();
        while let Some(name) = object.next_key::<String>()? {
            self.0.enter(name);
            let member = object.next_value_seed(Strict(self.0))?;
            let again = self.0.path.last().filter(|name| members.contains_key(*name));
            if again.is_some_and(|name| repeated.insert(name.clone())) {
                self.0.fault("is given more than once");
            }
            // The name comes back from the path: it is made once.
            if let Some(name) = self.0.leave() {
                members.insert(name, member);
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[expect(clippy::needless_pass_by_value, reason = "expect![] reads best as the last argument")]
    fn check(text: &str, expected: Expect) {
        let verdict = match parse(text.as_bytes(), 4) {
            Ok(value) => value.to_string(),
            Err(faults) => faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n"),
        };
        expected.assert_eq(&verdict);
    }

    #[test]
    fn a_pointer_leads_where_the_library_says_it_leads() {
        let value = serde_json::json!({"a": {"b": [1, {"c": 2}], "": 3}, "x/y": {"m~n": 4}, "0": 5});
        for pointer in [
            "",
            "/",
            "a",
            "/a",
            "/a/b",
            "/a/b/0",
            "/a/b/1/c",
            "/a/b/01",
            "/a/b/9",
            "/a/b/x",
            "/a/",
            "/a//",
            "/0",
            "/x~1y",
            "/x~1y/m~0n",
            "/x/y",
            "/missing/a",
            "/a/b/0/c",
            "//a",
        ] {
            assert_eq!(at(&value, pointer), value.pointer(pointer), "{pointer}");
        }
    }

    #[test]
    fn plain_json_is_read_as_it_stands() {
        check(r#" {"a":[1,-2,2.5,"x",null,true]} "#, expect![[r#"{"a":[1,-2,2.5,"x",null,true]}"#]]);
        check("9007199254740991", expect!["9007199254740991"]);
        check("19192.010001285885910", expect!["19192.010001285886"]);
    }

    #[test]
    fn every_duplicate_key_is_found_with_its_place() {
        check(
            r#"{"a":1,"b":[{"c/d":1,"c/d":2}],"a":3,"a":4}"#,
            expect![[r#"
                /b/0/c~1d: is given more than once
                /a: is given more than once"#]],
        );
    }

    #[test]
    fn integers_that_a_double_cannot_hold_are_faults() {
        check("9007199254740992", expect!["(whole document): is an integer beyond 2^53 - 1; send it as text"]);
        check("[-9007199254740992]", expect!["/0: is an integer beyond 2^53 - 1; send it as text"]);
        check("[99999999999999999999]", expect!["/0: is a number beyond 2^53 - 1; send it as text"]);
    }

    #[test]
    fn lone_surrogates_and_other_syntax_errors_are_faults() {
        check(
            r#"["\ud800"]"#,
            expect!["(whole document): is not valid JSON at line 1, column 9: unexpected end of hex escape"],
        );
        check("{} x", expect!["(whole document): is not valid JSON at line 1, column 4: trailing characters"]);
        check("", expect!["(whole document): is not valid JSON at line 1, column 0: EOF while parsing a value"]);
        check("[1e999]", expect!["(whole document): is not valid JSON at line 1, column 6: number out of range"]);
    }

    #[test]
    fn nesting_deeper_than_allowed_is_a_fault() {
        check("[[[[1]]]]", expect!["[[[[1]]]]"]);
        check("[[[[[1]]]]]", expect!["/0/0/0/0/0: is nested deeper than 4 levels"]);
        assert!(parse("[".repeat(100_000).as_bytes(), 32).is_err());
    }

    #[test]
    fn every_text_is_visited_and_a_name_is_reported_at_its_object() {
        let value = parse(br#"{"a":{"deep":["x"]}}"#, 9).unwrap();
        let mut seen = Vec::new();
        for_each_text(&value, &mut |pointer, text| seen.push(format!("{pointer}={text}")));
        assert_eq!(seen, ["=a", "/a=deep", "/a/deep/0=x"]);
    }
}
