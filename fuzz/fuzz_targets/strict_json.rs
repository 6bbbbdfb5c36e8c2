//! Strict JSON: what it accepts, every other reader understands the same way; it accepts nothing the others refuse; and
//! however large a text is, reading it stays cheap.
#![no_main]

mod cost;

use libfuzzer_sys::fuzz_target;
use pilot_core::json::{self, Bounds, INTEGER_MAX};
use pilot_core::limits::{BODY_BYTES_MAX, BODY_VALUES_MAX, FAULTS_MAX, POINTER_BYTES_MAX};
use serde_json::{Number, Value};

const DEPTH_MAX: usize = 32;
const BOUNDS: Bounds = Bounds { depth: DEPTH_MAX, values: BODY_VALUES_MAX };

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if let Some(list) = cost::grown(bytes, b",", BODY_BYTES_MAX - 2) {
        check(&[b"[", &*list, b"]"].concat());
    }
});

fn check(bytes: &[u8]) {
    match cost::bounded(bytes.len(), || json::parse(bytes, BOUNDS)) {
        Ok(strict) => {
            // A number is one number: `2.0` is read as `2`, which another reader takes for something else.
            let lenient = serde_json::from_slice(bytes).map(normalised);
            assert_eq!(Some(&strict), lenient.as_ref().ok());
            let mut values = 0;
            look(&strict, 0, &mut values);
            assert!(values <= BODY_VALUES_MAX);
            let written = strict.to_string();
            assert_eq!(json::parse(written.as_bytes(), BOUNDS).as_ref(), Ok(&strict));
        }
        Err(faults) => {
            assert!(!faults.is_empty(), "a refusal gives its reasons");
            // The kept ones, one that must be heard, and the count of the rest.
            assert!(faults.len() <= FAULTS_MAX + 2);
            assert!(faults.iter().all(|fault| fault.pointer.len() <= POINTER_BYTES_MAX));
        }
    }
}

fn look(value: &Value, depth: usize, values: &mut usize) {
    assert!(depth <= DEPTH_MAX);
    match value {
        Value::Array(list) => list.iter().for_each(|element| {
            *values += 1;
            look(element, depth + 1, values);
        }),
        Value::Object(members) => members.values().for_each(|member| {
            *values += 1;
            look(member, depth + 1, values);
        }),
        Value::Number(number) => assert!(number.as_f64().is_some_and(|number| number.abs() <= INTEGER_MAX as f64)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// With every fraction-free double written as the integer it is.
fn normalised(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(normalised).collect(),
        Value::Object(members) => members.into_iter().map(|(name, member)| (name, normalised(member))).collect(),
        Value::Number(number) => Value::Number(one(number)),
        other => other,
    }
}

fn one(number: Number) -> Number {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(double) if double.fract() == 0.0 && double.abs() <= INTEGER_MAX as f64 => Number::from(double as i64),
        _ => number,
    }
}
