//! Strict JSON: duplicate keys, integers no double can hold, U+0000 and over-deep nesting are faults, each with its
//! place. The first faults are listed, and the rest are counted.
//!
//! The cost of reading is bounded by the given limits, not by the text: a value in memory is many times its bytes.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::fault::Fault;
use crate::limits::{FAULTS_MAX, POINTER_BYTES_MAX};

/// The largest integer that every JSON reader agrees on: 2^53 - 1.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// How much a document may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub depth: usize,
    /// Members and elements at every level, each counted as one.
    pub values: usize,
}

pub fn parse(bytes: &[u8], bounds: Bounds) -> Result<Value, Vec<Fault>> {
    let mut reading = Reading { path: Vec::new(), faults: Vec::new(), more: 0, bounds, values: 0, too_deep: false };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict(&mut reading).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(value) if reading.faults.is_empty() => return Ok(value),
        Ok(_) => {}
        Err(_) if reading.values > bounds.values => {
            reading.add(Fault::new("", format!("has more than {} values", bounds.values)));
        }
        Err(error) => {
            // The visitor accepts every type, so this is a syntax error, and its text contains no value.
            let place = format!("line {}, column {}", error.line(), error.column());
            reading.add(Fault::new("", format!("is not valid JSON at {place}: {}", syntax(&error))));
        }
    }
    if reading.more > 0 {
        reading.faults.push(Fault::new("", format!("has {} more faults", reading.more)));
    }
    Err(reading.faults)
}

/// The number that a double represents: an integer if it has no fraction, and 0 for -0.0. Canonical JSON writes `2.0`
/// as `2`, so this makes what is decided on the same as what is stored.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "whole, and at most 2^53 - 1")]
pub fn number(value: f64) -> Option<Number> {
    if value.fract() == 0.0 && value.abs() <= INTEGER_MAX as f64 {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

/// Only the reason: the caller adds the place.
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

/// Visits every string in `value`, member names included, with the pointer to its place.
pub fn for_each_text<'a>(value: &'a Value, visit: &mut impl FnMut(&str, &'a str)) {
    walk(value, &mut String::new(), visit);
}

/// `pointer` grows and shrinks along the way, because almost nobody needs it as a separate string.
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

/// One step on the way to a value. Names are kept as read; an index becomes text only when a fault needs it.
enum Step {
    Name(String),
    Index(usize),
}

struct Reading {
    path: Vec<Step>,
    faults: Vec<Fault>,
    /// Faults found but not kept.
    more: usize,
    bounds: Bounds,
    values: usize,
    too_deep: bool,
}

impl Reading {
    /// The pointer to the value itself, or to the nearest enclosing value whose pointer is not too long to show.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            let length = pointer.len();
            match step {
                Step::Name(name) => push(&mut pointer, name),
                Step::Index(index) => drop(write!(pointer, "/{index}")),
            }
            if pointer.len() > POINTER_BYTES_MAX {
                pointer.truncate(length);
                break;
            }
        }
        pointer
    }

    fn fault(&mut self, detail: &str) {
        if self.faults.len() < FAULTS_MAX {
            let pointer = self.pointer();
            self.faults.push(Fault::new(pointer, detail));
        } else {
            self.more += 1;
        }
    }

    /// For a fault that must be reported whatever was found before.
    fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    fn count<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.values += 1;
        if self.values > self.bounds.values { Err(E::custom("too many values")) } else { Ok(()) }
    }

    fn enter(&mut self, step: Step) {
        self.path.push(step);
        if self.path.len() > self.bounds.depth && !self.too_deep {
            self.too_deep = true;
            let detail = format!("is nested deeper than {} levels", self.bounds.depth);
            self.fault(&detail);
        }
    }

    fn leave(&mut self) -> Option<Step> {
        self.path.pop()
    }

    fn text(&mut self, text: &str) {
        if text.contains('\0') {
            self.fault("contains the character U+0000");
        }
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
            self.0.fault("is an integer beyond 2^53 - 1; send it as a string");
        }
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > INTEGER_MAX {
            self.0.fault("is an integer beyond 2^53 - 1; send it as a string");
        }
        Ok(value.into())
    }

    #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact as a double")]
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // An integer too long for 64 bits arrives as a double.
        if value.abs() > INTEGER_MAX as f64 {
            self.0.fault("is a number beyond 2^53 - 1; send it as a string");
        }
        // JSON has no infinities, and a number out of range is a syntax error.
        number(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        self.0.text(value);
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        self.0.text(&value);
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        loop {
            self.0.enter(Step::Index(elements.len()));
            let element = list.next_element_seed(Strict(self.0))?;
            self.0.leave();
            let Some(element) = element else { return Ok(Value::Array(elements)) };
            self.0.count()?;
            elements.push(element);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        let mut repeated = BTreeSet::new();
        while let Some(name) = object.next_key::<String>()? {
            self.0.count()?;
            self.0.enter(Step::Name(name));
            let member = object.next_value_seed(Strict(self.0))?;
            if let Some(Step::Name(name)) = self.0.path.last()
                && members.contains_key(name)
                && repeated.insert(name.clone())
            {
                self.0.fault("is given more than once");
            }
            // The name is taken back from the path, so it is allocated only once.
            if let Some(Step::Name(name)) = self.0.leave() {
                if name.contains('\0') {
                    self.0.fault("has a member whose name contains the character U+0000");
                }
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
        let verdict = match parse(text.as_bytes(), Bounds { depth: 4, values: 100 }) {
            Ok(value) => value.to_string(),
            Err(faults) => faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n"),
        };
        expected.assert_eq(&verdict);
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
        check("9007199254740992", expect!["(whole document): is an integer beyond 2^53 - 1; send it as a string"]);
        check("[-9007199254740992]", expect!["/0: is an integer beyond 2^53 - 1; send it as a string"]);
        check("[99999999999999999999]", expect!["/0: is a number beyond 2^53 - 1; send it as a string"]);
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
        assert!(parse("[".repeat(100_000).as_bytes(), Bounds { depth: 32, values: 1_000_000 }).is_err());
    }

    #[test]
    fn a_number_is_one_number_however_it_is_written() {
        check(
            "[2.0,2e0,-0.0,-0,0.0,1e2,-7.0,9007199254740991.0,2.5]",
            expect!["[2,2,0,0,0,100,-7,9007199254740991,2.5]"],
        );
        check("[9007199254740992.0]", expect!["/0: is a number beyond 2^53 - 1; send it as a string"]);
        assert_eq!(parse(b"-0", Bounds { depth: 1, values: 1 }).unwrap(), serde_json::json!(0));
    }

    #[test]
    fn text_and_names_with_u_0000_are_faults() {
        check(
            r#"{"a":"x\u0000y","b\u0000":1,"c":["\u0000"]}"#,
            expect![[r#"
                /a: contains the character U+0000
                (whole document): has a member whose name contains the character U+0000
                /c/0: contains the character U+0000"#]],
        );
    }

    #[test]
    fn more_values_than_allowed_are_refused_where_the_bound_is_passed() {
        let list = |length: usize| format!("[{}]", vec!["0"; length].join(","));
        assert!(parse(list(100).as_bytes(), Bounds { depth: 4, values: 100 }).is_ok());
        check(&list(101), expect!["(whole document): has more than 100 values"]);
        check(&format!("[{}", "{\"a\":[[]]},".repeat(60)), expect!["(whole document): has more than 100 values"]);
    }

    #[test]
    fn the_first_faults_are_told_and_the_rest_are_counted() {
        let text = format!("[{}]", vec!["9007199254740992"; 80].join(","));
        let faults = parse(text.as_bytes(), Bounds { depth: 4, values: 100 }).unwrap_err();
        assert_eq!(faults.len(), FAULTS_MAX + 1);
        assert_eq!(faults.last().unwrap().to_string(), "(whole document): has 30 more faults");
    }

    #[test]
    fn a_pointer_that_is_too_long_ends_at_what_is_around_the_fault() {
        let name = "n".repeat(700);
        let text = format!(r#"{{"a":{{"{name}":{{"{name}":9007199254740992}}}}}}"#);
        let faults = parse(text.as_bytes(), Bounds { depth: 4, values: 100 }).unwrap_err();
        assert_eq!(faults[0].pointer, format!("/a/{name}"));
    }

    #[test]
    fn every_text_is_visited_and_a_name_is_reported_at_its_object() {
        let value = parse(br#"{"a":{"deep":["x"]}}"#, Bounds { depth: 9, values: 9 }).unwrap();
        let mut seen = Vec::new();
        for_each_text(&value, &mut |pointer, text| seen.push(format!("{pointer}={text}")));
        assert_eq!(seen, ["=a", "/a=deep", "/a/deep/0=x"]);
    }
}
