//! Our judge of payloads beside the crate `jsonschema`, which judged them before: what both accept as a schema, both judge
//! alike.

mod cost;
mod dice;
mod drafts;
mod faults;
mod formats;
mod generated;
mod keywords;
mod numbers;
mod patterns;
mod refusals;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::PayloadSchema;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn oracle(schema: &Value) -> Option<Validator> {
    let options = jsonschema::options().offline().should_validate_formats(true);
    options.with_pattern_options(PatternOptions::regex()).build(schema).ok()
}

/// For a schema that both accept.
struct Both {
    schema: Value,
    ours: PayloadSchema,
    oracle: Validator,
}

impl Both {
    fn of(schema: Value) -> Both {
        let ours = PayloadSchema::compile(&schema).unwrap_or_else(|findings| panic!("{schema}: {findings:?}"));
        let oracle = oracle(&schema).unwrap_or_else(|| panic!("the oracle refuses {schema}"));
        Both { schema, ours, oracle }
    }

    fn agree(&self, payload: &Value) -> bool {
        let (ours, theirs) = (self.ours.faults(payload), self.oracle.is_valid(payload));
        assert_eq!(ours.is_empty(), theirs, "{} and {payload}: {ours:?}", self.schema);
        theirs
    }
}
