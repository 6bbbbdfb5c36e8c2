//! The payload's JSON Schema: the whole of it for a finished item, only its types for a draft.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::json::join;
use crate::limits::FAULTS_MAX;
use crate::workflow::source::Finding;

/// What remains of a schema in a draft: the shape, so that an unfinished text is fine and a number in its place is not.
const KEPT_IN_DRAFT: [&str; 9] =
    ["type", "properties", "items", "additionalProperties", "anyOf", "allOf", "$ref", "$defs", "definitions"];

#[derive(Debug, Clone)]
pub(crate) struct PayloadSchema {
    whole: Arc<Validator>,
    types: Arc<Validator>,
}

impl PayloadSchema {
    pub(crate) fn compile(schema: &Value) -> Result<PayloadSchema, Finding> {
        let whole = build(schema)?;
        let types = build(&types_alone(schema))?;
        Ok(PayloadSchema { whole: Arc::new(whole), types: Arc::new(types) })
    }

    pub(crate) fn faults(&self, payload: &Value) -> Vec<Fault> {
        faults(&self.whole, payload)
    }

    pub(crate) fn type_faults(&self, payload: &Value) -> Vec<Fault> {
        faults(&self.types, payload)
    }
}

fn build(schema: &Value) -> Result<Validator, Finding> {
    jsonschema::options()
        .offline()
        .should_validate_formats(true)
        // Matching takes linear time whatever a definition's author writes.
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| {
            Finding::new("payload_schema", format!("/payload_schema{}", error.instance_path()))
                .says(format!("payload_schema is not a usable JSON Schema: {}", error.masked()))
                .mend("correct the schema; a $ref may only point inside this schema")
        })
}

fn faults(validator: &Validator, payload: &Value) -> Vec<Fault> {
    if validator.is_valid(payload) {
        return Vec::new();
    }
    validator.iter_errors(payload).take(FAULTS_MAX).map(|error| fault(&error)).collect()
}

/// Never repeats what was found, neither a value nor a member's name: either may be a clear token.
fn fault(error: &ValidationError<'_>) -> Fault {
    let place = format!("/payload{}", error.instance_path());
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            Fault::new(join(&place, property.as_str().unwrap_or_default()), "is required")
        }
        ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::UnevaluatedProperties { .. } => {
            Fault::new(place, "has a member that is not allowed here")
        }
        ValidationErrorKind::Pattern { pattern } if pattern == "\\S" => Fault::new(place, "must not be empty"),
        _ => Fault::new(place, error.masked_with("this").to_string()),
    }
}

fn types_alone(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let mut kept = Map::new();
    for (keyword, value) in keywords {
        // Without their conditions several branches of oneOf may match, which is not a fault in a draft.
        let name = if keyword == "oneOf" { "anyOf" } else { keyword.as_str() };
        if !KEPT_IN_DRAFT.contains(&name) {
            continue;
        }
        let reduced = match (name, value) {
            ("properties" | "$defs" | "definitions", Value::Object(members)) => {
                Value::Object(members.iter().map(|(member, schema)| (member.clone(), types_alone(schema))).collect())
            }
            ("anyOf" | "allOf", Value::Array(branches)) => Value::Array(branches.iter().map(types_alone).collect()),
            ("items" | "additionalProperties", value) => types_alone(value),
            (_, value) => value.clone(),
        };
        kept.insert(name.to_owned(), reduced);
    }
    Value::Object(kept)
}

/// Whether a payload that passes `schema` must have something at `pointer`.
pub(crate) fn requires(schema: &Value, pointer: &str) -> bool {
    let mut place = schema;
    for name in pointer.split('/').skip(1) {
        let required = place.get("required").and_then(Value::as_array);
        if !required.is_some_and(|names| names.iter().any(|required| required == name)) {
            return false;
        }
        let Some(next) = place.get("properties").and_then(|members| members.get(name)) else { return false };
        place = next;
    }
    true
}
