//! Strict JSON: what it accepts, every other reader understands the same way; it accepts nothing the others refuse.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilot_core::json::{self, INTEGER_MAX};
use serde_json::Value;

const DEPTH_MAX: usize = 32;

fuzz_target!(|bytes: &[u8]| {
    let lenient: Result<Value, _> = serde_json::from_slice(bytes);
    match json::parse(bytes, BOUNDS) {
        Ok(strict) => {
            assert_eq!(Some(&strict), lenient.as_ref().ok());
            check(&strict, 0);
            let written = strict.to_string();
            assert_eq!(json::parse(written.as_bytes(), BOUNDS).as_ref(), Ok(&strict));
        }
        Err(faults) => assert!(!faults.is_empty(), "a refusal gives its reasons"),
    }
});

fn check(value: &Value, depth: usize) {
    assert!(depth <= DEPTH_MAX);
    match value {
        Value::Array(list) => list.iter().for_each(|element| check(element, depth + 1)),
        Value::Object(members) => members.values().for_each(|member| check(member, depth + 1)),
        Value::Number(number) => assert!(number.as_f64().is_some_and(|number| number.abs() <= INTEGER_MAX as f64)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
