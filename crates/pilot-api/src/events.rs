//! The ledger in pages.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::named;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Events")]
pub struct EventsView<'e> {
    #[schemars(with = "Vec<named::Entry>")]
    pub events: Vec<&'e RawValue>,
    /// Ask again with `after` set to this. Null while the ledger is empty.
    #[schemars(with = "Option<i64>")]
    pub next_after: Option<u64>,
}
