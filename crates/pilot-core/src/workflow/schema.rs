//! The payload's JSON Schema: the whole of it for a finished item, only its types for a draft.
//!
//! It is compiled once, with the definition. Judging a payload then costs a bounded number of steps
//! (docs/adr/0054-our-own-judge-of-payloads.md).

mod compile;
mod decimal;
mod format;
mod judge;
mod node;
mod pattern;
mod rule;
#[cfg(test)]
mod tests;
mod work;

use std::sync::Arc;

use serde_json::Value;

use self::judge::Extent;
use self::node::Schema;
use crate::fault::Fault;
use crate::workflow::source::Finding;

#[derive(Debug, Clone)]
pub struct PayloadSchema(Arc<Schema>);

impl PayloadSchema {
    /// Pointers of findings begin with `/payload_schema`.
    pub fn compile(schema: &Value) -> Result<PayloadSchema, Vec<Finding>> {
        compile::compile(schema).map(|schema| PayloadSchema(Arc::new(schema)))
    }

    /// What is wrong with a finished payload. Pointers begin with `/payload`.
    pub fn faults(&self, payload: &Value) -> Vec<Fault> {
        judge::faults(&self.0, Extent::Whole, payload)
    }

    /// What is wrong with the types in an unfinished one.
    pub fn type_faults(&self, payload: &Value) -> Vec<Fault> {
        judge::faults(&self.0, Extent::Types, payload)
    }
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
