//! A payload schema on the first line, and a payload on the next. What both accept as a schema, our judge and the crate
//! `jsonschema` judge alike; and ours costs no more than it may.
#![no_main]

mod cost;

use std::time::Duration;

use jsonschema::{PatternOptions, Validator};
use libfuzzer_sys::fuzz_target;
use pilot_core::json::{self, Bounds};
use pilot_core::limits::{BODY_VALUES_MAX, FAULTS_MAX, PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX};
use pilot_core::workflow::PayloadSchema;
use serde_json::Value;

const BOUNDS: Bounds = Bounds { depth: PAYLOAD_DEPTH_MAX, values: BODY_VALUES_MAX };
/// All steps that a check may take, with counters and overflow checks.
const TIME_MAX: Duration = Duration::from_secs(1);

/// Where the other one is known to be wrong, or to look closer: it takes some signs for the digits of a date, and decodes
/// names in Punycode.
const JUDGED_OTHERWISE: [&str; 5] = ["date", "date-time", "time", "hostname", "email"];

fuzz_target!(|text: &[u8]| {
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else { return };
    let (schema, payload) = text.split_at(end);
    let (Ok(schema), Ok(payload)) = (json::parse(schema, BOUNDS), json::parse(payload, BOUNDS)) else { return };
    let compiled = cost::bounded_within(TIME_MAX, text.len(), || PayloadSchema::compile(&schema));
    let ours = match compiled {
        Ok(ours) => ours,
        Err(findings) => return assert!((1..=FAULTS_MAX).contains(&findings.len())),
    };
    let faults = cost::bounded_within(TIME_MAX, text.len(), || ours.faults(&payload));
    let draft = cost::bounded(text.len(), || ours.type_faults(&payload));
    assert!(faults.len() <= FAULTS_MAX && draft.len() <= FAULTS_MAX);
    check_cost(&ours, text, end);
    if faults.iter().any(|fault| fault.detail.contains("too complex")) || is_judged_otherwise(&schema, &payload) {
        return;
    }
    if let Some(oracle) = oracle(&schema) {
        assert_eq!(faults.is_empty(), oracle.is_valid(&payload), "{schema}\n{payload}\n{faults:?}");
    }
});

/// A list of as many such payloads as fit into one.
fn check_cost(ours: &PayloadSchema, text: &[u8], end: usize) {
    let piece = [&[end as u8], text[end..].trim_ascii()].concat();
    if let Some(list) = cost::grown(&piece, b",", PAYLOAD_BYTES_MAX - 2)
        && let Ok(payload) = json::parse(&[b"[", &*list, b"]"].concat(), BOUNDS)
    {
        cost::bounded_within(TIME_MAX, PAYLOAD_BYTES_MAX, || ours.faults(&payload));
    }
}

fn oracle(schema: &Value) -> Option<Validator> {
    let options = jsonschema::options().offline().should_validate_formats(true);
    options.with_pattern_options(PatternOptions::regex()).build(schema).ok()
}

fn is_judged_otherwise(schema: &Value, payload: &Value) -> bool {
    let text = schema.to_string();
    // The other one divides numbers of very different size only nearly.
    let divides = text.contains("multipleOf") && (text + &payload.to_string()).contains("e-");
    divides || JUDGED_OTHERWISE.iter().any(|name| schema.to_string().contains(&format!("\"{name}\"")))
}
